"""Records of a topic: browsed from an offset, a time, the beginning or the end; one record whole."""

from __future__ import annotations

from moldau.actions.calls import Call, asking, reading
from moldau.actions.clients import in_thread
from moldau.actions.decoding import FORMATS, Schema, read_schema, show, show_record
from moldau.actions.produce import read_bytes
from moldau.actions.record_reading import Range, Read, read_forward, read_newest
from moldau.actions.refusals import Refused
from moldau.actions.topics import topic_of
from moldau.actions.viewer import Viewer
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition

RECORDS = 50
RECORDS_MAX = 500
# In the order of the protocol: 0 and 1.
ISOLATION = ("read_uncommitted", "read_committed")
NEWEST = "newest"
OLDEST = "oldest"
OFFSET = "offset"
TIME = "time"


def record_row(record: ConsumerRecord, key: Schema, value: Schema, preview_chars: int) -> dict[str, object]:
    """A record as the pages show it; what is longer than a preview is cut, and says so."""
    shown_key, shown_value = show_record(record, key, value)
    sizes = [None if data is None else len(data) for data in (record.key, record.value)]
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "log_append_time": record.timestamp_type == 1,
        "leader_epoch": record.leader_epoch,
        "key": _side(shown_key.format, shown_key.text, shown_key.note, sizes[0], preview_chars),
        "value": _side(shown_value.format, shown_value.text, shown_value.note, sizes[1], preview_chars),
        "headers": [
            {"name": show(name.encode(), Schema("text")).text, "value": show(data, Schema())._asdict()}
            for name, data in record.headers
        ],
    }


def _side(name: str, text: str, note: str, size: int | None, preview_chars: int) -> dict[str, object]:
    cut = len(text) > preview_chars
    return {"format": name, "text": text[:preview_chars], "note": note, "size": size, "cut": cut}


async def partitions_of(viewer: Viewer, topic: str, wanted: object) -> list[TopicPartition]:
    """Those that were named, or all that have a leader."""
    found = (await topic_of(viewer, topic)).partitions
    if wanted in (None, [], ""):
        return [TopicPartition(topic, number) for number, item in sorted(found.items()) if item.leader >= 0]
    if not isinstance(wanted, list) or not all(isinstance(number, int) for number in wanted):
        raise Refused("partitions is not a list of numbers.")
    for number in wanted:
        if number not in found:
            raise Refused(f"Topic {topic} has partitions 0 to {len(found) - 1}; there is no partition {number}.", 404)
    return [TopicPartition(topic, number) for number in sorted(set(wanted))]


async def bounds_of(viewer: Viewer, partitions: list[TopicPartition], isolation: str) -> dict[TopicPartition, Range]:
    """From the first record to the end, which for committed records alone is the last stable offset."""
    starts = await viewer.offsets_at(partitions, EARLIEST)
    ends = await viewer.offsets_at(partitions, LATEST, ISOLATION.index(isolation))
    return {each: Range(starts[each], ends[each]) for each in partitions if each in starts and each in ends}


def isolation_of(call: Call) -> str:
    given = call.text("isolation", ISOLATION[0])
    if given not in ISOLATION:
        raise Refused(f"There is no isolation level {given!r}.")
    return given


async def starts_at(call: Call, bounds: dict[TopicPartition, Range]) -> dict[TopicPartition, Range]:
    """What the question leaves of each partition, from where it wants to begin."""
    cursor = call.body.get("cursor")
    if isinstance(cursor, dict):
        told = {each: cursor[str(each.partition)] for each in bounds if str(each.partition) in cursor}
        if not all(isinstance(offset, int) for offset in told.values()):
            raise Refused("The cursor is not one of an earlier result.")
        return {each: Range(max(found.start, told.get(each, found.end)), found.end) for each, found in bounds.items()}
    where = call.text("from", NEWEST)
    if where == OFFSET:
        offset = call.number("offset")
        return {each: Range(min(max(found.start, offset), found.end), found.end) for each, found in bounds.items()}
    if where == TIME:
        at = await call.viewer.offsets_at(bounds, call.number("time"))
        return {
            each: Range(at[each] if at.get(each, -1) >= 0 else found.end, found.end) for each, found in bounds.items()
        }
    return bounds


async def browse(call: Call) -> object:
    """One page of records and where the next one begins."""
    key, value = read_schema(call.body.get("key")), read_schema(call.body.get("value"))
    limit = call.number("limit", RECORDS, 1, RECORDS_MAX)
    topic = call.text("topic")
    isolation = isolation_of(call)
    chosen = await partitions_of(call.viewer, topic, call.body.get("partitions"))
    bounds = await bounds_of(call.viewer, chosen, isolation)
    records, cursor, more = await browse_records(call, bounds, limit, isolation)
    return {
        "records": [record_row(record, key, value, call.preview_chars) for record in records],
        "cursor": {str(each.partition): offset for each, offset in cursor.items()},
        "more": more,
        "bounds": {str(each.partition): [found.start, found.end] for each, found in bounds.items()},
    }


