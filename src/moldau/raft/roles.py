"""The roles of a replica and what each of them replies to somebody who asks for its vote.

Transitions are in `raft/transitions.py`; a role only holds what belongs to it. An observer is a replica that is no
voter: it is unattached or a follower and never leaves these two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from moldau.raft.log import OffsetAndEpoch
from moldau.raft.messages import AddVoterRequest, RemoveVoterRequest
from moldau.raft.state import NO_NODE, NO_REPLICA, QuorumState, ReplicaKey
from moldau.raft.voters import Voter


@dataclass(slots=True)
class Role:
    """`leader_id` is -1 while no leader of the epoch is known, `voted` is who got this replica's vote in it."""

    epoch: int
    leader_id: int = NO_NODE
    voted: ReplicaKey = NO_REPLICA

    name = "role"

    def can_grant_vote(self, candidate: ReplicaKey, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        raise NotImplementedError

    def to_quorum_state(self) -> QuorumState:
        return QuorumState(self.epoch, self.leader_id, self.voted)

    def _can_grant_without_leader(self, candidate: ReplicaKey, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        if pre_vote:
            return log_is_up_to_date
        if self.voted != NO_REPLICA:
            # Once more to the same one, but only if it still has what it had: a candidate that crashed may have lost
            # records it had not synced when it asked the first time.
            return self.voted.is_same(candidate) and log_is_up_to_date
        return self.leader_id == NO_NODE and log_is_up_to_date


@dataclass(slots=True)
class Unattached(Role):
    """Knows no leader it could fetch from; a voter waits for the election timeout."""

    election_deadline_ms: int = 0

    name = "unattached"

    def can_grant_vote(self, candidate: ReplicaKey, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        return self._can_grant_without_leader(candidate, log_is_up_to_date, pre_vote)


@dataclass(slots=True)
class Prospective(Role):
    """Asks whether it would win, without raising the epoch (pre-vote)."""

    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    election_deadline_ms: int = 0
    absent: set[int] = field(default_factory=set)
    """Voters at whose address nobody is; they are asked again and again all the same."""

    name = "prospective"

    def can_grant_vote(self, candidate: ReplicaKey, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        return self._can_grant_without_leader(candidate, log_is_up_to_date, pre_vote)


@dataclass(slots=True)
class Candidate(Role):
    """Voted for itself in a new epoch and asks the others."""

    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    election_deadline_ms: int = 0
    absent: set[int] = field(default_factory=set)
    """Voters at whose address nobody is; they are asked again and again all the same."""
    backing_off: bool = False

    name = "candidate"

    def can_grant_vote(self, candidate: ReplicaKey, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and log_is_up_to_date


@dataclass(slots=True)
class Follower(Role):
    """Fetches from the leader; without a response for the fetch timeout a voter becomes prospective."""

    fetch_deadline_ms: int = 0
    has_fetched: bool = False
    """It hears the leader: it refuses pre-votes."""
    leader_high_watermark: int = -1
    snapshot: OffsetAndEpoch | None = None
    """The snapshot that is being fetched instead of records."""
    snapshot_position: int = 0
    snapshot_complete: bool = False
    """All of the snapshot is here; it is being checked and brought to the medium."""
    connection_broke: bool = False
    """The last fetch ended with a broken connection, or with "I do not lead": one more is sent, to be sure."""
    leader_lost: bool = False
    """An observer got no response from the leader and asks others as well."""
    next_change_ms: int = 0
    """When this replica may next ask the leader to change the voters."""
    has_updated_leader: bool = False
    """The leader of a static quorum was told this voter's directory and versions."""

    name = "follower"

    def can_grant_vote(self, candidate: ReplicaKey, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and log_is_up_to_date and not self.has_fetched


@dataclass(slots=True)
class ReplicaProgress:
    """What the leader knows of one replica: the offset up to which its log agrees with the leader's."""

    end_offset: int = -1
    synced_offset: int = -1
    """Up to where that is on its disk. Only a voter tells, for only a voter syncs before it fetches on."""
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    last_fetch_leader_end_offset: int = -1
    acknowledged: bool = False
    begin_epoch_at_ms: int = 0


@dataclass(slots=True)
class PendingChange:
    """A change of the voters: first the new voter is probed, then its record waits to be committed."""

    token: object
    request: AddVoterRequest | RemoveVoterRequest
    deadline_ms: int
    offset: int = -1
    """Of the voters record; -1 while the new voter is being probed."""
    has_reply: bool = False


@dataclass(slots=True)
class Leader(Role):
    """`voters` has this replica too: its own end offset is what is synced."""

    epoch_start_offset: int = 0
    granting: list[int] = field(default_factory=list)
    voters: dict[int, ReplicaProgress] = field(default_factory=dict)
    observers: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    fetched_voters: set[int] = field(default_factory=set)
    """Voters heard of since the check-quorum timer was last set."""
    check_quorum_deadline_ms: int = 0
    change: PendingChange | None = None
    """The change of the voters that somebody waits for; one at a time."""
    described: dict[int, Voter] = field(default_factory=dict)
    """What the voters of a static quorum told about themselves."""

    name = "leader"

    def can_grant_vote(self, candidate: ReplicaKey, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        return False


@dataclass(slots=True)
class Resigned(Role):
    """Was the leader of the epoch and will not lead it again; tells the voters and waits for a successor."""

    unacknowledged: set[int] = field(default_factory=set)
    successors: tuple[ReplicaKey, ...] = ()
    election_deadline_ms: int = 0

    name = "resigned"

    def can_grant_vote(self, candidate: ReplicaKey, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and log_is_up_to_date


# Role to the roles that may follow it. Whoever hears of a higher epoch is unattached, or follows its leader.
SUCCESSORS: Final = {
    Unattached.name: (Unattached.name, Prospective.name, Candidate.name, Follower.name, Resigned.name),
    Prospective.name: (Unattached.name, Candidate.name, Follower.name),
    Candidate.name: (Unattached.name, Prospective.name, Leader.name, Follower.name),
    Leader.name: (Unattached.name, Follower.name, Resigned.name),
    Follower.name: (Unattached.name, Prospective.name, Follower.name),
    Resigned.name: (Unattached.name, Follower.name),
}


def check_succession(before: Role, after: Role) -> None:
    """What the second role may never be after the first."""
    assert after.epoch >= before.epoch, f"epoch {before.epoch} would go back to {after.epoch}"
    assert after.name in SUCCESSORS[before.name], f"a {before.name} replica would be {after.name}"
    if isinstance(before, Leader):
        assert isinstance(after, Resigned) or after.epoch > before.epoch, f"epoch {before.epoch} would lose its leader"
    elif isinstance(after, Leader):
        assert after.epoch == before.epoch, f"{after.epoch} is not the epoch of the votes"
