"""Reads one range of offsets straight from the leader into Arrow, in the columns of Spark's Kafka connector.

This is what a task on an executor does. Fetched batches are decoded into Arrow buffers without an object for a record
(records/arrow_decoder.py), a few thousand rows at a time. Leaders that move and brokers that are away for a while are
waited out for `poll_timeout_ms`; nothing is read twice, because the position only moves behind what was handed out.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Mapping

import pyarrow as pa

from moldau.client import config as client_settings
from moldau.client.arrow import to_arrays
from moldau.client.connection.cluster import TopicMetadata
from moldau.client.errors import ClientError
from moldau.client.offsets import EARLIEST, LATEST, list_offsets
from moldau.client.partition_reading import PartitionReading
from moldau.client.results import TopicPartition
from moldau.protocol.errors import OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION
from moldau.protocol.uuids import uuid_to_text
from moldau.records.arrow_decoder import ArrowColumns
from moldau.spark.kept_clusters import leave_cluster, take_cluster
from moldau.spark.lookup import DATA_LOSS_ADVICE, ReadError, explain, recreated_sentence
from moldau.spark.options import FETCH_BYTES, POLL_TIMEOUT_MS, ROWS_PER_BATCH
from moldau.spark.planning import OffsetRange

__all__ = ["HEADERS_TYPE", "ReadError", "arrow_schema", "read_range"]

logger = logging.getLogger("moldau.spark")

# The first fetch tells how large records are; the others ask for what the range needs, and a little more. The next
# task that reads the topic in this process knows it from the one before.
FIRST_FETCH_BYTES = 1024 * 1024
SPARE_FETCH_BYTES = 64 * 1024
_offset_bytes: dict[str, int] = {}
# What Arrow batches on the way to the JVM have at most, about: more falls out of the processor's caches.
BATCH_BYTES = 2 * 1024 * 1024
# A broker that has just started may not know a topic yet.
TOPIC_GONE_MS = 10_000
MILLISECONDS_MAX = 0x7FFFFFFFFFFFFFFF // 1000

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

_FIELDS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    pa.field("timestampType", pa.int32()),
]


@functools.cache
def arrow_schema(include_headers: bool = False) -> pa.Schema:
    """The columns of a read, as Arrow: key, value, topic, partition, offset, timestamp, timestampType, headers."""
    return pa.schema([*_FIELDS, pa.field("headers", HEADERS_TYPE)] if include_headers else _FIELDS)


def read_range(
    wanted: OffsetRange,
    client_config: Mapping[str, str],
    *,
    include_headers: bool = False,
    fail_on_data_loss: bool = True,
    poll_timeout_ms: int = POLL_TIMEOUT_MS,
    rows_per_batch: int = ROWS_PER_BATCH,
) -> Iterator[pa.RecordBatch]:
    """The records of a range, in order, each once, as record batches of arrow_schema(include_headers).

    client_config: settings of the consumer without the prefix `kafka.`, such as bootstrap.servers and isolation.level
    (`ReadOptions.client_config`). Batches have about rows_per_batch rows; empty ranges give none.

    Raises ReadError, with a sentence that says what to do, when the offsets are not there any more, the topic is gone
    or another one (range.topic_id), or no broker responds for poll_timeout_ms. With fail_on_data_loss=False
    what is gone is skipped with a warning, and the rest is read.
    """
    if wanted.start >= wanted.end:
        return
    reader = _RangeReader(wanted, client_config, include_headers, fail_on_data_loss, poll_timeout_ms, rows_per_batch)
    try:
        yield from reader.batches()
    except BaseException:
        reader.give_up()
        raise
    reader.leave()


class _RangeReader:
    """One range while it is read: a consumer of one partition, made of the client's own parts."""

    def __init__(
        self,
        wanted: OffsetRange,
        client_config: Mapping[str, str],
        include_headers: bool,
        fail_on_data_loss: bool,
        poll_timeout_ms: int,
        rows_per_batch: int,
    ) -> None:
        self._client_config = client_config
        settings = client_settings.read(client_settings.CONSUMER, None, client_config, {})
        chosen = "max.partition.fetch.bytes" in settings.given
        self._fetch_bytes_max = settings.get_int("max.partition.fetch.bytes") if chosen else FETCH_BYTES
        self._wanted = wanted
        self._include_headers = include_headers
        self._fail_on_data_loss = fail_on_data_loss
        self._poll_timeout_ms = poll_timeout_ms
        self._rows_per_batch = rows_per_batch
        self._rows_wanted = rows_per_batch
        self._topic_id = wanted.topic_id
        self._bytes_seen = 0
        self._offsets_seen = 0
        self._gone_since_ms = -1
        # As the topic was when it was last found to be the right one.
        self._topic: TopicMetadata | None = None
        self._cluster = take_cluster(client_config, settings)
        known = self._cluster.topics.get(wanted.topic)
        if known is not None and uuid_to_text(known.topic_id) != wanted.topic_id:
            self._cluster.forget_topic(wanted.topic)
        reading = PartitionReading.from_settings(
            self._cluster,
            settings,
            reset_policy="none",
            fetch_bytes_max=max(settings.get_int("fetch.max.bytes"), self._fetch_bytes_max),
            partition_bytes_max=self._fetch_bytes_max,
        )
        self._isolation = reading.isolation
        self._fetcher = reading.fetcher
        self._positions = reading.positions
        self._fetches = reading.fetches
        self._fetches.limit_partition_bytes(min(FIRST_FETCH_BYTES, self._fetch_bytes_max))
        self._partition = TopicPartition(wanted.topic, wanted.partition)
        self._fetcher.assign([self._partition])
        self._state = self._fetcher.partitions[self._partition]
        self._fetcher.seek(self._state, wanted.start)
        if wanted.topic in _offset_bytes:
            self._want_bytes(wanted.size * _offset_bytes[wanted.topic])

    def leave(self) -> None:
        """Everything was read."""
        if self._offsets_seen:
            _offset_bytes[self._wanted.topic] = self._bytes_seen // self._offsets_seen
        leave_cluster(self._client_config, self._cluster)

    def give_up(self) -> None:
        """Spark has enough, or nothing more can be read."""
        self._cluster.close()

    @property
    def _position(self) -> int:
        assert self._state.position is not None
        return self._state.position

    @property
    def _bootstrap(self) -> str:
        return ", ".join(f"{row.host}:{row.port}" for row in self._cluster.brokers.values()) or "none known"

    def batches(self) -> Iterator[pa.RecordBatch]:
        network = self._cluster.network
        progress_ms = network.now_ms()
        while self._position < self._wanted.end:
            before = self._position
            batch = None if self._state.empty else self._take()
            if self._position >= self._wanted.end:
                self._state.paused = True  # nothing more is asked for while Spark works on the last rows
            self._ask()
            if batch is not None and batch.num_rows:
                network.poll(0)  # what was asked is on its way while Spark works on what is there
                yield from self._slices(batch)
            if self._position != before:
                progress_ms = network.now_ms()
            elif self._position < self._wanted.end and self._state.empty:
                self._wait(progress_ms + self._poll_timeout_ms)

    def _slices(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """A fetched batch may hold far more rows than are good for the JVM at once: it is cut into equal parts."""
        size, rows = batch.nbytes, batch.num_rows
        self._rows_wanted = min(self._rows_per_batch, max(1, BATCH_BYTES * rows // max(1, size)))
        count = max(round(size / BATCH_BYTES), -(-rows // self._rows_per_batch), 1)
        if count == 1:
            yield batch
            return
        step = -(-rows // count)
        for start in range(0, rows, step):
            yield batch.slice(start, step)

    def _take(self) -> pa.RecordBatch | None:
        """Rows of what arrived; None if there are none."""
        columns = ArrowColumns(self._include_headers)
        buffers: list[bytes] = []
        kept, first = self._state.bytes_kept, self._position
        try:
            parts = self._fetcher.take_arrow(self._rows_wanted, columns, buffers)
        except ClientError as error:
            raise ReadError(
                f"{error.message} Copy the partition from a replica that is whole, or skip the batch."
            ) from None
        self._bytes_seen += kept - self._state.bytes_kept
        self._offsets_seen += self._position - first
        if not parts:
            return None
        batch = _to_batch(to_arrays(parts, columns, buffers), self._include_headers)
        return batch if self._position < self._wanted.end else _trimmed(batch, self._wanted.end)

    def _ask(self) -> None:
        """Asks the leader ahead of the reader, for no more than the range seems to need."""
        self._check_topic()
        left = self._wanted.end - self._state.fetch_offset
        if left <= 0:
            return
        if self._offsets_seen:
            self._want_bytes(left * self._bytes_seen // self._offsets_seen)
        self._positions.ask()
        self._fetches.send()

    def _want_bytes(self, estimate: int) -> None:
        self._fetches.limit_partition_bytes(min(self._fetch_bytes_max, estimate + SPARE_FETCH_BYTES))

    def _wait(self, deadline_ms: int) -> None:
        """Nothing is there: waits for a response, and says why where none comes."""
        network = self._cluster.network
        problem = self._positions.problem
        if problem is not None:
            self._positions.problem = None
            self._on_problem(problem)
            return
        remaining_ms = deadline_ms - network.now_ms()
        if remaining_ms <= 0:
            last = self._positions.last_error
            reason = f" {explain(last, self._bootstrap)}" if last is not None else ""
            raise ReadError(
                f"No records of {self._partition} from offset {self._position} on arrived for"
                f" {self._poll_timeout_ms} ms.{reason} The option kafkaConsumer.pollTimeoutMs sets how long to wait."
            )
        network.poll(min(remaining_ms, self._positions.until_retry_ms()))
        while self._state.in_flight and (remaining_ms := deadline_ms - network.now_ms()) > 0:
            network.poll(remaining_ms)  # a response comes in pieces, and until it is whole there is nothing else to do

    # What may be wrong

    def _check_topic(self) -> None:
        """The topic under this name must be the one that was planned for: another one has other records."""
        found = self._cluster.topics.get(self._wanted.topic)
        if found is not None and found is self._topic:
            return
        if found is not None:
            self._topic = found
            self._gone_since_ms = -1
            topic_id = uuid_to_text(found.topic_id)
            if not self._topic_id:
                self._topic_id = topic_id
            elif topic_id != self._topic_id:
                self._lose(recreated_sentence(self._wanted.topic, self._topic_id, topic_id))
            return
        error = self._cluster.topic_error(self._wanted.topic)
        if error is None or error.code not in (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID):
            return
        now_ms = self._cluster.network.now_ms()
        if self._gone_since_ms < 0:
            self._gone_since_ms = now_ms
        elif now_ms - self._gone_since_ms > TOPIC_GONE_MS:
            self._lose(f"Topic {self._wanted.topic} was deleted while {self._wanted} was being read.")

    def _on_problem(self, problem: ClientError) -> None:
        if problem.code != OFFSET_OUT_OF_RANGE:
            raise ReadError(explain(problem, self._bootstrap))
        first, last = self._offset_of(EARLIEST), self._offset_of(LATEST)
        self._check_topic()
        position = self._position
        if position < first:
            self._lose(
                f"Records of {self._partition} from offset {position} to {min(first, self._wanted.end)} are gone:"
                f" its log starts at {first} now, because of its retention or of a deletion of records.",
                first,
            )
        elif position > last:
            self._lose(f"{self._partition} ends at offset {last}, before {position} where reading was to go on.")
        else:
            # The log was cut and written again under the reader (an unclean election): the offset is there again.
            self._lose(problem.message, position)

    def _offset_of(self, place: int) -> int:
        try:
            asked = list_offsets(self._cluster, {self._partition: place}, self._poll_timeout_ms, self._isolation)
            return asked[self._partition].get().offset
        except ClientError as error:
            raise ReadError(explain(error, self._bootstrap)) from None

    def _lose(self, sentence: str, go_on_at: int | None = None) -> None:
        """Data is lost: fails, or skips it with a warning; None: all of the rest of the range."""
        if self._fail_on_data_loss:
            raise ReadError(f"{sentence} {DATA_LOSS_ADVICE}")
        position = self._wanted.end if go_on_at is None else min(go_on_at, self._wanted.end)
        logger.warning("%s Reading goes on at offset %d, because failOnDataLoss is false.", sentence, position)
        self._fetcher.seek(self._state, position)


def _to_batch(arrays: list[pa.Array], include_headers: bool) -> pa.RecordBatch:
    """The client's columns as Spark's connector names and types them."""
    topic, partition, offset, timestamp, timestamp_type, key, value, *headers = arrays
    columns = [key, value, topic, partition, offset, _microseconds(timestamp), timestamp_type, *map(_headers, headers)]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(include_headers))


def _microseconds(times: pa.Array) -> pa.Array:
    """Times beyond what microseconds can express become null: no record is lost for its timestamp."""
    kind = pa.timestamp("us", tz="UTC")
    try:
        return times.cast(kind)
    except pa.ArrowInvalid:
        import pyarrow.compute as pc  # here, because the driver's short processes would only wait for it

        numbers = times.cast(pa.int64())
        fits = pc.and_(pc.less_equal(numbers, MILLISECONDS_MAX), pc.greater_equal(numbers, -MILLISECONDS_MAX))
        return pc.if_else(fits, numbers, None).cast(pa.timestamp("ms", tz="UTC")).cast(kind)


def _headers(column: pa.ListArray) -> pa.ListArray:
    """Records without headers have null, as Spark's connector gives it; names are text."""
    import pyarrow.compute as pc

    pairs = column.values
    try:
        names = pairs.field(0).cast(pa.string())
    except pa.ArrowInvalid:
        # Not UTF-8, which Kafka's clients never write: shown as far as it can be read.
        names = pa.array(
            [None if name is None else name.decode(errors="replace") for name in pairs.field(0).to_pylist()],
            pa.string(),
        )
    structs = pa.StructArray.from_arrays([names, pairs.field(1)], fields=list(HEADERS_TYPE.value_type))
    lists = pa.ListArray.from_arrays(column.offsets, structs, type=HEADERS_TYPE)
    lengths = pc.list_value_length(lists)
    return pc.if_else(pc.equal(lengths, 0), pa.scalar(None, HEADERS_TYPE), lists)


def _trimmed(batch: pa.RecordBatch, end: int) -> pa.RecordBatch:
    """Without the rows at the end's offset and behind it; offsets are ascending."""
    offsets = batch.column(4)
    if not len(offsets) or offsets[-1].as_py() < end:
        return batch
    low, high = 0, len(offsets)
    while low < high:
        middle = (low + high) // 2
        if offsets[middle].as_py() < end:
            low = middle + 1
        else:
            high = middle
    return batch.slice(0, low)
