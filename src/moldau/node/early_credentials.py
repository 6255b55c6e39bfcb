"""SCRAM credentials for the time after a start in which this node has not heard yet what is committed.

Nodes have to log in at each other before a leader can tell. Until then those credentials count that the latest snapshot
and all of the own log name, committed or not: what was replaced or deleted does not come back with a restart, and a
quorum whose nodes have a new password finds itself again. What the storage was formatted with counts only where the log
says nothing at all, as in Kafka.
"""

from __future__ import annotations

from typing import Final

from moldau.metadata.image import ScramCredential
from moldau.node.metadata_node import READ_BYTES, MetadataNode
from moldau.protocol.primitives import Message
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


UNREAD: Final = -1


class EarlyCredentials:
    """Reads on where it was when somebody asks; all of the log again only where it was truncated or replaced."""

    def __init__(self, metadata: MetadataNode) -> None:
        self._metadata = metadata
        self._has_features = False
        self._of_image: dict[tuple[int, str], ScramCredential] = {}
        """What the image had where reading began."""
        self._changed: dict[tuple[int, str], ScramCredential | None] = {}
        """What the log says since; None where a credential was deleted."""
        self._transaction: list[Message] | None = None
        """What is to be applied at the end of the metadata transaction that is open."""
        self._position = 0
        self._truncations = UNREAD

    @property
    def is_over(self) -> bool:
        """The image has all credentials from now on."""
        return self._metadata.is_caught_up and bool(self._metadata.image.features)

    def find(self, mechanism: int, user: str) -> ScramCredential | None:
        self.read()
        key = (mechanism, user)
        if self._has_features:
            return self._changed[key] if key in self._changed else self._of_image.get(key)
        for record in self._metadata.bootstrap:
            if isinstance(record, UserScramCredentialRecord) and (record.mechanism, record.name) == key:
                return _credential(record)
        return None

    def read(self) -> None:
        """Catches up with the log, whose first reading takes a while: to be called when the node has started."""
        metadata = self._metadata
        next_offset = metadata.image.offset + 1
        if self._truncations != metadata.log.truncations or next_offset > self._position:
            if next_offset < metadata.log.start_offset():
                return  # a snapshot was fetched and is about to be loaded: until then what was found before counts
            self._begin()
        self._read_on()

    def _begin(self) -> None:
        """With the image as it is. The batch that began an open transaction is the image's last one: it is read again,
        and what stands in front of the beginning there is in the image already."""
        metadata = self._metadata
        image, is_open = metadata.image, metadata.in_transaction
        self._has_features = bool(image.features)
        self._of_image = image.scram
        self._changed = {}
        self._transaction = [] if is_open else None
        self._position = image.offset if is_open else image.offset + 1
        self._truncations = metadata.log.truncations

    def _read_on(self) -> None:
        log = self._metadata.log
        end = log.end_offset()
        while self._position < end:
            data = log.read(self._position, READ_BYTES)
            assert data, f"the metadata log ends at {self._position}, not at {end}"
            for header in split_batches(data, 0, len(data)):
                last = int(header.last_offset)
                if last >= self._position:
                    for value in metadata_values(data, header):
                        if value[TYPE_BYTE] in DECODED_TYPES:
                            self._take(decode_metadata_record(value))
                    self._position = last + 1

    def _take(self, record: Message) -> None:
        if isinstance(record, BeginTransactionRecord):
            self._transaction = []
        elif isinstance(record, AbortTransactionRecord):
            self._transaction = None
        elif isinstance(record, EndTransactionRecord):
            finished, self._transaction = self._transaction, None
            for waiting in finished or ():
                self._apply(waiting)
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            self._apply(record)

    def _apply(self, record: Message) -> None:
        if isinstance(record, UserScramCredentialRecord):
            self._changed[record.mechanism, record.name] = _credential(record)
        elif isinstance(record, RemoveUserScramCredentialRecord):
            self._changed[record.mechanism, record.name] = None
        else:
            self._has_features = True


def _credential(record: UserScramCredentialRecord) -> ScramCredential:
    return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
