"""Records as they come: the live tail and the search, both as server-sent events that end when the page closes them.

Neither can flood a page: the tail shows so many records a second and says how many it left out, the search sends what
it found and otherwise only its progress.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse

from moldau.client.errors import ClientError
from moldau.client.offsets import LATEST
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition
from moldau.console.calls import Call, asking
from moldau.console.clients import in_stream_thread
from moldau.console.decoding import AUTO, Schema, read_schema, show_record
from moldau.console.errors import Refused, error_row
from moldau.console.matching import Matcher
from moldau.console.messages import bounds_of, isolation_of, partitions_of, record_row, starts_at
from moldau.console.record_reading import Range, size_of
from moldau.console.tail_limit import TailLimit

if TYPE_CHECKING:
    from moldau.client.consumer import Consumer

PER_SECOND = 20
PER_SECOND_MAX = 200
TICK_MS = 250
HEARTBEAT_S = 5.0
SEARCH_BATCH = 500
MATCHES_MAX = 500
PROGRESS_S = 0.25
# Formats whose bytes contain the text that people see.
PLAIN_FORMATS = (AUTO, "json", "text")

Events = AsyncGenerator[dict[str, object], None]


def _stream(call: Call, events: Callable[[Consumer], Events], isolation: str) -> StreamingResponse:
    async def body() -> AsyncIterator[bytes]:
        if call.viewer.streams.locked():
            yield _event(error_row(Refused("Too many live views are open. Close some first.")))
            return
        async with call.viewer.streams:
            consumer: Consumer | None = None
            try:
                consumer = await in_stream_thread(lambda: call.viewer.clients.open_consumer(isolation))
                async with contextlib.aclosing(events(consumer)) as found:
                    async for event in found:
                        call.viewer.look()
                        yield _event(event)
            except (ClientError, Refused) as error:
                yield _event(error_row(error))
            finally:
                if consumer is not None:
                    _close_later(consumer)

    return StreamingResponse(body(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})


_closing: set[asyncio.Task[None]] = set()


def _close_later(consumer: Consumer) -> None:
    """Who closed the page does not wait; a poll that is under way has its thread for a moment longer."""

    async def close() -> None:
        consumer.wakeup()
        for _ in range(40):
            try:
                await in_stream_thread(lambda: consumer.close(0))
                return
            except Exception:
                await asyncio.sleep(TICK_MS / 1000)

    task = asyncio.get_running_loop().create_task(close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)


def _event(data: dict[str, object]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=True)}\n\n".encode()


# Live tail


async def tail(call: Call) -> object:
    """What arrives from now on."""
    key, value = read_schema(call.body.get("key")), read_schema(call.body.get("value"))
    topic = call.text("topic")
    partitions = await partitions_of(call.viewer, topic, call.body.get("partitions"))
    per_second = call.number("per_second", PER_SECOND, 1, PER_SECOND_MAX)
    matcher = matcher_of(call)
    preview = call.console.settings.preview_bytes

    async def events(consumer: Consumer) -> Events:
        ends = await call.viewer.offsets_at(partitions, LATEST)

        def begin() -> None:
            consumer.assign(list(ends))
            for each, end in ends.items():
                consumer.seek(each, end)

        await in_stream_thread(begin)
        yield {"started": True, "partitions": len(ends)}
        limit = TailLimit(per_second, time.monotonic())
        said_at = time.monotonic()
        while True:
            records = await in_stream_thread(lambda: consumer.poll(TICK_MS, limit.fetch_max))
            wanted = [record for record in records if matcher.matches(record, _decoded(record, key, value))]
            shown = limit.take(wanted, time.monotonic())
            jumped = await in_stream_thread(lambda: _catch_up(consumer, ends, limit)) if records else 0
            left_out = len(wanted) - len(shown) + jumped
            if shown or left_out:
                said_at = time.monotonic()
                yield {"records": [record_row(record, key, value, preview) for record in shown], "left_out": left_out}
            elif time.monotonic() - said_at > HEARTBEAT_S:
                # A connection that is dead is noticed by writing to it.
                said_at = time.monotonic()
                yield {"waiting": True}

    return _stream(call, events, isolation_of(call))


def _catch_up(consumer: Consumer, partitions: dict[TopicPartition, int], limit: TailLimit) -> int:
    """Jumps to the end of partitions that fill faster than they are shown; tells how many records that leaves out."""
    left_out = 0
    for each in partitions:
        lag = consumer.lag(each)
        if lag is not None and lag > limit.behind_max:
            position = consumer.position(each)
            consumer.seek(each, position + lag)
            left_out += lag
    return left_out


# Search


def matcher_of(call: Call) -> Matcher:
    key = call.body.get("key_is")
    if key is not None and not isinstance(key, str):
        raise Refused("key_is is not a text.")
    return Matcher(
        call.text("text", ""),
        call.text("place", "anywhere"),
        None if not key else key.encode(),
        call.text("field", ""),
        not call.flag("exact_case"),
    )


def _decoded(record: ConsumerRecord, key: Schema, value: Schema) -> str:
    """The value's text where its bytes do not show it."""
    if value.format in PLAIN_FORMATS and not record.topic.startswith("__"):
        return ""
    return show_record(record, key, value)[1].text


