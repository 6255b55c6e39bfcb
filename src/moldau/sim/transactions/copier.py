"""Copiers of a simulated cluster: they read a partition, write what they read elsewhere, and commit both or neither."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from moldau.client.offsets import READ_COMMITTED
from moldau.client.record import ConsumerRecord
from moldau.client.results import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from moldau.protocol import errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from moldau.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.offset_fetch_response import OffsetFetchResponse
from moldau.protocol.primitives import Message
from moldau.sim.cluster.client import NOBODY, ClusterClient
from moldau.sim.cluster.committer import TRANSIENT_ERRORS
from moldau.sim.kernel.world import Violation
from moldau.sim.transactions.application import Application, GaveUp, Instance, Script
from moldau.sim.transactions.committed_reader import LEADERS_ONLY, RECORDS_AT_ONCE, PartitionReader
from moldau.sim.transactions.ledger import ABORT, COMMIT, SEPARATOR, Attempt, Place

if TYPE_CHECKING:
    from moldau.sim.transactions.world import TransactionWorld

FIND_VERSION, FETCH_VERSION = 4, 9
OFFSET_MS_MAX = 10_000
NOTHING = -1


class OffsetQuestion:
    """Asks where a group is in one partition until it is told."""

    def __init__(self, client: ClusterClient, group_id: str, place: Place, *, stable: bool = True) -> None:
        self.client = client
        self.group_id = group_id
        self.place = place
        self.offset: int | None = None
        self.metadata = ""
        self._stable = stable
        self._coordinator = NOBODY
        self._asking = False

    def ask(self) -> None:
        if self._asking or self.offset is not None:
            return
        self._asking = True
        if self._coordinator == NOBODY:
            request = FindCoordinatorRequest(coordinator_keys=[self.group_id])
            self.client.ask(self.client.any_node(), request, FIND_VERSION, self._on_response)
        else:
            topics = [OffsetFetchRequestTopics(self.place[0], partition_indexes=[self.place[1]])]
            groups = [OffsetFetchRequestGroup(self.group_id, topics=topics)]
            request_offset = OffsetFetchRequest(groups=groups, require_stable=self._stable)
            self.client.ask(self._coordinator, request_offset, FETCH_VERSION, self._on_response)

    def _on_response(self, response: Message | None) -> None:
        self._asking = False
        if isinstance(response, FindCoordinatorResponse):
            row = response.coordinators[0]
            if row.error_code == errors.NONE and row.node_id in self.client.setting.client_ports:
                self._coordinator = row.node_id
        elif isinstance(response, OffsetFetchResponse):
            self._on_fetched(response)
        else:
            self._coordinator = NOBODY

    def _on_fetched(self, response: OffsetFetchResponse) -> None:
        group = response.groups[0]
        code = group.error_code or (group.topics[0].partitions[0].error_code if group.topics else errors.NONE)
        if code == errors.NONE:
            row = group.topics[0].partitions[0] if group.topics else None
            self.offset = NOTHING if row is None else row.committed_offset
            self.metadata = "" if row is None else row.metadata or ""
        elif code != errors.UNSTABLE_OFFSET_COMMIT:
            if code not in TRANSIENT_ERRORS:
                raise Violation(f"an offset can be read: {self.group_id} got {errors.error_name(code)}")
            self._coordinator = NOBODY


class OffsetWatcher:
    """Looks at the offset of a copier now and then: it never goes back, and is of a committed transaction."""

    def __init__(self, setting: TransactionWorld, copier: Copier) -> None:
        self.setting = setting
        self.world = setting.world
        self.copier = copier
        self.client = ClusterClient(setting, f"watcher of {copier.name}")
        self.rng = self.client.rng
        self.last = NOTHING
        self.question = self._new_question()
        self.world.schedule(self.rng.randint(0, 300), self.tick)

    def _new_question(self) -> OffsetQuestion:
        stable = self.rng.random() < 0.3
        return OffsetQuestion(self.client, self.copier.group_id, self.copier.source, stable=stable)

    def tick(self) -> None:
        if self.setting.finished:
            return
        self.world.schedule(self.rng.randint(20, 200), self.tick)
        offset = self.question.offset
        if offset is None:
            if self.setting.is_begun:
                self.question.ask()
            return
        if offset != NOTHING:
            self._check(offset, self.question.metadata)
        self.question = self._new_question()

    def _check(self, offset: int, metadata: str) -> None:
        where = f"{self.copier.group_id} at {offset}"
        attempt = self.setting.ledger.attempt_of(metadata.encode(), where)
        if offset < self.last:
            raise Violation(f"no committed offset goes back: {where} after {self.last}")
        if attempt.wanted != COMMIT or ABORT in (attempt.told, attempt.decided):
            raise Violation(f"offsets count when their transaction is committed: {where}, {attempt!r}")
        attempt.was_read = True
        self.last = offset
        self.setting.checked_offsets += 1


class CopierInstance(Instance):
    application: Copier

    def run(self) -> Script:
        copier = self.application
        yield from self._begin()
        client = ClusterClient(self.setting, f"{self.name} reads")
        self.setting.add_machine(client.machine)
        reader = PartitionReader(
            client, copier.source, self.setting.topic_id(copier.source[0]), READ_COMMITTED, LEADERS_ONLY
        )
        position = yield from self._committed(client)
        reader.seek(position)
        while not self.is_over(reader):
            reader.hurries = self.setting.quiet
            reader.fetch()
            yield
            records = reader.take(RECORDS_AT_ONCE if reader.hurries else self.rng.choice((1, 3, 10)))
            if records or reader.position > position:
                target = reader.position
                done = yield from self._transaction(lambda attempt: self._copy(attempt, records, target))  # noqa: B023
                position = target if done else position
                reader.seek(position)

    def is_over(self, reader: PartitionReader) -> bool:
        return self.setting.quiet and not self.application.catches_up_to(reader.position)

    def _committed(self, client: ClusterClient) -> Generator[None, None, int]:
        """Where the group is; whoever was there before has been fenced."""
        question = OffsetQuestion(client, self.application.group_id, self.application.source)
        deadline_ms = self.world.now_ms + OFFSET_MS_MAX
        while question.offset is None:
            if self.world.now_ms > deadline_ms:
                raise GaveUp("nobody says what is committed")
            question.ask()
            yield
        self.setting.checked_offsets += 1
        return max(0, question.offset)

    def _copy(self, attempt: Attempt, records: list[ConsumerRecord], position: int) -> Script:
        copier = self.application
        for record in records:
            self._send(attempt, copier.target_of(int(record.offset)), copy_of(record))
        if self.rng.random() < 0.3:
            yield
        attempt.offsets[copier.source] = position
        offsets = {TopicPartition(*copier.source): OffsetAndMetadata(position, -1, f"{attempt.number}/")}
        yield from self._wait(self.process.send_offsets(offsets, ConsumerGroupMetadata(copier.group_id)))

    def _wish(self) -> str:
        return COMMIT if self.setting.quiet or self.rng.random() < 0.9 else ABORT


def copy_of(record: ConsumerRecord) -> bytes:
    return plain_copy(int(record.offset), bytes(record.value or b""))


def plain_copy(offset: int, value: bytes) -> bytes:
    """What becomes of a record: it says where it was read."""
    return b"%d=%s" % (offset, value.replace(SEPARATOR, b":"))


class Copier(Application):
    """Reads one partition; what it reads goes to the partitions of another topic in turn."""

    def __init__(self, setting: TransactionWorld, name: str, source: Place, targets: list[Place]) -> None:
        super().__init__(setting, name, targets)
        self.source = source
        self.group_id = f"group of {name}"
        self.goal = 0

    def new_instance(self) -> Instance:
        return CopierInstance(self, self.started)

    def target_of(self, offset: int) -> Place:
        return self.places[offset % len(self.places)]

    def catches_up_to(self, position: int) -> bool:
        """Whether there is more to copy, now that nobody writes any more."""
        return position < self.goal

    def copies(self, wanted: Callable[[Attempt], bool]) -> list[bytes]:
        """What its attempts of this kind have written, by the offset that was read."""
        found = [
            value.split(SEPARATOR, 2)[2]
            for attempt in self.setting.ledger.attempts
            if attempt.owner.startswith(f"{self.name}.") and wanted(attempt)
            for values in attempt.found.values()
            for value in values
        ]
        return sorted(found, key=lambda copy: int(copy.split(b"=", 1)[0]))
