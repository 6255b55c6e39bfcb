"""What replicas of the quorum say to each other, for one partition; `raft/wire.py` turns it into requests and back.

Requests carry the sender's epoch. Every reply carries the replier's leader and epoch, so that any exchange
brings a replica that fell behind up to date.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from moldau.raft.log import OffsetAndEpoch
from moldau.raft.state import ReplicaKey
from moldau.raft.voters import Voter

REFUSED: Final = 1
"""Why a request got no response, with the numbers of `node/outbox.py`: nobody listens at that address."""
CLOSED: Final = 2
"""The connection broke while the response was awaited."""
TIMED_OUT: Final = 3
UNREACHABLE: Final = 4


@dataclass(slots=True)
class Request:
    epoch: int


@dataclass(slots=True)
class Reply:
    """error 0 is success; leader_id -1 says that the replier knows no leader of `epoch`."""

    error: int
    leader_id: int
    epoch: int
    leader_address: tuple[str, int] | None = field(default=None, kw_only=True)
    """Where the leader listens for controllers, as far as the replier knows."""


@dataclass(slots=True)
class VoteRequest(Request):
    """A vote for `candidate` in `epoch`; with `pre_vote` only the question whether it would be granted (KIP-996)."""

    candidate: ReplicaKey
    voter: ReplicaKey
    last: OffsetAndEpoch
    pre_vote: bool


@dataclass(slots=True)
class VoteReply(Reply):
    granted: bool


@dataclass(slots=True)
class BeginEpochRequest(Request):
    """A new leader introduces itself to a voter that does not fetch from it yet."""

    leader_id: int
    voter: ReplicaKey
    endpoints: tuple[tuple[str, str, int], ...] = ()


@dataclass(slots=True)
class BeginEpochReply(Reply):
    pass


@dataclass(slots=True)
class EndEpochRequest(Request):
    """A leader steps down; the voters, best successor first."""

    leader_id: int
    successors: tuple[ReplicaKey, ...] = ()


@dataclass(slots=True)
class EndEpochReply(Reply):
    pass


@dataclass(slots=True)
class FetchRequest(Request):
    """Asks for records from `offset` on, and tells that everything below it is on the sender's disk."""

    replica: ReplicaKey
    offset: int
    last_fetched_epoch: int
    max_wait_ms: int
    max_bytes: int
    high_watermark: int


@dataclass(slots=True)
class FetchReply(Reply):
    """Records, or where the sender's log diverges from the leader's, or the snapshot it has to start from."""

    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    records: bytes = b""


@dataclass(slots=True)
class FetchSnapshotRequest(Request):
    replica: ReplicaKey
    snapshot: OffsetAndEpoch
    position: int
    max_bytes: int


@dataclass(slots=True)
class FetchSnapshotReply(Reply):
    snapshot: OffsetAndEpoch
    size: int = 0
    position: int = 0
    data: bytes = b""


@dataclass(slots=True)
class AddVoterRequest(Request):
    """Makes an observer a voter (KIP-853). Whoever asks need not know the epoch: -1."""

    voter: Voter
    ack_when_committed: bool = True


@dataclass(slots=True)
class RemoveVoterRequest(Request):
    voter: ReplicaKey


@dataclass(slots=True)
class UpdateVoterRequest(Request):
    """A voter tells the leader where it listens now and which kraft versions it supports."""

    voter: Voter


@dataclass(slots=True)
class ChangeReply(Reply):
    """The response to a change of the voters; `message` says what is wrong."""

    message: str | None = None


@dataclass(slots=True)
class AddVoterReply(ChangeReply):
    pass


@dataclass(slots=True)
class RemoveVoterReply(ChangeReply):
    pass


@dataclass(slots=True)
class UpdateVoterReply(ChangeReply):
    pass


@dataclass(slots=True)
class ProbeRequest(Request):
    """Asks a replica that is to become a voter which kraft versions it supports (ApiVersions)."""


@dataclass(slots=True)
class ProbeReply(Reply):
    min_kraft_version: int = 0
    max_kraft_version: int = 0
