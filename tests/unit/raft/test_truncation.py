"""A follower whose log diverges truncates it, and does nothing that needs the log until that is on the medium."""

from __future__ import annotations

import random

from moldau.protocol.uuids import ZERO_UUID
from moldau.raft import messages as m
from moldau.raft.batches import metadata_batch
from moldau.raft.core import RaftConfig
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.ready import Outbound
from moldau.raft.replica import Raft
from moldau.raft.roles import Follower, Prospective, Unattached
from moldau.raft.state import QuorumState, ReplicaKey
from moldau.raft.voters import Voter, VoterHistory, VoterSet
from tests.unit.raft.memory_log import MemoryLog

FAR_MS = 60_000


class OneFollower:
    """Voter 1 of three, with a record that the leader of the next epoch, 2, does not have."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.log.append(metadata_batch(0, 1, 0, [b"agreed"]))
        self.log.append(metadata_batch(1, 1, 0, [b"not agreed"]))
        voters = VoterSet(
            [Voter(ReplicaKey(n, ZERO_UUID), (("CONTROLLER", "127.0.0.1", 9090 + n),)) for n in (1, 2, 3)]
        )
        self.raft = Raft(RaftConfig(), ReplicaKey(1, ZERO_UUID), self.log, VoterHistory(voters, 0), random.Random(1))
        self.raft.start(QuorumState(2, 2), 0)

    def work(self) -> list[Outbound]:
        sent: list[Outbound] = []
        ready = self.raft.take_ready()
        while not ready.is_empty():
            sent += ready.requests
            if ready.sync_to >= 0:
                self.log.sync()
                self.raft.on_synced(self.log.end_offset(), self.raft.sync_generation, 0)
            ready = self.raft.take_ready()
        return sent

    def diverge(self) -> None:
        """The leader says that its epoch 1 ends after the first record."""
        fetch = next(one for one in self.work() if isinstance(one.request, m.FetchRequest))
        self.log.settled = False
        reply = m.FetchReply(0, 2, 2, high_watermark=0, diverging=OffsetAndEpoch(1, 1))
        self.raft.on_reply(fetch.destination, fetch.request, reply, 10)
        assert self.log.end_offset() == 1


def test_nothing_is_fetched_before_the_truncation_is_on_the_medium() -> None:
    one = OneFollower()
    one.diverge()
    one.raft.tick(20)
    assert not [sent for sent in one.work() if isinstance(sent.request, m.FetchRequest)]
    one.log.settled = True
    one.raft.tick(30)
    fetch = next(sent.request for sent in one.work() if isinstance(sent.request, m.FetchRequest))
    assert fetch.offset == 1 and isinstance(one.raft.role, Follower)


def test_it_does_not_stand_for_election_meanwhile() -> None:
    """It would have to append at once."""
    one = OneFollower()
    one.diverge()
    for now_ms in range(1000, FAR_MS, 500):
        one.raft.tick(now_ms)
        assert not [sent for sent in one.work() if isinstance(sent.request, m.VoteRequest)]
        assert one.raft.next_deadline_ms(now_ms) > now_ms, "it waits for something"
    assert isinstance(one.raft.role, Unattached)
    one.log.settled = True
    one.raft.tick(one.raft.role.election_deadline_ms)
    assert isinstance(one.raft.role, Prospective)
