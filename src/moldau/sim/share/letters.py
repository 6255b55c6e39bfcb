"""Dead letters in a simulated cluster: each record that is given up has one, and nothing else does.

Reads every committed letter by its headers alone, and is told by the ledger what becomes of the states of records. A
letter and a state may be on different nodes, so what seems to be missing is looked for everywhere before anybody is
accused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.node.share.record_states import ARCHIVED, ARCHIVING
from moldau.records.batch import read_header
from moldau.records.walk import Record, read_records
from moldau.sim.kernel.world import Violation

if TYPE_CHECKING:
    from moldau.sim.share.world import ShareWorld

PREFIX = "dlq."
Place = tuple[SharePartitionKey, int]
"""Share partition and offset."""


class LetterLedger:
    """See the module."""

    def __init__(self, setting: ShareWorld) -> None:
        self.setting = setting
        self.written = 0
        self.copied = 0
        self._letters: dict[Place, int] = {}
        # What was ever stored as ARCHIVING, and what there was ever a cause for.
        self._archiving: set[Place] = set()
        self._caused: set[Place] = set()
        self._gaps: set[Place] = set()
        # Checked when nothing is under way: places that must have a letter, those that must have been ARCHIVING.
        self._owed: list[Place] = []
        self._unexplained: list[Place] = []
        self._promised: dict[Place, int] = {}
        """Rejections that were answered with success, and in which generation of the state."""

    @property
    def repeated(self) -> int:
        return self.written - len(self._letters)

    def on_gap(self, key: SharePartitionKey, offset: int) -> None:
        """A member says that there is no record."""
        self._gaps.add((key, offset))

    def on_cause(self, key: SharePartitionKey, offset: int) -> None:
        """A member rejects it, or has it for the last time."""
        self._caused.add((key, offset))

    # What is committed

    def on_committed(self, batch: bytes) -> None:
        header = read_header(batch, 0, len(batch))
        for record in [] if header.is_control else read_records(batch, header):
            self._on_letter(record)

    def _on_letter(self, record: Record) -> None:
        told = {name: (value or b"").decode() for name, value in record.headers[-6:]}
        topic = next(found for found in self.setting.model.topics if found.name == told["__dlq.errors.topic"])
        key = (told["__dlq.errors.group"], topic.topic_id, int(told["__dlq.errors.partition"]))
        place = (key, int(told["__dlq.errors.offset"]))
        if int(told["__dlq.errors.delivery.count"]) < 1 or not told["__dlq.errors.message"]:
            raise Violation(f"a dead letter says why: {self._name(place)} {told}")
        self.written += 1
        self._letters[place] = self._letters.get(place, 0) + 1
        if place not in self._archiving or not self._is_record(place):
            self._unexplained.append(place)
        source = self.setting.ledger.log_of(topic.name, key[2])
        is_gone = place[1] < topic.partitions[key[2]].start_high or self.setting.is_compacted(topic.name)
        if self.setting.copies_records(key[0]):
            self.copied += record.value is not None
            if record.value is None and not is_gone and self._is_record(place):
                raise Violation(f"a dead letter has a copy of its record: {self._name(place)}")
            if record.value is not None and (record.key, record.value) != source.contents.get(place[1]):
                raise Violation(f"a dead letter has a copy of its own record: {self._name(place)}")
        elif record.key is not None or record.value is not None:
            raise Violation(f"a dead letter has a copy only where that is wanted: {self._name(place)}")

    def on_state(self, key: SharePartitionKey, offset: int, before: int, state: int) -> None:
        """The stored state of a record; it may be as it was. -1 when there was none."""
        place = (key, offset)
        if state == ARCHIVING:
            if place not in self._caused:
                raise Violation(f"only what is rejected, or was tried too often, is given up: {self._name(place)}")
            self._archiving.add(place)
        elif state == ARCHIVED and before != state and self.setting.has_dead_letters:
            if before == ARCHIVING or place not in self._gaps:
                self._owed.append(place)

    def on_passed(self, key: SharePartitionKey, offset: int, state: int) -> None:
        """A stored start offset has passed it."""
        if state == ARCHIVING:
            self._owed.append((key, offset))

    def on_told_rejected(self, key: SharePartitionKey, offset: int, state: int, generation: int) -> None:
        """A member was told that its rejection is stored."""
        if state == ARCHIVING:
            self._promised.setdefault((key, offset), generation)
        elif state == ARCHIVED and self.setting.has_dead_letters and (key, offset) not in self._gaps:
            self._owed.append((key, offset))

    # Whether that is right

    def check(self) -> None:
        if not self._owed and not self._unexplained:
            return
        known = all(self._is_record(place) for place in self._owed + self._unexplained)
        if not known or self._missing() is not None or self._wrong() is not None:
            self.setting.checks.look_at_all()
        missing, wrong = self._missing(), self._wrong()
        markers = [place for place in self._unexplained if not self._is_record(place)]
        if markers:
            raise Violation(f"only a record has a dead letter: {self._name(markers[0])}")
        if missing is not None:
            raise Violation(f"no record is given up before its dead letter is written: {self._name(missing)}")
        if wrong is not None:
            raise Violation(f"only what is given up has a dead letter: {self._name(wrong)}")
        self._owed = []
        self._unexplained = []

    def check_end(self) -> None:
        """Everything is done with."""
        self.check()
        for place, generation in self._promised.items():
            is_same = self.setting.ledger.share(place[0]).generation == generation
            if is_same and place not in self._letters and self._is_record(place):
                raise Violation(f"what was rejected with success has a dead letter: {self._name(place)}")

    def _missing(self) -> Place | None:
        return next((place for place in self._owed if place not in self._letters and self._is_record(place)), None)

    def _is_record(self, place: Place) -> bool:
        """Offsets of transaction markers are locked and given up too, with the records around them."""
        topic = self.setting.model.by_id(place[0][1])
        return topic is None or place[1] in self.setting.ledger.log_of(topic.name, place[0][2]).data

    def _wrong(self) -> Place | None:
        return next((place for place in self._unexplained if place not in self._archiving), None)

    def _name(self, place: Place) -> str:
        return f"{self.setting.ledger.name_of(place[0])} offset {place[1]}"
