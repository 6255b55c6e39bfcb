"""What a quorum must never do, as checkers that see every replica's elections, votes and committed records."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from moldau.raft.messages import Reply, Request, VoteReply, VoteRequest
from moldau.raft.state import ReplicaKey
from moldau.records.batch import BatchHeader
from moldau.sim.kernel.world import Violation


def digest_after(digest: int, base_offset: int, batch: bytes) -> int:
    """The state that a batch makes of a state: two replicas with the same state applied the same batches."""
    return zlib.crc32(batch, zlib.crc32(base_offset.to_bytes(8, "big"), digest))


@dataclass
class QuorumModel:
    leaders: dict[int, ReplicaKey] = field(default_factory=dict)
    votes: dict[tuple[ReplicaKey, int], ReplicaKey] = field(default_factory=dict)
    epochs_said: dict[ReplicaKey, int] = field(default_factory=dict)
    committed: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """By base offset: the epoch and the bytes of a committed batch."""
    digests: dict[int, int] = field(default_factory=lambda: {0: 0})
    """The state after the batch that ends there."""
    end_offset: int = 0
    changes_of_voters: int = 0

    def on_leader(self, key: ReplicaKey, epoch: int) -> None:
        known = self.leaders.setdefault(epoch, key)
        if known != key:
            raise Violation(f"epoch {epoch} has two leaders: {known} and {key}")

    def on_said(self, key: ReplicaKey, request: Request, reply: Reply | None) -> None:
        """A replica spoke: its epoch, and its vote, are now known to others and must outlive a crash."""
        epoch = reply.epoch if reply is not None else request.epoch
        self.epochs_said[key] = max(self.epochs_said.get(key, 0), epoch)
        if isinstance(request, VoteRequest) and isinstance(reply, VoteReply):
            if reply.granted and not request.pre_vote:
                self.on_vote(key, request.epoch, request.candidate)
        elif isinstance(request, VoteRequest) and not request.pre_vote:
            self.on_vote(key, request.epoch, key)

    def on_vote(self, voter: ReplicaKey, epoch: int, candidate: ReplicaKey) -> None:
        known = self.votes.setdefault((voter, epoch), candidate)
        if known != candidate:
            raise Violation(f"{voter} voted for {known} and for {candidate} in epoch {epoch}")

    def on_started(self, key: ReplicaKey, epoch: int) -> None:
        if epoch < self.epochs_said.get(key, 0):
            raise Violation(f"{key} said epoch {self.epochs_said[key]} and comes back with {epoch}")

    def on_committed(self, key: ReplicaKey, header: BatchHeader, batch: bytes) -> None:
        """A replica holds a batch for committed: everybody who does must have the same one."""
        base, epoch = int(header.base_offset), int(header.partition_leader_epoch)
        known = self.committed.get(base)
        if known is None:
            if base != self.end_offset:
                raise Violation(f"{key} takes offset {base} for committed, others committed up to {self.end_offset}")
            self.committed[base] = (epoch, batch)
            self.end_offset = int(header.next_offset)
            self.digests[self.end_offset] = digest_after(self.digests[base], base, batch)
        elif known != (epoch, batch):
            raise Violation(f"{key} has epoch {epoch} at committed offset {base}, others have epoch {known[0]}")

    def check_state(self, key: ReplicaKey, end_offset: int, digest: int) -> None:
        known = self.digests.get(end_offset)
        if known != digest:
            raise Violation(f"{key} has state {digest} at offset {end_offset}, others have {known}")

    def check_has_committed(self, key: ReplicaKey, start: int, batches: list[tuple[int, int, bytes]]) -> None:
        """A leader's log from `start` on, as (base offset, epoch, bytes), has everything that was ever committed."""
        found = {base: (epoch, data) for base, epoch, data in batches}
        for base, batch in self.committed.items():
            if base >= start and found.get(base) != batch:
                raise Violation(f"{key} leads without the batch of epoch {batch[0]} committed at offset {base}")
