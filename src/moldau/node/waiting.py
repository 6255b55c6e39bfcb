"""Parked requests: each waits for its partitions to move or for its deadline. Kafka calls this the purgatory."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable

from mypy_extensions import mypyc_attr

from moldau.node.reply import Reply
from moldau.records.clocks import NEVER_MS
from moldau.replication.partition import Partition
from moldau.replication.waiter import PartitionWaiter

log = logging.getLogger("moldau.node")


@mypyc_attr(allow_interpreted_subclasses=True)
class TimedWaiter(PartitionWaiter):
    """Someone whose time comes."""

    def on_deadline(self, now_ms: int) -> None:
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class ParkedRequest(TimedWaiter):
    """A request that cannot be answered yet. Subclasses say when it can, and what the response is."""

    def __init__(self, reply: Reply, partitions: list[Partition], deadline_ms: int) -> None:
        super().__init__()
        self.reply = reply
        self.partitions = partitions
        self.deadline_ms = deadline_ms

    def maybe_respond(self, now_ms: int) -> bool:
        """Responds if that is possible now, and says whether it did."""
        raise NotImplementedError

    def respond_at_deadline(self, now_ms: int) -> None:
        raise NotImplementedError

    def on_partition_moved(self, now_ms: int) -> None:
        try:
            if not self.finished and self.maybe_respond(now_ms):
                self.finished = True
        except Exception:
            self.give_up()

    def on_deadline(self, now_ms: int) -> None:
        self.finished = True
        for partition in self.partitions:
            partition.drop_finished_waiters()
        try:
            self.respond_at_deadline(now_ms)
        except Exception:
            self.give_up()

    def give_up(self) -> None:
        """One request that cannot be answered costs its connection, and nobody else who happens to be served now."""
        self.finished = True
        log.exception("a parked request failed; closing its connection")
        self.reply.close_connection = True
        if not self.reply.done:
            self.reply.complete(None)

    def cancel(self) -> None:
        """The client is gone."""
        self.finished = True
        for partition in self.partitions:
            partition.drop_finished_waiters()


class WaitingRoom:
    """All parked requests of a node, by deadline. The partitions hold the other end."""

    def __init__(self) -> None:
        self._by_deadline: list[tuple[int, int, TimedWaiter]] = []
        self._sequence = 0
        self.parked_total = 0
        # Those that were answered because their time was over: fetches by who sent them, partitions of produces.
        self.expired_fetches = 0
        self.expired_follower_fetches = 0
        self.expired_produces = 0
        # Told when a request is parked, so that whoever runs the timers looks again in time.
        self.on_deadline: Callable[[int], None] | None = None

    def park(self, request: ParkedRequest) -> None:
        self.parked_total += 1
        for partition in request.partitions:
            # A request that was answered because another partition moved is still listed here.
            if len(partition.waiters) % 16 == 15:
                partition.drop_finished_waiters()
            partition.waiters.append(request)
        request.reply.on_abandon = request.cancel
        self.call_at(request.deadline_ms, request)

    def call_at(self, deadline_ms: int, waiter: TimedWaiter) -> None:
        """Calls `on_deadline` then, unless the waiter is finished before."""
        self._sequence += 1
        heapq.heappush(self._by_deadline, (deadline_ms, self._sequence, waiter))
        if self.on_deadline is not None:
            self.on_deadline(deadline_ms)
        if len(self._by_deadline) > 1024 and self._sequence % 1024 == 0:
            self._sweep()

    def _sweep(self) -> None:
        """Requests that were answered before their deadline leave the heap in bulk."""
        self._by_deadline = [entry for entry in self._by_deadline if not entry[2].finished]
        heapq.heapify(self._by_deadline)

    def next_deadline_ms(self) -> int:
        waiting = self._by_deadline
        while waiting and waiting[0][2].finished:
            heapq.heappop(waiting)
        return waiting[0][0] if waiting else NEVER_MS

    def poll(self, now_ms: int) -> int:
        """Responds those whose time is over; returns when that of the next one is."""
        self.expire(now_ms)
        return self.next_deadline_ms()

    def expire(self, now_ms: int) -> None:
        """Responds those whose time is over."""
        while self.next_deadline_ms() <= now_ms:
            request = heapq.heappop(self._by_deadline)[2]
            request.on_deadline(now_ms)

    def waiters(self) -> list[TimedWaiter]:
        """Everyone with a deadline, also who is finished and has not been swept out."""
        return [entry[2] for entry in self._by_deadline]

    def __len__(self) -> int:
        """How many requests are parked."""
        return sum(1 for entry in self._by_deadline if isinstance(entry[2], ParkedRequest) and not entry[2].finished)
