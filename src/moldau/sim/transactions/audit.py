"""The last look at a simulated cluster with transactions: all of them whole, copies exact, offsets as committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.offsets import READ_COMMITTED
from moldau.sim.cluster.audit import ClusterAudit
from moldau.sim.cluster.client import ClusterClient
from moldau.sim.kernel.world import Violation
from moldau.sim.transactions.committed_reader import LEADERS_ONLY, PartitionReader
from moldau.sim.transactions.copier import Copier, OffsetQuestion, plain_copy
from moldau.sim.transactions.ledger import COMMIT, Place

if TYPE_CHECKING:
    from moldau.sim.transactions.world import TransactionWorld

READ_MS_MAX = 10_000
STEP_MS = 10


class TransactionAudit:
    def __init__(self, setting: TransactionWorld) -> None:
        self.setting = setting
        self.world = setting.world
        self.ledger = setting.ledger
        self.client = ClusterClient(setting, "audit of transactions")
        self.cluster = ClusterAudit(setting)

    def run(self) -> None:
        setting = self.setting
        setting.checks.look_at_all()
        self.ledger.check_end()
        for reader in setting.readers:
            reader.close()
        self._check_readings()
        self._check_partitions()
        for application in setting.applications:
            if isinstance(application, Copier):
                self._check_copies(application)
                self._check_offset(application)
        if setting.rng.random() < 0.3:
            self.cluster.rotate()
            self._check_partitions()
        self.cluster.check_replicas_are_equal()
        self.cluster.check_images_are_equal()

    def _check_readings(self) -> None:
        """Whatever was read at any time is what is committed there."""
        for place, start, end, seen in self.setting.readings:
            committed = self.ledger.committed_values(place, start, end)
            if seen != committed:
                raise Violation(
                    f"a reader sees everything that is committed: {place} from {start} to {end}: {seen}, not"
                    f" {committed}"
                )

    def _check_partitions(self) -> None:
        for topic in self.setting.model.present():
            for index in range(len(topic.partitions)):
                self._check_partition((topic.name, index))

    def _check_partition(self, place: Place) -> None:
        reader = PartitionReader(self.client, place, self.setting.topic_id(place[0]), READ_COMMITTED, LEADERS_ONLY)
        reader.hurries = True
        reader.seek(0)
        end = self.setting.log_ends().get(place, 0)
        found: list[tuple[int, bytes]] = []
        deadline_ms = self.world.now_ms + READ_MS_MAX
        while reader.position < end:
            if self.world.now_ms > deadline_ms:
                raise Violation(f"what is committed can be read: {place} only up to {reader.position} of {end}")
            reader.fetch()
            self.world.run_for(STEP_MS)
            found += [(int(record.offset), bytes(record.value or b"")) for record in reader.take(1000)]
        if found != self.ledger.committed_values(place):
            raise Violation(
                f"a reader sees everything that is committed: {place}: {found}, not"
                f" {self.ledger.committed_values(place)}"
            )

    def _check_copies(self, copier: Copier) -> None:
        """Output equals input, exactly once."""
        copies = copier.copies(lambda attempt: attempt.decided == COMMIT)
        expected = [plain_copy(offset, value) for offset, value in self.ledger.committed_values(copier.source)]
        if copies != expected:
            raise Violation(
                f"offsets and output agree: {copier.name} copied {len(copies)} of {len(expected)} records; first"
                f" difference {next(((a, b) for a, b in zip(copies, expected, strict=False) if a != b), None)}"
            )

    def _check_offset(self, copier: Copier) -> None:
        question = OffsetQuestion(self.client, copier.group_id, copier.source)
        deadline_ms = self.world.now_ms + READ_MS_MAX
        while question.offset is None:
            if self.world.now_ms > deadline_ms:
                raise Violation(f"a committed offset can be read: {copier.group_id}")
            question.ask()
            self.world.run_for(STEP_MS)
        committed = self.ledger.committed_offset(copier.source)
        if question.offset != committed:
            raise Violation(f"offsets are committed with their transaction: {question.offset}, not {committed}")
