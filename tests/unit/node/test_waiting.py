"""Parked requests are answered once: when they can be, at their deadline, or never if the client is gone."""

from moldau.node.reply import Reply
from moldau.node.waiting import ParkedRequest, WaitingRoom
from moldau.records.clocks import NEVER_MS
from moldau.replication.partition import Partition


class Recorded(ParkedRequest):
    def __init__(self, partitions: list[Partition], deadline_ms: int) -> None:
        super().__init__(Reply(), partitions, deadline_ms)
        self.can_answer = False
        self.asked = 0
        self.events: list[str] = []

    def maybe_respond(self, now_ms: int) -> bool:
        self.asked += 1
        if self.can_answer:
            self.events.append(f"answered at {now_ms}")
        return self.can_answer

    def respond_at_deadline(self, now_ms: int) -> None:
        self.events.append(f"expired at {now_ms}")


def partition(index: int = 0) -> Partition:
    return Partition("t", bytes(16), index, 1, None)


def test_a_move_of_the_partition_answers_it() -> None:
    room, watched = WaitingRoom(), partition()
    request = Recorded([watched], 100)
    room.park(request)
    watched.notify_waiters(10)
    assert request.events == [] and room.next_deadline_ms() == 100
    request.can_answer = True
    watched.notify_waiters(20)
    watched.notify_waiters(30)
    room.expire(200)
    assert request.events == ["answered at 20"]
    assert room.next_deadline_ms() == NEVER_MS
    assert watched.waiters == []


def test_the_deadline_answers_it() -> None:
    room, watched = WaitingRoom(), partition()
    request = Recorded([watched], 100)
    room.park(request)
    room.expire(99)
    assert request.events == []
    room.expire(100)
    assert request.events == ["expired at 100"]
    assert watched.waiters == []


def test_a_client_that_left_leaves_nothing_behind() -> None:
    room, watched = WaitingRoom(), partition()
    request = Recorded([watched], 1 << 40)
    room.park(request)
    request.reply.abandon()
    assert watched.waiters == [] and len(room) == 0
    request.can_answer = True
    watched.notify_waiters(10)
    assert request.events == []


def test_an_idle_partition_does_not_collect_requests_that_others_answered() -> None:
    room, busy, idle = WaitingRoom(), partition(0), partition(1)
    for turn in range(1000):
        request = Recorded([busy, idle], 1 << 40)
        request.can_answer = True
        room.park(request)
        busy.notify_waiters(turn)
    assert len(idle.waiters) <= 16
    assert len(room._by_deadline) <= 2048


def test_deadlines_are_met_in_their_order() -> None:
    room = WaitingRoom()
    requests = [Recorded([], deadline) for deadline in (300, 100, 200)]
    for request in requests:
        room.park(request)
    assert room.next_deadline_ms() == 100
    room.expire(250)
    assert [request.events for request in requests] == [[], ["expired at 250"], ["expired at 250"]]


class Broken(Recorded):
    def maybe_respond(self, now_ms: int) -> bool:
        raise ZeroDivisionError("a bug")

    def respond_at_deadline(self, now_ms: int) -> None:
        raise ZeroDivisionError("a bug")


def test_one_that_fails_costs_its_own_connection_only() -> None:
    room, watched = WaitingRoom(), partition()
    broken, other, late = Broken([watched], 100), Recorded([watched], 100), Broken([partition(1)], 50)
    for request in (broken, other, late):
        room.park(request)
    other.can_answer = True
    watched.notify_waiters(10)
    assert other.events == ["answered at 10"]
    assert broken.reply.done and broken.reply.parts is None and broken.reply.close_connection
    room.expire(200)
    assert late.reply.done and late.reply.close_connection
    assert len(room) == 0 and watched.waiters == []
