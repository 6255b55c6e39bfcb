"""What is counted where bytes, requests and batches go by: plain numbers, once per request or batch, never per record.

What a client has in all is the sum over its brokers or topics, and is summed up when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mypy_extensions import i64

from moldau.client.metrics.window import Tally, Window

# Ratios are counted in millionths.
RATIO_UNIT: Final = 1_000_000

EVERY_API: Final = -1


class NodeMeter:
    """What went to one broker and came from it, over one connection after the other."""

    def __init__(self, window: Window) -> None:
        self.bytes_out: Tally = Tally(window)
        self.bytes_in: Tally = Tally(window)
        # Sizes of requests, as many as there were.
        self.requests: Tally = Tally(window)
        self.responses: Tally = Tally(window)
        self.latencies_ms: Tally = Tally(window)
        # Of all responses that tell of throttling; most are 0.
        self.throttle_times_ms: Tally = Tally(window)


class NetworkMeter:
    """What one client's network does."""

    def __init__(self, window: Window, latency_api: int = EVERY_API) -> None:
        """latency_api: the latency of a node is that of such requests, as in Kafka: of Produce, or of Fetch."""
        self.window: Window = window
        self.latency_api: int = latency_api
        # By address, of a length that is not told to the compiler: see connection/transport.py.
        self.nodes: dict[tuple[Any, ...], NodeMeter] = {}
        self.connections: i64 = 0
        self.connections_created: Tally = Tally(window)
        self.connections_closed: Tally = Tally(window)
        # Nanoseconds in which nothing was ready, and those in which bytes were moved and responses handled.
        self.wait_ns: Tally = Tally(window)
        self.work_ns: Tally = Tally(window)
        self.authentications: Tally = Tally(window)
        self.failed_authentications: Tally = Tally(window)
        # Milliseconds that it took to log in again (KIP-368).
        self.reauthentications: Tally = Tally(window)
        self.failed_reauthentications: Tally = Tally(window)
        # Told what brokers offer, at each connection: lowest and highest version by api key.
        self.on_versions: Callable[[dict[int, tuple[int, int]]], None] | None = None

    def node(self, address: tuple[Any, ...]) -> NodeMeter:
        found = self.nodes.get(address)
        if found is None:
            found = NodeMeter(self.window)
            self.nodes[address] = found
        return found


class TopicMeter:
    """What a producer did with the batches of one topic."""

    def __init__(self, window: Window) -> None:
        # Records and bytes of batches that were sent, those that were sent again counted again, as in Kafka.
        self.records: Tally = Tally(window)
        self.batches: Tally = Tally(window)
        # The compressed size over the uncompressed one, in millionths.
        self.compression: Tally = Tally(window)
        self.retries: Tally = Tally(window)
        self.errors: Tally = Tally(window)


class ProduceMeter:
    """What a producer did. The user's threads and the sender's add to it, each to other tallies or under their lock."""

    def __init__(self, window: Window) -> None:
        self.window: Window = window
        self.topics: dict[str, TopicMeter] = {}
        # How many records a request had.
        self.requests: Tally = Tally(window)
        # For how long batches waited until they were sent.
        self.queue_times_ms: Tally = Tally(window)
        # The largest record of each batch, and the bytes of all of them before compression.
        self.record_sizes: Tally = Tally(window)
        self.record_bytes: Tally = Tally(window)
        self.splits: Tally = Tally(window)
        self.exhausted: Tally = Tally(window)
        self.memory_wait_ns: Tally = Tally(window)
        self.metadata_wait_ns: i64 = 0
        self.flush_ns: i64 = 0
        # By what was called: init, begin, send-offsets, prepare, commit, abort.
        self.transaction_ns: dict[str, int] = {}

    def topic(self, name: str) -> TopicMeter:
        found = self.topics.get(name)
        if found is None:
            found = TopicMeter(self.window)
            self.topics[name] = found
        return found
