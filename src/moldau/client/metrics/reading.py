"""What consumers count: once per poll, per response and per partition that a poll took records of."""

from __future__ import annotations

from moldau.client.metrics.meters import RATIO_UNIT
from moldau.client.metrics.window import Tally, Window


class ReadTopicMeter:
    """What was read of one topic."""

    def __init__(self, window: Window) -> None:
        # What poll() gave, and the bytes of those records before compression.
        self.records = Tally(window)
        self.bytes = Tally(window)
        # What a response brought.
        self.fetch_sizes = Tally(window)
        self.records_per_request = Tally(window)


class PartitionMeter:
    """How far the reader of a partition is from both ends of it, whenever poll() gave records of it."""

    def __init__(self, window: Window) -> None:
        self.lags = Tally(window)
        self.leads = Tally(window)
        # The last ones; None before the first.
        self.lag: int | None = None
        self.lead: int | None = None

    def record(self, lag: int, lead: int) -> None:
        self.lag, self.lead = lag, lead
        self.lags.record(lag)
        self.leads.record(lead)


class ReadMeter:
    """What a consumer, of a share group or not, fetched and gave."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.topics: dict[str, ReadTopicMeter] = {}
        self.latencies_ms = Tally(window)
        self.fetch_sizes = Tally(window)
        self.records_per_request = Tally(window)
        # The response that is being taken over: bytes and records of each topic.
        self._response: dict[str, list[int]] = {}

    def topic(self, name: str) -> ReadTopicMeter:
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = ReadTopicMeter(self.window)
        return found

    def add_fetched(self, topic: str, size: int, records: int) -> None:
        """The response at hand has so much of a partition."""
        found = self._response.get(topic)
        if found is None:
            self._response[topic] = [size, records]
        else:
            found[0] += size
            found[1] += records

    def end_response(self, latency_ms: int) -> None:
        """Responses without records have a latency and no size, as in Kafka."""
        self.latencies_ms.record(max(0, latency_ms))
        response, self._response = self._response, {}
        if not response:
            return
        for name, (size, records) in response.items():
            topic = self.topic(name)
            topic.fetch_sizes.record(size)
            topic.records_per_request.record(records)
        self.fetch_sizes.record(sum(size for size, _ in response.values()))
        self.records_per_request.record(sum(records for _, records in response.values()))


class ShareMeter(ReadMeter):
    """What a share consumer fetched, gave and acknowledged."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self.records = Tally(window)
        # How many records something was said of, and of how many it was not taken.
        self.acknowledgements = Tally(window)
        self.failed_acknowledgements = Tally(window)


class PollMeter:
    """How often the user calls poll(), and for how long other calls block."""

    def __init__(self, window: Window) -> None:
        self.between_ms = Tally(window)
        # The part of the time that was spent within poll(), in millionths.
        self.idle_ratios = Tally(window)
        self.started_ms: int | None = None
        self._between_ms = 0
        self.commit_sync_ns = 0
        self.committed_ns = 0

    def on_start(self, now_ms: int) -> None:
        if self.started_ms is not None:
            self._between_ms = now_ms - self.started_ms
            self.between_ms.record(self._between_ms)
        self.started_ms = now_ms

    def on_end(self, now_ms: int) -> None:
        spent_ms = now_ms - (self.started_ms or 0)
        whole_ms = spent_ms + self._between_ms
        if whole_ms > 0:
            self.idle_ratios.record(spent_ms * RATIO_UNIT // whole_ms)
