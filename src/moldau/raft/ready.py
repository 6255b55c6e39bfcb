"""What the caller of the state machine must do next, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.raft.log import OffsetAndEpoch
from moldau.raft.messages import FetchSnapshotReply, Reply, Request
from moldau.raft.state import QuorumState


@dataclass(slots=True)
class Outbound:
    """A request to send. Its outcome comes back through `Raft.on_reply` or `Raft.on_failure`."""

    destination: int
    request: Request


@dataclass(slots=True)
class SnapshotRead:
    """A part of a snapshot that somebody asked for, and the reply that carries it."""

    token: object
    reply: FetchSnapshotReply
    max_bytes: int


@dataclass(slots=True)
class Ready:
    """Taken with `Raft.take_ready()`; fields in the order in which they are to be worked off."""

    quorum_state: QuorumState | None = None
    """Write it to disk and sync it before anything below is done, and before the next `Ready` is taken: whoever hears
    of a vote must be able to count on it. What comes in meanwhile may be handed to `Raft`."""

    sync_to: int = -1
    """The log has unsynced records up to here (-1: none). Start a sync and report it with `Raft.on_synced`; nothing
    below waits for it, because what depends on it (the high watermark, the next fetch) arises from that report."""

    requests: list[Outbound] = field(default_factory=list)
    """Send them."""

    replies: list[tuple[object, Reply]] = field(default_factory=list)
    """Reply to the requests that came in with these tokens."""

    snapshot_reads: list[SnapshotRead] = field(default_factory=list)
    """Read these parts of snapshots, put each into its reply's `data`, then reply; later, if the disk is slow."""

    fetched_snapshot: OffsetAndEpoch | None = None
    """All of this snapshot was fetched. Check it, bring it to the medium and report that with
    `Raft.on_snapshot_checked`, which installs it if it is still wanted."""

    leader_changed: bool = False
    """`Raft.leader_id`, `Raft.epoch` or `Raft.is_leader` is new: tell the controller before committed records."""

    loaded_snapshot: OffsetAndEpoch | None = None
    """A snapshot was fetched and replaces all state; load it before records after it."""

    high_watermark: int = -1
    """Records below it are committed and can be applied (-1: it did not move)."""

    def is_empty(self) -> bool:
        return self == Ready()
