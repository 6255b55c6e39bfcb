"""Logs alone on the simulated disk, without a node around them: the same promises, thousands of crashes a minute.

Every step does something to one of a few logs behind a LogManager (append, read, roll, flush, truncate, retention, …)
or something bad to the disk under them, which is slow or stuck for a while as well. After every restart each log is
read back and held against its model, its indexes against its batches, its leader epochs and its producers against what
the batches say.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable

from moldau.config.log_config import LogConfig
from moldau.protocol.errors import OUT_OF_ORDER_SEQUENCE_NUMBER, KafkaError
from moldau.protocol.records_data import FileRecords, MemoryRecords
from moldau.records.batch import BatchHeader, read_header, split_batches
from moldau.records.builder import BatchBuilder
from moldau.sim.kernel.disk import SimDisk, SimulatedCrash
from moldau.sim.kernel.slow_disks import SlowDisks
from moldau.sim.kernel.world import Violation, World
from moldau.sim.models.partition import (
    LogView,
    PartitionModel,
    ReadRecord,
    Sent,
    check_timestamp_lookup_finds_the_first_record_not_older,
    first_of_largest_timestamp,
)
from moldau.sim.node.consumer import read_batches
from moldau.storage.disk import File
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager
from moldau.storage.segment import Segment

DATA = "data"
TOPICS = ("plain", "synced", "short")
FLUSHED_AFTER_MS = 1000


class LastBatch:
    """What an idempotent producer sent last to a log, to be sent again."""

    def __init__(self, data: bytes, first_offset: int, last_sequence: int) -> None:
        self.data = data
        self.first_offset = first_offset
        self.last_sequence = last_sequence


class LogWorld:
    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.rng = self.world.derived_rng("steps")
        self.disk = SimDisk(self.rng.getrandbits(32), self._schedule)
        self.disk.observer = lambda line: self.world.note(f"disk {line}")
        self.slow_disks = SlowDisks(self.world, lambda: {} if self.is_settling else {"it": self.disk})
        self.configs = {topic: self._new_config(topic) for topic in TOPICS}
        self.models: dict[str, PartitionModel] = {}
        self.topic_ids: dict[str, bytes] = {topic: self.rng.randbytes(16) for topic in TOPICS}
        self.last_batches: dict[tuple[str, int], LastBatch] = {}
        # Two idempotent producers a topic; one whose batches are all gone is replaced by a new one.
        self.producers: dict[str, list[int]] = {
            topic: [self._new_producer_id(), self._new_producer_id()] for topic in TOPICS
        }
        self.leader_epoch = 0
        self.number = 0
        self.restarts = 0
        self.crash_takes_power = False
        self.logs: list[Log] = []
        self.disk.make_directory(DATA)
        self.disk.sync_directory("")
        self.manager = self._new_manager()
        self.restart()

    def _new_producer_id(self) -> int:
        self.producer_ids += 1
        return self.producer_ids

    producer_ids = 0

    def _schedule(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.world.schedule(delay_ms, action)

    def _new_manager(self) -> LogManager:
        manager = LogManager(self.disk, [DATA], lambda topic: self.configs[topic], self.rng.randrange)
        manager.checkpoint_interval_ms = self.rng.choice((300, 60_000))
        manager.retention_interval_ms = 1000
        manager.free_bytes_min = self.rng.choice((0, 0, -1))
        return manager

    def _new_config(self, topic: str) -> LogConfig:
        return LogConfig(
            segment_bytes=self.rng.choice((1500, 6000, 1 << 20)),
            segment_ms=self.rng.choice((3000, 604_800_000)),
            segment_index_bytes=self.rng.choice((60, 10_485_760)),
            index_interval_bytes=self.rng.choice((0, 200, 1000)),
            retention_ms=-1,
            retention_bytes=self.rng.choice((0, 3000)) if topic == "short" else -1,
            file_delete_delay_ms=self.rng.choice((0, 500)),
            flush_messages=1 if topic == "synced" else self.rng.choice((7, 1 << 62)),
            flush_ms=self.rng.choice((200, 1 << 62)),
            message_timestamp_after_max_ms=1 << 62,
        )

    def leave_out_slowness(self) -> None:
        """No slow disks: as this world was before there were any."""
        self.slow_disks.leave_out()

    # Running

    def run(self, steps: int) -> None:
        logger = logging.getLogger("moldau.storage")
        handler = NoteHandler(self.world)
        propagate, logger.propagate = logger.propagate, False
        logger.addHandler(handler)
        self.slow_disks.start()
        try:
            for _ in range(steps):
                self._survive(self.step)
            self.disk.clear_faults()
            self.slow_disks.end()
            self._survive(self.stop_cleanly)
            self._survive(self.kill)
        finally:
            logger.removeHandler(handler)
            logger.propagate = propagate

    def summary(self) -> str:
        ends = ", ".join(f"{log.topic} {log.log_start_offset}..{log.log_end_offset}" for log in self.logs)
        return f"{self.restarts} starts, {self.number} records sent, {ends}"

    def _survive(self, action: Callable[[], None]) -> None:
        """Runs one action; when the machine stops in it, it is started again until it stays up."""
        while True:
            try:
                action()
                return
            except SimulatedCrash:
                self._after_crash(power=self.crash_takes_power)
                action = self.restart

    def step(self) -> None:
        self.world.run_for(self.rng.choice((0, 0, 1, 20, 150)))
        choice = self.rng.random()
        log = self.rng.choice(self.logs)
        if choice < 0.55:
            self.append(log)
        elif choice < 0.66:
            self.read_somewhere(log)
        elif choice < 0.74:
            self.maintain(log)
        elif choice < 0.78:
            self.send_last_batch_again(log)
        elif choice < 0.80:
            self.truncate(log)
        elif choice < 0.81:
            self.delete(log)
        elif choice < 0.87:
            self.strike_disk()
        elif choice < 0.94:
            self.plan_crash()
        else:
            self.rng.choice((self.kill, self.lose_power, self.stop_cleanly))()
        self._learn_recovery_points()

    def _learn_recovery_points(self) -> None:
        """What lies below a recovery point is not looked at any more after a crash, so it must be durable."""
        for log in self.logs:
            if not log.closed and not log.log_directory.failed:
                model = self.models[log.topic]
                model.durable_end = max(model.durable_end, log.recovery_point)
                model.start_high = max(model.start_high, log.log_start_offset)

    # Steps

    def append(self, log: Log) -> None:
        model = self.models[log.topic]
        producer_id = self.rng.choice((-1, -1, *self.producers[log.topic]))
        key = (log.topic, producer_id)
        last = self.last_batches.get(key)
        sequence = -1 if producer_id < 0 else (0 if last is None else last.last_sequence + 1)
        builder = BatchBuilder(0, self.rng.choice((0, 0, 0, 3)))
        values: list[bytes] = []
        for _ in range(self.rng.choice((1, 1, 3, 8))):
            value = b"%s/%d/" % (log.topic.encode(), self.number) + bytes(self.rng.choice((0, 10, 200)))
            self.number += 1
            builder.append(self.world.now_ms + self.rng.randint(-3000, 3000), None, value)
            model.on_sent(value, Sent("all", self.number, True))
            values.append(value)
        data = builder.build(
            producer_id=producer_id, producer_epoch=0 if producer_id >= 0 else -1, base_sequence=sequence
        )
        try:
            result = log.append_as_leader(MemoryRecords(data, 0, len(data)), self.leader_epoch, self.world.now_ms)
        except KafkaError as error:
            self._on_append_failed(log, model, values, producer_id, error)
            return
        if result.duplicate:
            raise Violation(f"a new batch is no duplicate: {log.topic} sequence {sequence} of {producer_id}")
        for index, value in enumerate(values):
            # Durable when the recovery point has passed it; a producer hears of it no sooner.
            model.on_acknowledged(result.first_offset + index, value, durable=False)
        if producer_id >= 0:
            self.last_batches[key] = LastBatch(data, result.first_offset, sequence + len(values) - 1)

    def _on_append_failed(
        self, log: Log, model: PartitionModel, values: list[bytes], producer_id: int, error: KafkaError
    ) -> None:
        self.world.note(f"append to {log.topic}: {error}")
        if error.code == OUT_OF_ORDER_SEQUENCE_NUMBER:
            raise Violation(f"a producer in sequence stays in sequence: {log.topic} {error}")
        if log.log_directory.failed:
            # It may be in the file all the same: only a restart tells.
            self.kill()
            return
        for value in values:
            model.on_refused(value)

    def read_somewhere(self, log: Log) -> None:
        if log.log_end_offset == log.log_start_offset:
            return
        offset = self.rng.randint(log.log_start_offset, log.log_end_offset - 1)
        upper = self.rng.randint(offset + 1, log.log_end_offset)
        try:
            result = log.read(offset, self.rng.choice((1, 500, 1 << 20)), upper, True)
            records = read_batches(log.topic, bytes_of(result.records))
        except KafkaError as error:
            self.world.note(f"read of {log.topic}: {error}")
            if log.log_directory.failed:
                self.kill()
                return
            raise Violation(f"what was written can be read: {log.topic} offset {offset}: {error}") from error
        except OSError as error:
            self.world.note(f"read of {log.topic}: {error}")
            return
        self._check_read(log, offset, upper, records)

    def _check_read(self, log: Log, offset: int, upper: int, records: list[ReadRecord]) -> None:
        """A bound inside a batch hides that batch; otherwise at least the one that was asked for is there."""
        for record in records:
            if record.offset >= upper:
                raise Violation(f"nothing above the bound is read: {log.topic} {record.offset} with bound {upper}")
            if record.offset >= log.log_start_offset:
                self.models[log.topic].on_read(record.offset, record.value)
        if upper == log.log_end_offset and not records:
            raise Violation(f"what is below the end can be read: {log.topic} offset {offset}")
        if records and not records[0].offset <= offset <= records[-1].offset:
            raise Violation(f"a read begins with the batch of its offset: {log.topic} {records[0].offset} for {offset}")

    def maintain(self, log: Log) -> None:
        model = self.models[log.topic]
        what = self.rng.choice(
            ("roll", "flush", "settle", "start", "checkpoint", "housekeeping", "retention", "config")
        )
        self.world.note(f"{what} {log.topic}")
        try:
            if what == "roll":
                log.roll(self.world.now_ms)
            elif what == "flush":
                log.flush()
                model.durable_end = max(model.durable_end, log.log_end_offset)
            elif what == "settle":
                self._settle(log)
            elif what == "start":
                offset = self.rng.randint(log.log_start_offset, log.log_end_offset)
                model.on_start_asked(offset)
                log.advance_log_start(offset)
            elif what == "checkpoint":
                self.manager.checkpoints.write()
            elif what == "housekeeping":
                self.manager.housekeeping(self.world.now_ms, lambda one: one.log_end_offset)
            elif what == "retention":
                log.apply_retention(self.world.now_ms, log.log_end_offset)
            else:
                self.configs[log.topic] = self._new_config(log.topic)
                log.set_config(self.configs[log.topic])
        except KafkaError as error:
            self.world.note(f"{what}: {error}")
        if log.log_directory.failed:
            self.kill()

    def _settle(self, log: Log) -> None:
        """Whatever `flush.messages` asks for comes to an end: nobody waits for it for ever."""
        self.is_settling = True
        self.slow_disks.repair(self.disk)
        self.world.run_for(FLUSHED_AFTER_MS)
        self.is_settling = False
        if log.holds > 0 and not log.log_directory.failed and not log.log_directory.is_full:
            raise Violation(f"a truncation ends, and the log takes records again: {log.topic} is held")
        if not log.is_durable(log.log_end_offset) and not log.log_directory.failed:
            raise Violation(
                f"a flush that was asked for ends: {log.topic} is at {log.recovery_point}, wanted {log.flush_target}"
            )

    def send_last_batch_again(self, log: Log) -> None:
        """A retry of a producer's last batch is recognised, whatever happened in between."""
        producer_id = self.rng.choice(self.producers[log.topic])
        last = self.last_batches.get((log.topic, producer_id))
        if last is None or log.log_directory.low_space or log.holds > 0:
            return
        try:
            result = log.append_as_leader(
                MemoryRecords(last.data, 0, len(last.data)), self.leader_epoch, self.world.now_ms
            )
        except KafkaError as error:
            if not log.log_directory.failed:
                raise Violation(f"a retry of the last batch is recognised: {log.topic} {error}") from error
            self.kill()
            return
        if not result.duplicate or result.first_offset != last.first_offset:
            raise Violation(
                f"a retry of the last batch is recognised: {log.topic} of {producer_id} was at {last.first_offset},"
                f" now {result.first_offset}{'' if result.duplicate else ' again'}"
            )

    def truncate(self, log: Log) -> None:
        """As a follower does for a new leader, at a batch boundary; the next append has a new epoch."""
        batches = [
            int(header.base_offset) for header in self._headers(log) if header.base_offset >= log.log_start_offset
        ]
        if not batches:
            return
        offset = self.rng.choice(batches)
        self.world.note(f"truncate {log.topic} to {offset}")
        model = self.models[log.topic]
        model.truncate(offset)
        try:
            self.manager.truncate(log, offset, self.world.now_ms)
        except KafkaError as error:
            self.world.note(f"truncate: {error}")
            self.kill()
            return
        self.leader_epoch += 1
        self._find_last_batches(log)

    def delete(self, log: Log) -> None:
        self.world.note(f"delete {log.topic} and create it again")
        self.models[log.topic] = PartitionModel(log.topic)
        self.topic_ids[log.topic] = self.rng.randbytes(16)
        try:
            self.manager.delete(log.topic, 0, self.world.now_ms)
        except KafkaError as error:
            self.world.note(f"delete: {error}")
        self.kill()

    # Faults

    def strike_disk(self) -> None:
        if self.rng.random() < 0.4:
            self.disk.clear_faults()
        elif self.rng.random() < 0.5:
            self.disk.capacity_bytes = self.disk.used_bytes() + self.rng.randint(0, 1500)
            self.world.note(f"the disk has {self.disk.free_bytes('')} bytes left")
        else:
            operation = self.rng.choice(
                ("append", "sync", "read", "open", "create", "rename", "truncate", "sync_directory")
            )
            fragment = self.rng.choice((".log", "index", "snapshot", "checkpoint", ""))
            self.disk.fail(operation, fragment, errno.EIO, self.rng.randint(1, 3), self.rng.randint(0, 4))
            self.world.note(f"{operation} of *{fragment}* is going to fail")

    def plan_crash(self) -> None:
        self.crash_takes_power = self.rng.random() < 0.5
        self.disk.crash_after(self.rng.randint(1, self.rng.choice((2, 10, 60))))

    def kill(self) -> None:
        self._after_crash(power=False)
        self.restart()

    def lose_power(self) -> None:
        self._after_crash(power=True)
        self.restart()

    def stop_cleanly(self) -> None:
        self.world.note("clean stop")
        self.manager.shutdown(self.world.now_ms)
        self._learn_recovery_points()
        self._after_crash(power=False)
        self.restart()

    def _after_crash(self, *, power: bool) -> None:
        self.world.note("power loss" if power else "the process ends")
        self.disk.clear_faults()
        if power:
            self.power_was_lost = True
            self.disk.power_loss()
        else:
            self.disk.process_crash()

    power_was_lost = False
    is_settling = False
    """Its disk is as fast as it can be then."""

    # Restart and audit

    def restart(self) -> None:
        self.restarts += 1
        self.leader_epoch += 1
        self.world.note(f"start {self.restarts}")
        self.logs = []
        self.manager = self._new_manager()
        self.manager.load(self.world.now_ms)
        for topic in TOPICS:
            log = self._open(topic)
            model = self.models.setdefault(topic, PartitionModel(topic))
            model.retention = topic == "short"
            try:
                self._audit(log, model)
            except KafkaError as error:
                raise Violation(f"what was written can be read: {topic}: {error}") from error
            self.logs.append(log)
        self.power_was_lost = False

    def _open(self, topic: str) -> Log:
        """The log of a topic, as a node gets it: one that belongs to an earlier topic of that name is set aside."""
        log = self.manager.get(topic, 0)
        topic_id = self.topic_ids[topic]
        if log is not None and log.topic_id != topic_id and log.log_end_offset > 0:
            self.world.note(f"{topic} belongs to another topic of that name")
            self.manager.rename_to_stray(topic, 0)
            log = None
        if log is None:
            return self.manager.create(topic, 0, topic_id, self.world.now_ms)
        if log.topic_id != topic_id:
            self.manager.set_topic_id(log, topic_id)
        return log

    def _audit(self, log: Log, model: PartitionModel) -> None:
        view = self._view(log)
        if self.power_was_lost:
            model.on_power_loss(log.log_end_offset)
        model.check(view)
        self._check_indexes(log)
        self._check_lookups(log, model, view)
        self._check_epochs(log)
        self._find_last_batches(log)
        self.world.note(f"{log.topic} is well from {log.log_start_offset} to {log.log_end_offset}")

    def _view(self, log: Log) -> LogView:
        records: list[ReadRecord] = []
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            result = log.read(offset, self.rng.choice((1, 700, 1 << 20)), log.log_end_offset, True)
            new = [one for one in read_batches(log.topic, bytes_of(result.records)) if one.offset >= offset]
            if not new:
                raise Violation(f"what is below the end can be read: {log.topic} offset {offset}")
            records.extend(new)
            offset = new[-1].offset + 1
        return LogView(log.log_start_offset, log.log_end_offset, records)

    def _headers(self, log: Log) -> list[BatchHeader]:
        """All batch headers, read past every index."""
        headers: list[BatchHeader] = []
        for segment in log.segments:
            data = self._bytes_of_segment(segment)
            headers.extend(split_batches(data, 0, len(data)))
        return headers

    def _bytes_of_segment(self, segment: Segment) -> bytes:
        """A file that is to be truncated may be longer than its segment for a while."""
        return self.disk.peek(segment.path(".log"))[: segment.size]

    def _check_indexes(self, log: Log) -> None:
        for segment in log.segments:
            data = self.disk.peek(segment.path(".log"))
            if len(data) != segment.size:
                raise Violation(f"a segment knows its size: {log.topic} {segment.base_offset} {segment.size}")
            check_offset_index_points_at_batches(log.topic, segment, data)
            check_time_index_holds_the_largest_timestamps(log.topic, segment, data)

    def _check_lookups(self, log: Log, model: PartitionModel, view: LogView) -> None:
        for record in self.rng.sample(view.records, min(5, len(view.records))):
            for timestamp in (record.timestamp, record.timestamp + 1):
                found = log.offset_for_timestamp(timestamp, log.log_end_offset)
                check_timestamp_lookup_finds_the_first_record_not_older(
                    model, view, timestamp, None if found is None else found[:2]
                )
        largest = log.offset_of_max_timestamp(log.log_end_offset)
        expected = first_of_largest_timestamp(view)
        # Records below the log start count for the largest timestamp of a segment; nothing is promised about those.
        if largest is not None and largest[:2] != expected:
            raise Violation(f"the largest timestamp finds its first record: {log.topic} {largest}, not {expected}")

    def _check_epochs(self, log: Log) -> None:
        for header in self._headers(log):
            if header.last_offset < log.log_start_offset:
                continue
            offset = max(header.base_offset, log.log_start_offset)
            known = log.leader_epochs.epoch_for_offset(offset)
            model = self.models[log.topic]
            if known == -1 and (offset < model.start_high or model.retention):
                continue  # the log start went back at a crash, what was forgotten about the records below it did not
            if known != header.partition_leader_epoch:
                raise Violation(
                    f"leader epochs agree with the batches: {log.topic} offset {offset} has"
                    f" {header.partition_leader_epoch}, the cache says {known}"
                )

    def _find_last_batches(self, log: Log) -> None:
        """The last batch of each producer as the log has it: that is what a retry must find, and what comes next."""
        for producer_id in self.producers[log.topic]:
            self.last_batches.pop((log.topic, producer_id), None)
        for segment in log.segments:
            data = self._bytes_of_segment(segment)
            for header in split_batches(data, 0, len(data)):
                if header.producer_id >= 0 and header.base_offset >= log.log_start_offset:
                    # A client counts from 0; offset and epoch lie outside the checksum.
                    raw = bytes(8) + data[header.position + 8 : header.position + header.size]
                    self.last_batches[(log.topic, int(header.producer_id))] = LastBatch(
                        raw, int(header.base_offset), int(header.last_sequence)
                    )
        self.producers[log.topic] = [
            producer_id if (log.topic, producer_id) in self.last_batches else self._new_producer_id()
            for producer_id in self.producers[log.topic]
        ]


