"""The active controller and its appends: replayed by it at once, responses in order when they are committed.

One object is one term: with the lead it is thrown away, together with everything that was not committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from moldau.controller.batches import split_into_batches
from moldau.controller.controller import Controller
from moldau.controller.result import Result, VersionedRecord
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.node.metadata_log import MetadataLog
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.stored.metadata_records import encode_metadata_record
from moldau.raft.replica import Raft
from moldau.records.clocks import WallClock

Verb = Callable[[Controller], Result]
Done = Callable[[Any, int], None]
"""Called with the response or with a KafkaError, and `now_ms`."""

STOPPED_CONTROLLING: Final = "This node stopped being the active controller."


class Pending:
    """An append of the active controller that waits for its commit."""

    __slots__ = ("appended_ms", "delta", "done", "image", "last_offset")

    def __init__(self, last_offset: int, delta: MetadataDelta, image: MetadataImage, appended_ms: int) -> None:
        self.last_offset = last_offset
        self.appended_ms = appended_ms
        self.delta = delta
        self.image = image
        self.done: list[tuple[Done, Any]] = []


class ActiveController:
    """`on_fatal` is told when the node cannot go on."""

    def __init__(
        self, controller: Controller, log: MetadataLog, raft: Raft, wall: WallClock, on_fatal: Callable[[str], None]
    ) -> None:
        self.controller = controller
        self._log = log
        self._raft = raft
        self._wall = wall
        self._on_fatal = on_fatal
        self._pending: deque[Pending] = deque()

    def append(self, records: list[VersionedRecord], is_atomic: bool, now_ms: int) -> Pending | None:
        """Appends records, in one batch if it can be, and replays them; raises OSError and KafkaError."""
        if not records:
            return None
        controller = self.controller
        batches = split_into_batches(records, is_atomic, controller.image.metadata_version)
        encoded = [[encode_metadata_record(record, version) for record, version in batch] for batch in batches]
        first = self._log.end_offset()
        try:
            for values in encoded:
                last = self._raft.propose(values, now_ms)
        except (OSError, KafkaError) as error:
            if self._log.end_offset() > first:
                # What is in the log counts, and this controller knows nothing of it: the next one starts from the log,
                # and whoever asked has to ask that one.
                self._on_fatal(f"a change could be written only in part: {error}")
                raise KafkaError(errors.NOT_CONTROLLER, STOPPED_CONTROLLING) from error
            raise
        appended = [record for batch in batches for record in batch]
        delta, image = controller.replay(appended, first, self._raft.epoch, self._wall.at(now_ms))
        pending = Pending(last, delta, image, now_ms)
        self._pending.append(pending)
        return pending

    def do_duties(self, now_ms: int) -> None:
        """What nobody asked for; each is appended before the next is decided."""
        duties = self.controller.duties
        duty = duties.take(now_ms)
        while duty is not None:
            self.controller.state.counts.operations += 1
            self.append(duty.records, duty.is_atomic, now_ms)
            duty = duties.take(now_ms)

    def submit(self, verb: Verb, done: Done, now_ms: int) -> bool:
        """Runs `verb`; `done` gets its response when everything it saw is committed. False if it has it already."""
        self.controller.state.counts.operations += 1
        try:
            # The quorum appends records of its own too, when its voters change.
            self.controller.state.next_offset = self._log.end_offset()
            result = verb(self.controller)
            pending = self.append(result.records, result.is_atomic, now_ms)
        except KafkaError as error:
            done(error, now_ms)
            return False
        if pending is None and self._pending:
            # A response without records may rest on records that are not committed yet.
            pending = self._pending[-1]
        if pending is None:
            done(result.response, now_ms)
            return False
        pending.done.append((done, result.response))
        return True

    def take_committed(self, high_watermark: int) -> Pending | None:
        """The first append that is committed and was not taken yet."""
        if self._pending and self._pending[0].last_offset < high_watermark:
            return self._pending.popleft()
        return None

    def fail_pending(self, now_ms: int) -> None:
        """Nobody knows what becomes of what was not committed: whoever waits has to ask the next one."""
        pending, self._pending = self._pending, deque()
        error = KafkaError(errors.NOT_CONTROLLER, STOPPED_CONTROLLING)
        for entry in pending:
            for done, _ in entry.done:
                done(error, now_ms)