async def browse_records(
    call: Call, bounds: dict[TopicPartition, Range], limit: int, isolation: str
) -> tuple[list[ConsumerRecord], dict[TopicPartition, int], bool]:
    """Records from where the question wants to begin, where to go on, and whether there are more."""
    if call.text("from", NEWEST) == NEWEST:
        return await _browse_newest(call, bounds, limit, isolation)
    return await _browse_forward(call, await starts_at(call, bounds), limit, isolation)


async def _browse_newest(
    call: Call, bounds: dict[TopicPartition, Range], limit: int, isolation: str
) -> tuple[list[ConsumerRecord], dict[TopicPartition, int], bool]:
    given = call.body.get("cursor")
    ranges = dict(bounds)
    if isinstance(given, dict):
        for each, found in bounds.items():
            end = given.get(str(each.partition), found.end)
            if not isinstance(end, int):
                raise Refused("The cursor is not one of an earlier result.")
            ranges[each] = Range(found.start, min(max(end, found.start), found.end))

    def work() -> tuple[list[ConsumerRecord], dict[TopicPartition, int]]:
        consumer = call.viewer.clients.open_consumer(isolation)
        try:
            return read_newest(consumer, ranges, limit)
        finally:
            consumer.close(0)

    records, cursor = await in_thread(work)
    return records, cursor, any(cursor[each] > bounds[each].start for each in cursor)


async def _browse_forward(
    call: Call, ranges: dict[TopicPartition, Range], limit: int, isolation: str
) -> tuple[list[ConsumerRecord], dict[TopicPartition, int], bool]:
    read = await read_records(call.viewer, ranges, limit, isolation)
    records, cursor = oldest_of(read, limit)
    return records, cursor, any(cursor[each] < ranges[each].end for each in cursor)


async def read_records(viewer: Viewer, ranges: dict[TopicPartition, Range], limit: int, isolation: str) -> Read:
    def work() -> Read:
        consumer = viewer.clients.open_consumer(isolation)
        try:
            return read_forward(consumer, ranges, limit)
        finally:
            consumer.close(0)

    return await in_thread(work)


def oldest_of(read: Read, limit: int) -> tuple[list[ConsumerRecord], dict[TopicPartition, int]]:
    """Merges partitions by timestamp, each in its own order, and tells where the next page begins."""
    waiting: dict[TopicPartition, list[ConsumerRecord]] = {}
    for record in read.records:
        waiting.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
    for records in waiting.values():
        records.reverse()
    cursor = dict(read.positions)
    for each, records in waiting.items():
        cursor[each] = records[-1].offset
    chosen: list[ConsumerRecord] = []
    while waiting and len(chosen) < limit:
        each = min(waiting, key=lambda each: (waiting[each][-1].timestamp, each.partition))
        record = waiting[each].pop()
        chosen.append(record)
        cursor[each] = record.offset + 1
        if not waiting[each]:
            cursor[each] = read.positions[each]
            del waiting[each]
    return chosen, cursor


async def one_record(call: Call, topic: str, partition: int, offset: int) -> ConsumerRecord:
    where = TopicPartition(topic, partition)
    await partitions_of(call.viewer, topic, [partition])
    read = await read_records(call.viewer, {where: Range(offset, offset + 1)}, 1, ISOLATION[0])
    if not read.records:
        raise Refused(f"There is no record at offset {offset} of {topic}-{partition}.", 404, "NOT_FOUND")
    return read.records[0]


async def show_one(call: Call) -> object:
    """A record whole."""
    key, value = read_schema(call.body.get("key")), read_schema(call.body.get("value"))
    record = await one_record(call, call.text("topic"), call.number("partition"), call.number("offset"))
    return record_row(record, key, value, 2**31)


async def show_formats(call: Call) -> object:
    """What can be decoded here, where packages for some formats may be missing."""
    return {"formats": FORMATS, "avro": _has("fastavro"), "protobuf": _has("google.protobuf")}


def _has(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ImportError:
        return False


async def partition_of_key(call: Call) -> object:
    """Where Kafka's default partitioner puts a key; null goes anywhere."""
    from moldau.records.murmur2 import partition_for_key

    key = read_bytes("The key", call.body.get("key"))
    topic = await topic_of(call.viewer, call.text("topic"))
    return {"partition": None if key is None else partition_for_key(key, len(topic.partitions))}


ROUTES = [
    reading("/api/formats", show_formats),
    asking("/api/messages/browse", browse),
    asking("/api/messages/one", show_one),
    asking("/api/messages/partition-of-key", partition_of_key),
]
