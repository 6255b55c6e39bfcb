"""`moldau consume --group`: reads as a member of a group; what was printed is committed, and nothing else."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from moldau.cli import positions
from moldau.cli.output import print_note
from moldau.cli.positions import Position
from moldau.cli.stopping import Stopping
from moldau.client.results import TopicPartition
from moldau.client.text_consumer import TextConsumer
from moldau.client.wiring import wired

if TYPE_CHECKING:
    from moldau.cli.consume_output import Output

POLL_MS = 1_000
COMMIT_S = 1.0


def check_start(start: Position) -> None:
    if start.kind not in (positions.BEGINNING, positions.END):
        raise click.UsageError(
            "A group starts where it stopped, and the first time at `-o beginning` or `-o end`. `moldau group"
            " reset-offsets` moves it elsewhere."
        )


def consume_as_member(
    config: dict[str, object],
    group: str,
    topics: tuple[str, ...],
    count: int | None,
    follow: bool,
    output: Output,
    timeout_s: float,
) -> None:
    """Joins, prints, commits, leaves."""
    config = {**config, "group.id": group, "enable.auto.commit": "false"}
    with TextConsumer(config=wired(config, first_contact_ms=0)) as consumer:
        there = [item for topic in dict.fromkeys(topics) for item in consumer.partitions_for(topic)]
        ends = None if follow else consumer.end_offsets(there)
        with Stopping(consumer.interrupt_poll) as stop:
            consumer.subscribe(topics)
            Membership(consumer, group, output, ends, count, timeout_s, stop).run()
            consumer.close()
            stop.raise_requested()


class Membership:
    """One stay in a group."""

    def __init__(
        self,
        consumer: TextConsumer,
        group: str,
        output: Output,
        ends: dict[TopicPartition, int] | None,
        count: int | None,
        timeout_s: float,
        stop: Stopping,
    ) -> None:
        self.consumer = consumer
        self.group = group
        self.output = output
        self.ends = ends
        self.count = count
        self.timeout_s = timeout_s
        self.stop = stop
        self._assigned: list[TopicPartition] = []
        self._uncommitted = False

    def run(self) -> None:
        self._loop()
        # What was printed is printed, also when somebody ends the command: the group goes on behind it.
        self._commit()

    def _loop(self) -> None:
        committed = idle_since = time.monotonic()
        while not self.stop.requested and (self.count is None or self.output.rows < self.count):
            remaining = None if self.count is None else self.count - self.output.rows
            rows = self.output.poll(self.consumer, POLL_MS, remaining, None)
            self._tell_assignment()
            now = time.monotonic()
            if rows:
                self._uncommitted = True
            if rows or self._assigned:
                idle_since = now
            if now - committed >= COMMIT_S:
                self._commit()
                committed = now
            if not rows and self._at_end():
                return
            if self.ends is not None and now - idle_since > self.timeout_s:
                print_note(f"Group {self.group} gave this member no partitions: others have them all.")
                return

    def _at_end(self) -> bool:
        if self.ends is None or not self._assigned:
            return False
        return all(self.consumer.position(item) >= self.ends.get(item, 0) for item in self._assigned)

    def _commit(self) -> None:
        if self._uncommitted:
            self.consumer.commit()
            self._uncommitted = False

    def _tell_assignment(self) -> None:
        assigned = sorted(self.consumer.assignment())
        if assigned != self._assigned:
            self._assigned = assigned
            if sys.stderr.isatty():
                names = ", ".join(str(item) for item in assigned) or "none"
                print_note(f"Group {self.group}, partitions of this member: {names}")