async def search(call: Call) -> object:
    """Looks through a range from its beginning to where it ended when the search began."""
    key, value = read_schema(call.body.get("key")), read_schema(call.body.get("value"))
    partitions = await partitions_of(call.viewer, call.text("topic"), call.body.get("partitions"))
    bounds = await bounds_of(call.viewer, partitions, isolation_of(call))
    ranges = await _ended(call, await starts_at(call, bounds))
    limit = call.number("limit", MATCHES_MAX, 1, MATCHES_MAX)
    matcher = matcher_of(call)
    preview = call.console.settings.preview_bytes

    async def events(consumer: Consumer) -> Events:
        progress = Progress(ranges)

        def look() -> list[ConsumerRecord]:
            records = consumer.poll(TICK_MS, SEARCH_BATCH)
            progress.note(consumer, records)
            return _matching(records, ranges, matcher, key, value)

        yield progress.event()
        found = 0
        await in_stream_thread(lambda: _begin(consumer, ranges))
        while not progress.done:
            wanted = await in_stream_thread(look)
            rows = [record_row(record, key, value, preview) for record in wanted[: limit - found]]
            found += len(rows)
            if rows or progress.due(time.monotonic()):
                yield progress.event() | {"records": rows, "found": found}
            if found >= limit:
                yield progress.event() | {"found": found, "stopped": f"Stopped at {limit:,} matches."}
                return
        yield progress.event() | {"found": found, "done": True}

    return _stream(call, events, isolation_of(call))


async def _ended(call: Call, ranges: dict[TopicPartition, Range]) -> dict[TopicPartition, Range]:
    """With the end that a question may set: a time up to which it looks."""
    until = call.optional_number("until")
    if until is None:
        return ranges
    at = await call.viewer.offsets_at(ranges, until)
    return {
        each: Range(found.start, max(found.start, at[each]) if at.get(each, -1) >= 0 else found.end)
        for each, found in ranges.items()
    }


def _begin(consumer: Consumer, ranges: dict[TopicPartition, Range]) -> None:
    chosen = {each: found for each, found in ranges.items() if found.start < found.end}
    consumer.assign(list(chosen))
    for each, found in chosen.items():
        consumer.seek(each, found.start)


def _matching(
    records: list[ConsumerRecord], ranges: dict[TopicPartition, Range], matcher: Matcher, key: Schema, value: Schema
) -> list[ConsumerRecord]:
    return [
        record
        for record in records
        if record.offset < ranges[TopicPartition(record.topic, record.partition)].end
        and matcher.matches(record, _decoded(record, key, value))
    ]


class Progress:
    """How much of the ranges has been looked through."""

    def __init__(self, ranges: dict[TopicPartition, Range]) -> None:
        self._ranges = ranges
        self._positions = {each: found.start for each, found in ranges.items()}
        self._total = sum(found.end - found.start for found in ranges.values())
        self._began = time.monotonic()
        self._said_at = 0.0
        self._records = 0
        self._bytes = 0

    @property
    def done(self) -> bool:
        return all(self._positions[each] >= found.end for each, found in self._ranges.items())

    def note(self, consumer: Consumer, records: list[ConsumerRecord]) -> None:
        self._records += len(records)
        self._bytes += sum(size_of(record) for record in records)
        finished = []
        for each, found in self._ranges.items():
            if self._positions[each] < found.end:
                self._positions[each] = min(consumer.position(each), found.end)
                if self._positions[each] >= found.end:
                    finished.append(each)
        if finished:
            consumer.pause(finished)

    def due(self, now_s: float) -> bool:
        return now_s - self._said_at >= PROGRESS_S

    def event(self) -> dict[str, object]:
        self._said_at = time.monotonic()
        passed = sum(self._positions[each] - found.start for each, found in self._ranges.items())
        return {
            "offsets": passed,
            "of_offsets": self._total,
            "scanned": self._records,
            "bytes": self._bytes,
            "seconds": round(time.monotonic() - self._began, 2),
        }


ROUTES = [
    asking("/api/messages/tail", tail),
    asking("/api/messages/search", search),
]
