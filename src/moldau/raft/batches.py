"""Batches of the metadata log: control records of the quorum, metadata records, snapshots' first and last batch."""

from __future__ import annotations

from moldau.protocol.primitives import Message, Reader, Writer
from moldau.protocol.stored import control_records as stored
from moldau.raft.state import ReplicaKey
from moldau.raft.voters import Voter, VoterSet
from moldau.records.batch import BatchHeader, split_batches
from moldau.records.builder import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    BatchBuilder,
    control_batch,
)
from moldau.records.walk import read_records

__all__ = [
    "ControlRecord",
    "control_batch",
    "control_records",
    "footer_record",
    "header_record",
    "leader_change_record",
    "metadata_batch",
    "metadata_values",
    "parse_control",
    "version_record",
    "voters_record",
]

ControlRecord = tuple[int, bytes]


def _encode(record: Message) -> bytes:
    writer = Writer()
    record.encode(writer, 0)
    return writer.to_bytes()


def leader_change_record(leader_id: int, voter_ids: list[int], granting_ids: list[int]) -> ControlRecord:
    voters = [stored.LeaderChangeVoter(voter_id) for voter_id in voter_ids]
    granting = [stored.LeaderChangeVoter(voter_id) for voter_id in granting_ids]
    return LEADER_CHANGE, _encode(stored.LeaderChangeMessage(0, leader_id, voters, granting))


def version_record(kraft_version: int) -> ControlRecord:
    return KRAFT_VERSION, _encode(stored.KRaftVersionRecord(0, kraft_version))


def voters_record(voters: VoterSet) -> ControlRecord:
    rows = [
        stored.Voter(
            voter.key.id,
            voter.key.directory_id,
            [stored.Endpoint(name, host, port) for name, host, port in voter.endpoints],
            stored.KRaftVersionFeature(voter.min_kraft_version, voter.max_kraft_version),
        )
        for voter in voters.voters()
    ]
    return KRAFT_VOTERS, _encode(stored.VotersRecord(0, rows))


def header_record(last_contained_log_timestamp_ms: int) -> ControlRecord:
    return SNAPSHOT_HEADER, _encode(stored.SnapshotHeaderRecord(0, last_contained_log_timestamp_ms))


def footer_record() -> ControlRecord:
    return SNAPSHOT_FOOTER, _encode(stored.SnapshotFooterRecord(0))


def parse_control(control_type: int, value: bytes) -> tuple[int | None, VoterSet | None]:
    """The kraft version or the voters that a control record sets; neither for other types."""
    if control_type == KRAFT_VERSION:
        return stored.KRaftVersionRecord.decode(Reader(value), 0).kraft_version, None
    if control_type == KRAFT_VOTERS:
        return None, _to_voter_set(stored.VotersRecord.decode(Reader(value), 0))
    return None, None


def _to_voter_set(record: stored.VotersRecord) -> VoterSet:
    return VoterSet(
        [
            Voter(
                ReplicaKey(row.voter_id, row.voter_directory_id),
                tuple((endpoint.name, endpoint.host, endpoint.port) for endpoint in row.endpoints),
                row.kraft_version_feature.min_supported_version,
                row.kraft_version_feature.max_supported_version,
            )
            for row in record.voters
        ]
    )


def metadata_batch(base_offset: int, epoch: int, timestamp_ms: int, values: list[bytes]) -> bytes:
    builder = BatchBuilder(base_offset)
    for value in values:
        builder.append(timestamp_ms, None, value)
    return builder.build(partition_leader_epoch=epoch)


def control_records(data: bytes) -> list[tuple[int, int, bytes]]:
    """Offset, type and value of every control record in whole batches."""
    found: list[tuple[int, int, bytes]] = []
    for header in split_batches(data, 0, len(data)):
        if header.is_control:
            for record in read_records(data, header):
                if record.key is not None and len(record.key) == 4 and record.value is not None:
                    found.append((record.offset, int.from_bytes(record.key[2:], "big"), record.value))
    return found


def metadata_values(data: bytes, header: BatchHeader) -> list[bytes]:
    """The values of a batch of metadata records; none of a control batch."""
    if header.is_control:
        return []
    return [record.value for record in read_records(data, header) if record.value is not None]
