"""SCRAM credentials for the time after a start in which this node has not heard yet what is committed.

Nodes have to log in at each other before a leader can tell. Until then those credentials count that the latest snapshot
and all of the own log name, committed or not: what was replaced or deleted does not come back with a restart, and a
quorum whose nodes have a new password finds itself again. What the storage was formatted with counts only where the log
says nothing at all, as in Kafka.
"""

from __future__ import annotations

from typing import Final

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage, ScramCredential
from moldau.metadata.loader import MetadataLoader
from moldau.node.metadata_node import READ_BYTES, MetadataNode
from moldau.protocol.stored.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    decode_metadata_record,
)
from moldau.raft.batches import metadata_values
from moldau.records.batch import split_batches

TYPE_BYTE: Final = 1
"""Of a stored record, behind the version of its frame."""
DECODED_TYPES: Final = frozenset(
    kind.API_KEY
    for kind in (
        FeatureLevelRecord,
        UserScramCredentialRecord,
        RemoveUserScramCredentialRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
    )
)


class EarlyCredentials:
    """The log is read when somebody logs in, and again when it has changed since."""

    def __init__(self, metadata: MetadataNode) -> None:
        self._metadata = metadata
        self._image = MetadataImage()
        self._read_state: tuple[int, int, int] | None = None

    @property
    def is_over(self) -> bool:
        """The image says it all from now on."""
        return self._metadata.is_caught_up and bool(self._metadata.image.features)

    def find(self, mechanism: int, user: str) -> ScramCredential | None:
        self._maybe_read()
        if self._image.features:
            return self._image.scram.get((mechanism, user))
        for record in self._metadata.bootstrap:
            if isinstance(record, UserScramCredentialRecord) and (record.mechanism, record.name) == (mechanism, user):
                return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        return None

    def _maybe_read(self) -> None:
        metadata = self._metadata
        state = (metadata.image.offset, metadata.log.end_offset(), metadata.log.last_epoch())
        if state != self._read_state:
            self._image = read_credentials(metadata)
            self._read_state = state


def read_credentials(metadata: MetadataNode) -> MetadataImage:
    """The image as it would be if all of the log were committed, as far as credentials go."""
    loader = MetadataLoader(_tell_nobody)
    loader.image = metadata.image
    position, end = metadata.image.offset + 1, metadata.log.end_offset()
    while position < end:
        data = metadata.log.read(position, READ_BYTES)
        assert data, f"the metadata log ends at {position}, not at {end}"
        for header in split_batches(data, 0, len(data)):
            values = [value for value in metadata_values(data, header) if value[TYPE_BYTE] in DECODED_TYPES]
            last = int(header.last_offset)
            if values and last >= position:
                records = [decode_metadata_record(value) for value in values]
                loader.load_batch(records, last, int(header.partition_leader_epoch), int(header.max_timestamp))
            position = max(position, last + 1)
    return loader.image


def _tell_nobody(delta: MetadataDelta, image: MetadataImage) -> None:
    pass