class NoteHandler(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self.world = world

    def emit(self, record: logging.LogRecord) -> None:
        self.world.note(f"log: {record.getMessage()}")


def bytes_of(records: FileRecords | None) -> bytes:
    if records is None:
        return b""
    file = records.file
    assert isinstance(file, File)
    return file.read(records.position, records.size)


def check_offset_index_points_at_batches(name: str, segment: Segment, data: bytes) -> None:
    for relative, position in segment.offset_index().entries():
        header = read_header(data, position, len(data)) if position < len(data) else None
        if header is None or header.last_offset != segment.base_offset + relative:
            raise Violation(f"an offset index points at batches: {name} {segment.base_offset}+{relative} at {position}")


def check_time_index_holds_the_largest_timestamps(name: str, segment: Segment, data: bytes) -> None:
    largest_until: dict[int, int] = {}
    largest = -1
    for header in split_batches(data, 0, len(data)):
        largest = max(largest, int(header.max_timestamp))
        largest_until[int(header.last_offset)] = largest
    for timestamp, relative in segment.time_index().entries():
        if largest_until.get(segment.base_offset + relative) != timestamp:
            raise Violation(
                f"a time index holds the largest timestamps: {name} {segment.base_offset}+{relative} has"
                f" {largest_until.get(segment.base_offset + relative)}, the index says {timestamp}"
            )
    segment.load_timestamps()
    if data and segment.max_timestamp != largest:
        raise Violation(f"a segment knows its largest timestamp: {name} {segment.base_offset} {segment.max_timestamp}")
