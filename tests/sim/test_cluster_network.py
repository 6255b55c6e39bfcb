"""The simulated network of a cluster: what it may do to requests between nodes, and what it may not."""

from __future__ import annotations

from collections.abc import Callable

from moldau.node.outbox import CLOSED, REFUSED, TIMED_OUT, UNREACHABLE, NoResponse
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.api_versions_response import ApiVersionsResponse
from moldau.protocol.primitives import Message, Reader, Writer
from moldau.records.clocks import NEVER_MS
from moldau.sim.cluster.network import Network
from moldau.sim.cluster.outbox import SimOutbox
from moldau.sim.kernel.host import Host, Program, Slot
from moldau.sim.kernel.network import CLIENT_LISTENER, CONTROLLER_LISTENER
from moldau.sim.kernel.world import World

PORT, CONTROLLER_PORT, NOBODYS_PORT = 9012, 9013, 9999
API_VERSIONS = 18


class Recorder(Program):
    """Answers every ApiVersions request with its client software version, as the time it took."""

    def __init__(self, host: Host, network: Network) -> None:
        self.host = host
        self.outbox = SimOutbox(network, host)
        self.seen: list[str] = []
        self.closed = 0
        self.listens = True

    def start(self, now_ms: int) -> None:
        self.host.disk.open("journal", create=True)

    def poll(self, now_ms: int) -> int:
        return NEVER_MS

    def stop(self, now_ms: int) -> None:
        pass

    def accepts(self, listener: str) -> bool:
        return self.listens or listener == CONTROLLER_LISTENER

    def open_connection(self, name: str, listener: str = CLIENT_LISTENER) -> object:
        return listener

    def close_connection(self, connection: object) -> None:
        self.closed += 1

    def handle(self, connection: object, frame: bytes, now_ms: int, slot: Slot) -> None:
        reader = Reader(frame, 4)
        correlation_id = reader.int32()
        reader.nullable_string()
        reader.uvarint()
        request = ApiVersionsRequest.decode(reader, 3)
        self.seen.append(request.client_software_name)
        writer = Writer()
        writer.int32(correlation_id)
        ApiVersionsResponse(throttle_time_ms=int(request.client_software_name)).encode(writer, 3)
        slot.respond(writer.to_bytes())


class Pair:
    """Two hosts; the first one asks."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.asking = Host(self.world, 1, self._build)
        self.asked = Host(self.world, 2, self._build)
        for host in (self.asking, self.asked):
            host.on_death = self._death_of(host)
            host.boot()
        self.network.listen(PORT, self.asked, CLIENT_LISTENER)
        self.network.listen(CONTROLLER_PORT, self.asked, CONTROLLER_LISTENER)
        self.outcomes: list[int] = []
        self.channel = self.program(self.asking).outbox.open("test", "127.0.0.1", PORT)

    def _build(self, host: Host) -> Program:
        return Recorder(host, self.network)

    def _death_of(self, host: Host) -> Callable[[str], None]:
        return lambda how: self.network.on_host_death(host)

    def program(self, host: Host) -> Recorder:
        assert isinstance(host.program, Recorder)
        return host.program

    def boot(self, host: Host) -> None:
        host.boot()
        self.network.on_host_boot(host)

    def ask(self, number: int, timeout_ms: int = 500) -> None:
        self.channel.send(API_VERSIONS, 3, ApiVersionsRequest(str(number), "1"), timeout_ms, self._on_response)

    def _on_response(self, answer: Message | NoResponse, now_ms: int) -> None:
        if isinstance(answer, NoResponse):
            self.outcomes.append(-answer.reason)
        else:
            assert isinstance(answer, ApiVersionsResponse)
            self.outcomes.append(answer.throttle_time_ms)


def pairs() -> list[Pair]:
    return [Pair(seed) for seed in range(20)]


def test_answers_come_in_the_order_of_their_requests() -> None:
    for pair in pairs():
        for number in range(10):
            pair.ask(number, 5000)
        pair.world.run_for(5000)
        assert pair.outcomes == list(range(10))
        assert pair.program(pair.asked).seen == [str(number) for number in range(10)]


def test_a_process_that_is_gone_refuses_and_a_machine_without_power_says_nothing() -> None:
    for pair in pairs():
        pair.asked.kill()
        pair.ask(1)
        pair.world.run_for(450)
        assert pair.outcomes == [-REFUSED]
        pair.boot(pair.asked)
        pair.asked.lose_power()
        pair.ask(2)
        pair.world.run_for(499)
        assert pair.outcomes == [-REFUSED]
        pair.world.run_for(10)
        assert pair.outcomes == [-REFUSED, -TIMED_OUT]


def test_a_listener_that_is_not_open_yet_refuses_and_the_other_one_answers() -> None:
    for pair in pairs():
        pair.program(pair.asked).listens = False
        pair.ask(1)
        pair.channel = pair.program(pair.asking).outbox.open("test", "127.0.0.1", CONTROLLER_PORT)
        pair.ask(2, 5000)
        pair.channel = pair.program(pair.asking).outbox.open("test", "127.0.0.1", NOBODYS_PORT)
        pair.ask(3)
        pair.world.run_for(5000)
        assert sorted(pair.outcomes) == sorted([-REFUSED, 2, -UNREACHABLE])


def test_whoever_waits_for_a_process_that_dies_is_told() -> None:
    for pair in pairs():
        pair.ask(1)
        pair.world.run_for(500)
        pair.asked.pause()
        pair.ask(2, 3000)
        pair.world.run_for(1000)
        pair.asked.kill()
        pair.world.run_for(1000)
        assert pair.outcomes == [1, -CLOSED]


def test_a_way_that_is_blocked_in_one_direction_loses_the_answer_but_not_the_request() -> None:
    for pair in pairs():
        pair.ask(1)
        pair.world.run_for(500)
        pair.network.block(2, 1)
        pair.ask(2)
        pair.world.run_for(1000)
        assert pair.outcomes == [1, -TIMED_OUT]
        assert pair.program(pair.asked).seen == ["1", "2"]


def test_a_request_that_was_given_up_may_arrive_after_one_that_was_sent_later() -> None:
    late = 0
    for pair in (Pair(seed) for seed in range(200)):
        pair.ask(1)
        pair.world.run_for(500)
        pair.network.block(1, 2)
        pair.ask(2, 100)
        pair.world.run_for(200)
        pair.network.unblock_all()
        pair.ask(3, 3000)
        pair.world.run_for(8000)
        assert pair.outcomes == [1, -TIMED_OUT, 3]
        seen = pair.program(pair.asked).seen
        assert seen in (["1", "3"], ["1", "2", "3"], ["1", "3", "2"])
        late += seen == ["1", "3", "2"]
    assert late > 5


def test_a_process_that_is_stopped_takes_its_turns_when_it_goes_on() -> None:
    for pair in pairs():
        pair.asked.pause()
        pair.ask(1, 5000)
        pair.world.run_for(2000)
        assert pair.outcomes == []
        pair.asked.resume()
        pair.world.run_for(1000)
        assert pair.outcomes == [1]


def test_no_answer_reaches_a_new_life_of_the_process_that_asked() -> None:
    for pair in pairs():
        pair.ask(1)
        pair.asking.kill()
        pair.boot(pair.asking)
        pair.world.run_for(8000)
        assert pair.outcomes == []


def test_a_host_learns_that_the_other_end_is_closed() -> None:
    for pair in pairs():
        pair.ask(1)
        pair.world.run_for(500)
        pair.channel.close()
        pair.world.run_for(8000)
        assert pair.program(pair.asked).closed == 1
