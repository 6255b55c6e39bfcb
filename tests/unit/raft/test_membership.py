"""Changes of the voters as a client sees them: the answers are those of Apache Kafka 4.3.1 to the same requests."""

from __future__ import annotations

import random

import pytest

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import add_raft_voter_request as add
from moldau.protocol.messages import remove_raft_voter_request as remove
from moldau.protocol.messages import update_raft_voter_request as update
from moldau.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from moldau.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from moldau.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from moldau.protocol.messages.vote_response import VoteResponse
from moldau.protocol.primitives import Message
from moldau.protocol.uuids import ZERO_UUID, uuid_to_text
from moldau.raft import messages as m
from moldau.raft.core import RaftConfig
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.ready import Outbound
from moldau.raft.replica import Raft
from moldau.raft.snapshots import snapshot_bytes
from moldau.raft.state import ReplicaKey
from moldau.raft.voters import Voter, VoterHistory, VoterSet
from moldau.raft.wire import error_to_wire, reply_to_wire, request_from_wire
from moldau.raft.wire_client import request_to_wire
from tests.unit.raft.memory_log import MemoryLog

CLUSTER = "xRgwuNm6RwGrImM15i6s_w"
OWN = bytes(15) + b"\x01"
OTHER = bytes(15) + b"\x09"
ONE = f"[ReplicaKey(id=1, directoryId={uuid_to_text(OWN)})]"
OTHER_ONE = f"ReplicaKey(id=1, directoryId={uuid_to_text(OTHER)})"
ENDPOINTS = "Endpoints(endpoints={ListenerName(OTHER)=127.0.0.1/<unresolved>:1})"
LISTENER = "ListenerName(CONTROLLER)"
NINE = f"ReplicaKey(id=9, directoryId={uuid_to_text(OTHER)})"


class OneVoter:
    """A leader that is the only voter of a dynamic quorum, or of a static one."""

    def __init__(self, kraft_version: int = 1) -> None:
        self.log = MemoryLog()
        self.sent: list[Outbound] = []
        self.answers: list[m.Reply] = []
        endpoints = (("CONTROLLER", "127.0.0.1", 22192),)
        directory = OWN if kraft_version else ZERO_UUID
        voters = VoterSet([Voter(ReplicaKey(1, directory), endpoints)])
        if kraft_version:
            self.log.snapshots[OffsetAndEpoch(0, 0)] = snapshot_bytes([], 0, 0, 1, voters, 0)
        initial = VoterHistory(VoterSet([]) if kraft_version else voters, 0)
        key = ReplicaKey(1, OWN)
        self.raft = Raft(RaftConfig(), key, self.log, initial, random.Random(1), endpoints)
        self.raft.start(None, 0)
        self.work()

    def work(self) -> None:
        ready = self.raft.take_ready()
        while not ready.is_empty():
            self.sent += ready.requests
            self.answers += [reply for _, reply in ready.replies]
            if ready.sync_to >= 0:
                self.log.sync()
                self.raft.on_synced(self.log.end_offset(), self.raft.sync_generation, 0)
            ready = self.raft.take_ready()

    def ask(self, request: Message, api_key: int = 80) -> Message:
        """The answer, which must be there at once."""
        try:
            self.raft.on_request(request_from_wire(request, CLUSTER), "token", 0)
        except KafkaError as error:
            return error_to_wire(api_key, error.code, error.message)
        self.work()
        return reply_to_wire(self.answers.pop())

    def fetch_as_observer(self) -> None:
        """Node 9 has everything, and says so."""
        end = self.log.end_offset()
        request = m.FetchRequest(1, ReplicaKey(9, OTHER), end, self.log.last_epoch(), 0, 1000, end)
        self.raft.on_request(request, "fetch", 0)
        self.work()
        self.answers.clear()


def add_nine(directory: bytes = OTHER, voter_id: int = 9, listener: str = "CONTROLLER") -> add.AddRaftVoterRequest:
    return add.AddRaftVoterRequest(CLUSTER, 1000, voter_id, directory, [add.Listener(listener, "127.0.0.1", 1)])


