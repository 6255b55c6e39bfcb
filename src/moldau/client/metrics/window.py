"""Counts over Kafka's windows: what there was in all, and what there was lately.

Time is cut into samples of metrics.sample.window.ms. Lately means in the sample of the moment and in those before it,
metrics.num.samples together. Whoever counts only adds: a sample ends when the first count after its time finds that the
window has moved on, and rates are made when somebody asks for them.

A tally is written by one thread, or under one lock, and read by any: what another thread reads in the very moment in
which a sample ends may miss that sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from typing import Final

from mypy_extensions import i64

NUM_SAMPLES: Final = 2
SAMPLE_MS: Final = 30_000

_NOTHING_YET: Final = 1 << 62


class Window:
    """The time of all tallies of one client."""

    def __init__(self, started_ms: int, samples: int = NUM_SAMPLES, sample_ms: int = SAMPLE_MS) -> None:
        self.samples: i64 = samples
        # The number of the sample of the moment.
        self.number: i64 = 0
        self._started_ms: i64 = started_ms
        self._sample_ms: i64 = max(1, sample_ms)
        self._until_ms: i64 = self._started_ms + self._sample_ms

    def tick(self, now_ms: i64) -> None:
        """To be called before something is counted, by any thread."""
        if now_ms >= self._until_ms:
            number = (now_ms - self._started_ms) // self._sample_ms
            self.number = number
            self._until_ms = self._started_ms + (number + 1) * self._sample_ms

    def seconds(self, now_ms: i64) -> float:
        """For how long something counts as lately. As in Kafka, samples before the first one were empty ones."""
        in_sample = (now_ms - self._started_ms) % self._sample_ms
        return float(max(i64(1), in_sample + (self.samples - 1) * self._sample_ms)) / 1000.0


class _Sample:
    """What one sample that is over had."""

    def __init__(self, number: i64, count: i64, amount: i64, largest: i64, smallest: i64) -> None:
        self.number: i64 = number
        self.count: i64 = count
        self.amount: i64 = amount
        self.largest: i64 = largest
        self.smallest: i64 = smallest


class Tally:
    """How often something happened, how much it was, and the largest and smallest of it lately."""

    def __init__(self, window: Window) -> None:
        self._window: Window = window
        self._number: i64 = window.number
        # In all.
        self.count: i64 = 0
        self.amount: i64 = 0
        # What those were when the sample of the moment began.
        self._count_before: i64 = 0
        self._amount_before: i64 = 0
        self._largest: i64 = -1
        self._smallest: i64 = _NOTHING_YET
        self._past: list[_Sample] = []

    def record(self, value: i64) -> None:
        """It happened once, and was so much; never less than nothing."""
        if self._number != self._window.number:
            self._end_sample()
        self.count += 1
        self.amount += value
        if value > self._largest:
            self._largest = value
        if value < self._smallest:
            self._smallest = value

    def add(self, amount: i64) -> None:
        """There was so much more of it; for what nobody asks the largest of."""
        if self._number != self._window.number:
            self._end_sample()
        self.count += 1
        self.amount += amount

    def _end_sample(self) -> None:
        number = self._window.number
        oldest = number - self._window.samples
        kept: list[_Sample] = []
        for sample in self._past:
            if sample.number > oldest:
                kept.append(sample)
        if self.count > self._count_before and self._number > oldest:
            kept.append(
                _Sample(
                    self._number,
                    self.count - self._count_before,
                    self.amount - self._amount_before,
                    self._largest,
                    self._smallest,
                )
            )
        self._past = kept
        self._number = number
        self._count_before = self.count
        self._amount_before = self.amount
        self._largest = -1
        self._smallest = _NOTHING_YET

    def add_to(self, summary: Summary) -> None:
        """Only reads, and so may be another thread's. The window is to be ticked before."""
        summary.total_count += self.count
        summary.total_amount += self.amount
        oldest = self._window.number - self._window.samples
        for sample in self._past:
            if sample.number > oldest:
                summary.join(sample.count, sample.amount, sample.largest, sample.smallest)
        if self._number > oldest and self.count > self._count_before:
            summary.join(
                self.count - self._count_before, self.amount - self._amount_before, self._largest, self._smallest
            )


class Summary:
    """Some tallies together at one moment. What nothing happened of lately has no average: it is not a number."""

    def __init__(self) -> None:
        # In all.
        self.total_count: i64 = 0
        self.total_amount: i64 = 0
        # Lately.
        self.count: i64 = 0
        self.amount: i64 = 0
        self._largest: i64 = -1
        self._smallest: i64 = _NOTHING_YET

    def join(self, count: i64, amount: i64, largest: i64, smallest: i64) -> None:
        self.count += count
        self.amount += amount
        self._largest = max(self._largest, largest)
        self._smallest = min(self._smallest, smallest)

    @property
    def average(self) -> float:
        return float(self.amount) / float(self.count) if self.count > 0 else nan

    @property
    def largest(self) -> float:
        return float(self._largest) if self._largest >= 0 else nan

    @property
    def smallest(self) -> float:
        return float(self._smallest) if self._smallest < _NOTHING_YET else nan


def summarize(tallies: Iterable[Tally]) -> Summary:
    summary = Summary()
    for tally in tallies:
        tally.add_to(summary)
    return summary
