"""Records as files: the bytes of one, or many as JSON lines."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response

from moldau.actions.calls import Call, asking, reading
from moldau.actions.messages import bounds_of, browse_records, isolation_of, one_record, partitions_of
from moldau.client.record import ConsumerRecord
from moldau.facts.record_json import to_json_line

DOWNLOAD_MAX = 10_000


async def download_one(call: Call) -> object:
    """The bytes of a key or value as they are, as a file and nothing else."""
    topic, partition, offset = call.text("topic"), call.number("partition"), call.number("offset")
    record = await one_record(call, topic, partition, offset)
    side = call.text("side", "value")
    data = (record.key if side == "key" else record.value) or b""
    return _file(data, f"{topic}-{partition}-{offset}-{'key' if side == 'key' else 'value'}.bin")


async def download(call: Call) -> object:
    """Records as JSON lines, exactly as `moldau consume --format json` writes them."""
    topic = call.text("topic")
    limit = call.number("limit", 1_000, 1, DOWNLOAD_MAX)
    isolation = isolation_of(call)
    chosen = await partitions_of(call.viewer, topic, call.body.get("partitions"))
    bounds = await bounds_of(call.viewer, chosen, isolation)
    records, _, _ = await browse_records(call, bounds, limit, isolation)
    return _file(json_lines(records), f"{topic}.jsonl", "application/x-ndjson")


def json_lines(records: Iterable[ConsumerRecord]) -> bytes:
    return b"".join(to_json_line(record) for record in records)


def _file(data: bytes, name: str, media_type: str = "application/octet-stream") -> Response:
    # Topic names are letters, digits, dots, dashes and underscores.
    return Response(data, media_type=media_type, headers={"content-disposition": f'attachment; filename="{name}"'})


ROUTES = [
    reading("/api/messages/bytes", download_one),
    asking("/api/messages/download", download),
]
