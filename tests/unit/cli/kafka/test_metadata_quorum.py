"""kafka-metadata-quorum describe: its two forms."""

from __future__ import annotations

from moldau.cli.kafka.metadata_quorum import replication_lines, status_lines
from moldau.client.admin.quorum import QuorumInfo, QuorumReplica, RaftEndpoint

FIRST, SECOND = bytes(15) + b"\1", bytes(16)
QUORUM = QuorumInfo(
    2,
    5,
    99,
    [QuorumReplica(1, SECOND, -1, None, None), QuorumReplica(2, FIRST, 100, 5000, 5000)],
    [],
    {2: [RaftEndpoint("CONTROLLER", "h", 9093)]},
)


def test_status_shows_the_lag_of_the_slowest_voter() -> None:
    lines = status_lines("cluster", QUORUM)
    assert lines == [
        "ClusterId:              cluster",
        "LeaderId:               2",
        "LeaderEpoch:            5",
        "HighWatermark:          99",
        "MaxFollowerLag:         101",
        "MaxFollowerLagTimeMs:   -1",
        (
            'CurrentVoters:          [{"id": 1}, {"id": 2, "directoryId": "AAAAAAAAAAAAAAAAAAAAAQ", '
            '"endpoints": ["CONTROLLER://h:9093"]}]'
        ),
        "CurrentObservers:       []",
    ]


def test_replication_shows_the_leader_first_in_columns() -> None:
    assert replication_lines(QUORUM, 5009)[1:] == [
        "2     \tAAAAAAAAAAAAAAAAAAAAAQ\t100         \t0  \t9 ms ago          \t9 ms ago             \tLeader  \t",
        "1     \tAAAAAAAAAAAAAAAAAAAAAA\t-1          \t101\t-1                \t-1                   \tFollower\t",
    ]
