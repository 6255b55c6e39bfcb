"""Which replica a consumer should read from: the leader, or one in its own rack (KIP-392).

`replica.selector.class` names one of the two selectors there are by its Java class; no code is loaded by name.
Kafka: RackAwareReplicaSelector, ReplicaManager.findPreferredReadReplica.
"""

from __future__ import annotations

from typing import Final

from moldau.replication.leader import FollowerPosition, LeaderState

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NO_PREFERENCE: Final = -1


def select_in_rack(state: LeaderState, rack: str, racks: dict[int, str], own_rack: str, fetch_offset: int) -> int:
    """The in-sync follower in this rack that has the offset and is furthest, NO_PREFERENCE if the leader will do."""
    if not rack or own_rack == rack:
        return NO_PREFERENCE
    best: FollowerPosition | None = None
    for follower in state.followers:
        if (
            racks.get(follower.replica_id, "") == rack
            and follower.replica_id in state.in_sync.committed
            and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
            and (best is None or is_further(follower, best))
        ):
            best = follower
    return NO_PREFERENCE if best is None else best.replica_id


def is_further(one: FollowerPosition, other: FollowerPosition) -> bool:
    if one.log_end_offset != other.log_end_offset:
        return one.log_end_offset > other.log_end_offset
    if one.last_caught_up_ms != other.last_caught_up_ms:
        return one.last_caught_up_ms > other.last_caught_up_ms
    return one.replica_id > other.replica_id
