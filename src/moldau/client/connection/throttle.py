"""KIP-219 on the client's side: which responses make the client pause.

A broker whose quota a client exceeds responds at once and does not read from the connection for `throttle_time_ms`. The
client sends nothing there meanwhile: what it sent would only lie in a buffer, while the time for its response runs.
Other brokers, and other connections to the same broker, are not concerned.
"""

from __future__ import annotations

from typing import Final

# From which version on a response says for how long to pause; brokers that speak older ones only have waited before
# they responded. APIs that are not listed here are younger than KIP-219 and always mean it.
_FIRST_VERSIONS: Final[dict[int, int]] = {
    0: 6,  # Produce
    1: 8,  # Fetch
    2: 3,  # ListOffsets
    3: 6,  # Metadata
    8: 4,  # OffsetCommit
    9: 4,  # OffsetFetch
    10: 2,  # FindCoordinator
    11: 3,  # JoinGroup
    12: 2,  # Heartbeat
    13: 2,  # LeaveGroup
    14: 2,  # SyncGroup
    15: 2,  # DescribeGroups
    16: 2,  # ListGroups
    18: 2,  # ApiVersions
    19: 3,  # CreateTopics
    20: 2,  # DeleteTopics
    21: 1,  # DeleteRecords
    22: 1,  # InitProducerId
    24: 1,  # AddPartitionsToTxn
    25: 1,  # AddOffsetsToTxn
    26: 1,  # EndTxn
    28: 1,  # TxnOffsetCommit
    29: 1,  # DescribeAcls
    30: 1,  # CreateAcls
    31: 1,  # DeleteAcls
    32: 2,  # DescribeConfigs
    33: 1,  # AlterConfigs
    34: 1,  # AlterReplicaLogDirs
    35: 1,  # DescribeLogDirs
    37: 1,  # CreatePartitions
    38: 1,  # CreateDelegationToken
    39: 1,  # RenewDelegationToken
    40: 1,  # ExpireDelegationToken
    41: 1,  # DescribeDelegationToken
    42: 1,  # DeleteGroups
}


def is_honoured(api_key: int, version: int) -> bool:
    """Whether the client pauses for the throttle_time_ms of such a response."""
    return version >= _FIRST_VERSIONS.get(api_key, 0)