@pytest.mark.parametrize(
    ("voter_id", "directory", "code", "text"),
    [
        (9, OTHER, errors.VOTER_NOT_FOUND, f"Cannot remove voter {NINE} from the set of voters {ONE}"),
        (1, ZERO_UUID, errors.INVALID_REQUEST, "Remove voter request didn't include a valid voter"),
        (1, OWN, errors.VOTER_NOT_FOUND, f"Cannot remove voter {ONE[1:-1]} from the set of voters {ONE}"),
    ],
    ids=["unknown", "no directory", "the only voter"],
)
def test_a_voter_that_cannot_be_removed(voter_id: int, directory: bytes, code: int, text: str) -> None:
    answer = OneVoter().ask(remove.RemoveRaftVoterRequest(CLUSTER, voter_id, directory))
    assert answer == RemoveRaftVoterResponse(0, code, text)


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        (
            add_nine(voter_id=1),
            errors.DUPLICATE_VOTER,
            f"The voter id for {OTHER_ONE} is already part of the set of voters {ONE}.",
        ),
        (add_nine(ZERO_UUID), errors.INVALID_REQUEST, "Add voter request didn't include a valid voter"),
        (add_nine(voter_id=-3), errors.INVALID_REQUEST, "Add voter request didn't include a valid voter"),
        (
            add_nine(listener="OTHER"),
            errors.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint ({ENDPOINTS}) for the default listener {LISTENER}",
        ),
    ],
    ids=["duplicate", "no directory", "no id", "no endpoint"],
)
def test_a_voter_that_cannot_be_added(request_: add.AddRaftVoterRequest, code: int, text: str) -> None:
    assert OneVoter().ask(request_) == AddRaftVoterResponse(0, code, text)


def test_a_request_of_another_cluster() -> None:
    request = add_nine()
    request.cluster_id = "nope"
    text = f'The given id "nope" doesn\'t match the cluster id "{CLUSTER}"'
    assert OneVoter().ask(request) == AddRaftVoterResponse(0, errors.INCONSISTENT_CLUSTER_ID, text)


def test_a_static_quorum_does_not_change() -> None:
    leader = OneVoter(kraft_version=0)
    text = "Cluster doesn't support adding voter because the kraft.version feature is 0"
    assert leader.ask(add_nine()) == AddRaftVoterResponse(0, errors.UNSUPPORTED_VERSION, text)


def test_a_new_voter_that_cannot_be_reached() -> None:
    leader = OneVoter()
    leader.raft.on_request(request_from_wire(add_nine(), CLUSTER), "token", 0)
    leader.work()
    (probe,) = leader.sent
    assert leader.raft.address_of(probe.destination) == ("127.0.0.1", 1)
    leader.raft.on_failure(probe.destination, probe.request, 5, m.REFUSED)
    leader.work()
    text = "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
    assert reply_to_wire(leader.answers.pop()) == AddRaftVoterResponse(0, errors.REQUEST_TIMED_OUT, text)
    assert leader.raft.voters.ids() == [1]


def test_a_new_voter_that_never_fetched_lags_behind() -> None:
    leader = OneVoter()
    leader.raft.on_request(request_from_wire(add_nine(), CLUSTER), "token", 0)
    leader.work()
    leader.raft.on_reply(9, leader.sent[0].request, m.ProbeReply(0, -1, -1, 0, 1), 5)
    leader.work()
    text = f"Aborted add voter operation for {NINE} since it is lagging behind"
    assert reply_to_wire(leader.answers.pop()) == AddRaftVoterResponse(0, errors.REQUEST_TIMED_OUT, text)


def test_a_new_voter_that_is_too_old_for_the_quorum() -> None:
    """A binary that knows kraft.version 0 only could not read the voters record."""
    leader = OneVoter()
    leader.fetch_as_observer()
    leader.raft.on_request(request_from_wire(add_nine(), CLUSTER), "token", 0)
    leader.work()
    leader.raft.on_reply(9, leader.sent[0].request, m.ProbeReply(0, -1, -1, 0, 0), 5)
    leader.work()
    assert leader.answers.pop().error == errors.INVALID_REQUEST
    assert leader.raft.voters.ids() == [1]


