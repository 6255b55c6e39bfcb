"""Records as they come: the live tail and the search, both as server-sent events that end when the page closes them.

Neither can flood a page: the tail shows so many records a second and says how many it left out, the search sends what
it found and otherwise only its progress.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse

from moldau.actions.calls import Call, asking
from moldau.actions.clients import close_later, in_stream_thread
from moldau.actions.decoding import read_schema
from moldau.actions.messages import isolation_of, partitions_of, record_row
from moldau.actions.refusals import Refused, error_row
from moldau.actions.searching import MATCHES_MAX, TICK_MS, decoded, matcher_of, search_of
from moldau.client.errors import ClientError
from moldau.client.offsets import LATEST
from moldau.client.results import TopicPartition
from moldau.console.tail_limit import TailLimit

if TYPE_CHECKING:
    from moldau.client.consumer import Consumer

PER_SECOND = 20
PER_SECOND_MAX = 200
HEARTBEAT_S = 5.0

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
                    close_later(consumer)

    return StreamingResponse(body(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})


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
            wanted = [record for record in records if matcher.matches(record, decoded(record, key, value))]
            shown = limit.take(wanted, time.monotonic())
            jumped = await in_stream_thread(lambda: _catch_up(consumer, ends, limit)) if records else 0
            left_out = len(wanted) - len(shown) + jumped
            if shown or left_out:
                said_at = time.monotonic()
                yield {
                    "records": [record_row(record, key, value, call.preview_chars) for record in shown],
                    "left_out": left_out,
                }
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


async def search(call: Call) -> object:
    """Looks through a range from its beginning to where it ended when the search began."""
    found = await search_of(call)
    limit = call.number("limit", MATCHES_MAX, 1, MATCHES_MAX)
    progress = found.progress

    async def events(consumer: Consumer) -> Events:
        yield progress.event()
        count = 0
        await in_stream_thread(lambda: found.begin(consumer))
        while not progress.done:
            wanted = await in_stream_thread(lambda: found.look(consumer))
            rows = [
                record_row(record, found.key, found.value, call.preview_chars) for record in wanted[: limit - count]
            ]
            count += len(rows)
            if rows or progress.due(time.monotonic()):
                yield progress.event() | {"records": rows, "found": count}
            if count >= limit:
                yield progress.event() | {"found": count, "stopped": f"Stopped at {limit:,} matches."}
                return
        yield progress.event() | {"found": count, "done": True}

    return _stream(call, events, isolation_of(call))


ROUTES = [
    asking("/api/messages/tail", tail),
    asking("/api/messages/search", search),
]
