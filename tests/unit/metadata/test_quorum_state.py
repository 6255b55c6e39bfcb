"""A vote is on the medium before anybody hears of it, and the node's turn does not wait for that."""

from __future__ import annotations

from moldau.node.metadata_log import QUORUM_STATE_FILE
from moldau.protocol.messages import vote_request as vote
from moldau.protocol.messages.vote_response import VoteResponse
from moldau.protocol.primitives import Message
from moldau.raft.state import QuorumState
from moldau.sim.kernel.disk import SimDisk
from tests.unit.metadata.harness import LOG
from tests.unit.metadata.test_three_nodes import CLUSTER, Trio

STATE = f"{LOG}/{QUORUM_STATE_FILE}"


def vote_for(candidate: int, epoch: int) -> vote.VoteRequest:
    partition = vote.PartitionData(0, epoch, candidate, last_offset_epoch=epoch - 1, last_offset=99)
    return vote.VoteRequest(CLUSTER, 1, [vote.TopicData("__cluster_metadata", [partition])])


class Voter:
    """Node 1 of three, which are only starting: what it answers, in the order of its answers."""

    def __init__(self) -> None:
        self.trio = Trio()
        self.node = self.trio.nodes[1]
        disk = self.node._disk
        assert isinstance(disk, SimDisk)
        self.disk = disk
        self.disk.sync_delay_ms = (50, 50)
        self.answered: list[tuple[int, bool]] = []
        self.syncs: list[str] = []
        self.disk.observer = lambda line: self.syncs.append(line) if line.startswith("sync") else None

    def ask(self, candidate: int, epoch: int) -> None:
        def respond(response: Message) -> None:
            assert isinstance(response, VoteResponse)
            answer = response.topics[0].partitions[0]
            self.answered.append((answer.leader_epoch, answer.vote_granted))

        self.node.handle_raft_request(
            vote.VoteRequest.API_KEY, vote_for(candidate, epoch), "CONTROLLER", self.trio.now_ms, respond
        )

    def stored(self) -> QuorumState:
        return QuorumState.from_json(self.disk.peek(STATE))


def test_a_vote_is_answered_after_it_is_on_the_medium_and_not_in_a_turn_that_waits() -> None:
    voter = Voter()
    voter.ask(2, 5)
    assert voter.syncs == [] and voter.answered == []
    voter.trio.run(lambda: bool(voter.answered))
    assert voter.answered == [(5, True)]
    voter.disk.power_loss()
    assert (voter.stored().epoch, voter.stored().voted.id) == (5, 2)


def test_what_comes_while_a_vote_is_written_is_answered_after_it_and_stored_in_order() -> None:
    """A candidate of a later epoch asks meanwhile, and one of an earlier one."""
    voter = Voter()
    voter.ask(2, 5)
    voter.ask(3, 7)
    voter.ask(2, 6)
    voter.ask(2, 7)
    assert voter.answered == []
    voter.trio.run(lambda: len(voter.answered) == 4)
    assert voter.answered == [(5, True), (7, True), (7, False), (7, False)]
    voter.disk.power_loss()
    assert (voter.stored().epoch, voter.stored().voted.id) == (7, 3)


def test_a_vote_that_could_not_be_stored_is_not_given() -> None:
    voter = Voter()
    reasons: list[str] = []
    voter.node.on_fatal = reasons.append
    voter.disk.fail("sync", QUORUM_STATE_FILE)
    voter.ask(2, 5)
    voter.trio.down.add(1)
    voter.trio.run(lambda: bool(reasons))
    assert voter.answered == [] and "metadata log" in reasons[0]


def test_a_leader_decides_nothing_more_once_it_has_heard_of_another_epoch() -> None:
    """Although it takes a while until that epoch is on its disk."""
    voter = Voter()
    trio = voter.trio
    trio.run(lambda: trio.active() is not None)
    active = trio.active()
    assert active is not None
    disk = active._disk
    assert isinstance(disk, SimDisk)
    disk.sync_delay_ms = (500, 500)
    epoch = active.leader_epoch
    request = vote_for(2 if active.node_id != 2 else 3, epoch + 1)
    request.voter_id = active.node_id
    active.handle_raft_request(vote.VoteRequest.API_KEY, request, "CONTROLLER", trio.now_ms, lambda response: None)
    assert not active.is_active_controller
    assert QuorumState.from_json(disk.peek(STATE)).epoch == epoch