def test_the_answer_comes_at_the_append_when_that_is_asked_for() -> None:
    leader = OneVoter()
    leader.fetch_as_observer()
    request = add_nine()
    request.ack_when_committed = False
    leader.raft.on_request(request_from_wire(request, CLUSTER), "token", 0)
    leader.work()
    leader.raft.on_reply(9, leader.sent[0].request, m.ProbeReply(0, -1, -1, 0, 1), 5)
    leader.work()
    assert reply_to_wire(leader.answers.pop()) == AddRaftVoterResponse(0, errors.NONE, None)
    assert leader.raft.voters.ids() == [1, 9] and leader.raft.high_watermark < leader.log.end_offset()


def test_a_change_that_is_not_committed_in_time_is_answered_and_goes_on() -> None:
    """Whoever asked is told that it is not known; nothing else may be changed until it is."""
    leader = OneVoter()
    leader.fetch_as_observer()
    leader.raft.on_request(request_from_wire(add_nine(), CLUSTER), "token", 0)
    leader.work()
    leader.raft.on_reply(9, leader.sent[0].request, m.ProbeReply(0, -1, -1, 0, 1), 5)
    leader.raft.tick(2100)
    leader.work()
    assert leader.answers.pop().error == errors.REQUEST_TIMED_OUT
    second = leader.ask(remove.RemoveRaftVoterRequest(CLUSTER, 9, OTHER))
    assert isinstance(second, RemoveRaftVoterResponse) and second.error_code == errors.REQUEST_TIMED_OUT


@pytest.mark.parametrize(
    ("epoch", "voter_id", "directory", "versions", "code"),
    [
        (1, 9, OTHER, (0, 1), errors.VOTER_NOT_FOUND),
        (1, 1, OTHER, (0, 1), errors.VOTER_NOT_FOUND),
        (0, 1, OWN, (0, 1), errors.FENCED_LEADER_EPOCH),
        (2, 1, OWN, (0, 1), errors.UNKNOWN_LEADER_EPOCH),
        (1, 1, OWN, (0, 0), errors.INVALID_REQUEST),
        (1, 1, OWN, (0, 1), errors.NONE),
    ],
    ids=["unknown", "other directory", "old epoch", "new epoch", "bad versions", "good"],
)
def test_an_update_of_a_voter(
    epoch: int, voter_id: int, directory: bytes, versions: tuple[int, int], code: int
) -> None:
    listeners = [update.Listener("CONTROLLER", "127.0.0.1", 22193)]
    feature = update.KRaftVersionFeature(*versions)
    answer = OneVoter().ask(update.UpdateRaftVoterRequest(CLUSTER, epoch, voter_id, directory, listeners, feature), 82)
    assert isinstance(answer, UpdateRaftVoterResponse) and answer.error_code == code
    leader = answer.current_leader
    assert (leader.leader_id, leader.leader_epoch, leader.host, leader.port) == (1, 1, "127.0.0.1", 22192)


def test_a_vote_for_another_directory_is_not_given() -> None:
    """The voter that the candidate means had another disk."""
    leader = OneVoter()
    asked = m.VoteRequest(5, ReplicaKey(9, OTHER), ReplicaKey(1, OTHER), OffsetAndEpoch(99, 4), False)
    answer = leader.ask(request_to_wire(asked, CLUSTER))
    assert isinstance(answer, VoteResponse)
    partition = answer.topics[0].partitions[0]
    assert (partition.error_code, partition.vote_granted) == (errors.INVALID_VOTER_KEY, False)
    assert leader.raft.is_leader and leader.raft.epoch == 1


def test_a_fetch_from_another_directory_does_not_count_for_the_voter() -> None:
    """A replaced disk has nothing of what the old one promised: it is an observer until somebody adds it."""
    leader = OneVoter()
    leader.fetch_as_observer()
    leader.raft.on_request(request_from_wire(add_nine(), CLUSTER), "token", 0)
    leader.work()
    leader.raft.on_reply(9, leader.sent[0].request, m.ProbeReply(0, -1, -1, 0, 1), 5)
    leader.work()
    end = leader.log.end_offset()
    for directory, committed in ((bytes(15) + b"\x08", end - 1), (OTHER, end)):
        leader.raft.on_request(m.FetchRequest(1, ReplicaKey(9, directory), end, 1, 0, 1000, end), "fetch", 6)
        leader.work()
        assert leader.raft.high_watermark == committed
