"""Three replicas of one partition, real logs and the code of leader and follower, moved one fetch at a time.

Commands of the scripts (`controller` stands for what the controller would decide):

    start MIN BROKER...        a new partition with this min.insync.replicas; the first broker leads, all are in sync
    write BROKER VALUE...      a producer with acks=all sends each value to this broker
    write1 BROKER VALUE...     the same with acks=1
    fetch BROKER...            each of them fetches once from who it believes leads
    elect BROKER isr BROKER... the controller names a leader and the in-sync replicas; everybody who is up hears of it
    elect ... unheard BROKER   ... except for these, until they `hear`
    isr BROKER...              the controller changes the ISR of its own accord; everybody who is up hears of it
    hear BROKER                it hears what the controller decided last
    decide                     the controller does what the leader proposed, and its answer comes first
    refuse ERROR               the controller refuses, for this reason
    metadata                   what the controller decided reaches everybody who is up
    fence BROKER / unfence BROKER
    crash BROKER [keeping N]   it stops at once; with the power gone, what lies at or above offset N is lost
    restart BROKER             it comes back with a new broker epoch and the high watermark of its last checkpoint
    checkpoint                 everybody writes its high watermark down
    wait SECONDS               time passes; the leader then looks for followers that lag
    latest BROKER              ListOffsets: the latest offset
    show                       what everybody has
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.fetch_response import EpochEndOffset, PartitionData
from moldau.protocol.records_data import MemoryRecords
from moldau.replication.follower import STATES, TRUNCATING, Follower
from moldau.replication.partition import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Partition, ReplicationContext
from moldau.replication.waiter import PartitionWaiter
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager
from moldau.storage.validation import CLIENT
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, batch, config, content, new_log, records_in, reopen

CONSUMER = -1
PLENTY = 1 << 20
BACKOFF_MS = 1000


class Logs:
    """Cuts logs, without the checkpoint files of a whole node."""

    def truncate(self, log: Log, offset: int, now_ms: int) -> None:
        log.truncate_to(offset, now_ms)

    def truncate_fully_and_start_at(self, log: Log, offset: int, now_ms: int) -> None:
        log.truncate_fully_and_start_at(offset, now_ms)


class Write(PartitionWaiter):
    """A producer that waits for its answer."""

    def __init__(self, world: World, broker: Broker, value: str, epoch: int, end_offset: int) -> None:
        super().__init__()
        self.world = world
        self.broker = broker
        self.value = value
        self.epoch = epoch
        self.end_offset = end_offset

    def on_partition_moved(self, now_ms: int) -> None:
        partition = self.broker.partition
        if not partition.is_leader or partition.leader_epoch != self.epoch:
            self.answer("NOT_LEADER_OR_FOLLOWER")
        elif partition.high_watermark.offset >= self.end_offset:
            enough = partition.has_enough_in_sync_replicas()
            self.answer("written" if enough else "NOT_ENOUGH_REPLICAS_AFTER_APPEND")

    def answer(self, text: str) -> None:
        self.finished = True
        self.world.say(f"{self.value}: {text}")


class Broker:
    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.is_up = True
        self.broker_epoch = 10 + number
        self.checkpointed = 0
        path = world.path / str(number)
        path.mkdir()
        self.log = new_log(path, config(min_insync_replicas=world.minimum))
        self._open()

    def _open(self) -> None:
        self.context = ReplicationContext()
        self.context.brokers.lag_max_ms = 30_000
        self.partition = Partition("topic", TOPIC_ID, 0, self.number, self.log, self.context)
        bounded = min(max(self.checkpointed, self.log.log_start_offset), self.log.log_end_offset)
        self.partition.high_watermark.restart_at(bounded)
        self.follower = Follower(self.partition, cast(LogManager, Logs()))

    def hear(self) -> None:
        world = self.world
        self.context.brokers.active_epochs = {
            b.number: b.broker_epoch for b in world.brokers.values() if b.number not in world.fenced
        }
        self.context.brokers.alive = set(self.context.brokers.active_epochs)
        partition = self.partition
        before = partition.leader_epoch
        partition.update(
            world.leader,
            world.leader_epoch,
            world.partition_epoch,
            sorted(world.brokers),
            list(world.isr),
            world.now_ms,
        )
        if partition.leader_epoch != before and world.leader != self.number:
            self.follower.begin(world.leader_epoch)

    def crash(self, keeping: int | None) -> None:
        self.is_up = False
        if keeping is not None:
            self.log.truncate_to(keeping)
        self.log.close_files()

    def restart(self) -> None:
        self.is_up = True
        self.broker_epoch += 10
        self.log = reopen(self.log)
        self._open()

    def values(self) -> str:
        data = content(self.log.read(self.log.log_start_offset, PLENTY, self.log.log_end_offset, True).records)
        return " ".join((record.value or b"").decode() for record in records_in(data))


class World:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.now_ms = NOW_MS
        self.minimum = 1
        self.brokers: dict[int, Broker] = {}
        self.leader = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.isr: list[int] = []
        self.fenced: set[int] = set()
        self.said: list[str] = []

    def run(self, line: str) -> list[str]:
        self.said = []
        command, *arguments = line.split()
        getattr(self, "do_" + command)(*arguments)
        return self.said

    def say(self, text: str) -> None:
        self.said.append(text)

    # The controller

    def do_start(self, minimum: str, *numbers: str) -> None:
        self.minimum = int(minimum)
        self.brokers = {int(number): Broker(self, int(number)) for number in numbers}
        self.do_elect(numbers[0], "isr", *numbers)

    def do_elect(self, leader: str, *rest: str) -> None:
        words = list(rest)
        unheard: list[str] = []
        if "unheard" in words:
            unheard = words[words.index("unheard") + 1 :]
            words = words[: words.index("unheard")]
        self.isr = [int(word) for word in words[1:]] or self.isr
        self.leader = int(leader)
        self.leader_epoch += 1
        self.partition_epoch += 1
        for broker in self.up():
            if str(broker.number) not in unheard:
                broker.hear()

    def do_isr(self, *numbers: str) -> None:
        self.isr = [int(number) for number in numbers]
        self.partition_epoch += 1
        self.do_metadata()

    def do_hear(self, number: str) -> None:
        self.brokers[int(number)].hear()

    def do_metadata(self) -> None:
        for broker in self.up():
            broker.hear()

    def do_fence(self, number: str) -> None:
        self.fenced.add(int(number))
        self.do_metadata()

    def do_unfence(self, number: str) -> None:
        self.fenced.discard(int(number))
        self.do_metadata()

    def do_decide(self) -> None:
        leader = self.brokers[self.leader].partition
        state = leader.leader_state
        assert state is not None and state.in_sync.is_changing, "nothing was proposed"
        sent_epoch = leader.partition_epoch
        self.isr = list(state.in_sync.proposed)
        self.partition_epoch += 1
        leader.on_proposal_accepted(sent_epoch, self.leader_epoch, self.partition_epoch, list(self.isr), self.now_ms)

    def do_refuse(self, error: str) -> None:
        leader = self.brokers[self.leader].partition
        if getattr(errors, error) in (errors.INELIGIBLE_REPLICA, errors.OPERATION_NOT_ATTEMPTED):
            leader.on_proposal_refused(leader.leader_epoch, leader.partition_epoch, self.now_ms)

    # Clients

    def do_write(self, number: str, *values: str) -> None:
        self._write(int(number), values, -1)

    def do_write1(self, number: str, *values: str) -> None:
        self._write(int(number), values, 1)

    def _write(self, number: int, values: tuple[str, ...], acks: int) -> None:
        partition = self.brokers[number].partition
        for value in values:
            data = batch([value.encode()])
            try:
                result = partition.append_as_leader(MemoryRecords(data), acks, self.now_ms, CLIENT)
            except KafkaError as error:
                self.say(f"{value}: {errors.error_name(error.code)}")
                continue
            write = Write(self, self.brokers[number], value, partition.leader_epoch, result.last_offset + 1)
            if acks == 1:
                write.answer(f"written at {result.first_offset}")
                continue
            write.on_partition_moved(self.now_ms)
            if not write.finished:
                self.say(f"{value}: at {result.first_offset}, waiting")
                partition.waiters.append(write)

    def do_latest(self, number: str) -> None:
        partition = self.brokers[int(number)].partition
        try:
            self.say(f"latest is {partition.find_offset(LATEST_TIMESTAMP, 0, -1, CONSUMER).offset}")
        except KafkaError as error:
            self.say(errors.error_name(error.code))

    # Replication

    def do_fetch(self, *numbers: str) -> None:
        for number in numbers:
            self._fetch(self.brokers[int(number)])

    def _fetch(self, broker: Broker) -> None:
        follower, leader = broker.follower, self.brokers[broker.partition.leader]
        follower.resume()
        if follower.state == TRUNCATING:
            self._ask_offsets(broker, leader)
            return
        asked = follower.fetch_partition(broker.log, PLENTY, 0)
        where = f"{broker.number} asks {leader.number} from {asked.fetch_offset} after epoch {asked.last_fetched_epoch}"
        if not leader.is_up:
            self.say(f"{where}: nobody answers")
            return
        data = PartitionData(partition_index=0)
        partition = leader.partition
        try:
            partition.on_follower_fetch(
                broker.number,
                broker.broker_epoch,
                asked.fetch_offset,
                asked.log_start_offset,
                asked.current_leader_epoch,
                asked.last_fetched_epoch,
                self.now_ms,
            )
            read = partition.read_as_follower(
                broker.number,
                broker.broker_epoch,
                asked.fetch_offset,
                PLENTY,
                min_one_batch=True,
                current_leader_epoch=asked.current_leader_epoch,
                last_fetched_epoch=asked.last_fetched_epoch,
                now_ms=self.now_ms,
            )
        except KafkaError as error:
            data.error_code = error.code
            self.say(f"{where}: {errors.error_name(error.code)}")
        else:
            data.high_watermark, data.log_start_offset = read.high_watermark, read.log_start_offset
            found = content(read.records)  # type: ignore[arg-type]
            data.records = MemoryRecords(found)
            if read.diverging_end_offset >= 0:
                data.diverging_epoch = EpochEndOffset(read.diverging_epoch, read.diverging_end_offset)
                self.say(f"{where}: epoch {read.diverging_epoch} ends at {read.diverging_end_offset}")
            else:
                values = " ".join((record.value or b"").decode() for record in records_in(found)) or "nothing"
                self.say(f"{where}: {values}, high watermark {read.high_watermark}")
        end_before = broker.log.log_end_offset
        follower.take(data, self.now_ms, 0)
        if broker.log.log_end_offset < end_before:
            self.say(f"{broker.number} cuts its log to {broker.log.log_end_offset}")
        if STATES[follower.state] not in ("fetching", "delayed"):
            self.say(f"{broker.number} is {STATES[follower.state]}")

    def _ask_offsets(self, broker: Broker, leader: Broker) -> None:
        epoch = broker.follower.leader_epoch
        start = leader.partition.find_offset(EARLIEST_TIMESTAMP, 0, epoch, broker.number).offset
        end = leader.partition.find_offset(LATEST_TIMESTAMP, 0, epoch, broker.number).offset
        broker.follower.on_leader_offsets(start, end, self.now_ms, 0)
        self.say(f"{broker.number} hears that {leader.number} has {start} to {end}, has {self._extent(broker)} now")

    def _extent(self, broker: Broker) -> str:
        return f"{broker.log.log_start_offset} to {broker.log.log_end_offset}"

    # Life

    def up(self) -> list[Broker]:
        return [broker for broker in self.brokers.values() if broker.is_up]

    def do_crash(self, number: str, keeping: str = "", offset: str = "") -> None:
        self.brokers[int(number)].crash(int(offset) if keeping else None)

    def do_restart(self, number: str) -> None:
        self.brokers[int(number)].restart()
        self.do_metadata()

    def do_checkpoint(self) -> None:
        for broker in self.up():
            broker.checkpointed = broker.partition.high_watermark.offset

    def do_wait(self, seconds: str) -> None:
        self.now_ms += int(seconds) * 1000
        for broker in self.up():
            if broker.partition.maybe_shrink_in_sync_replicas(self.now_ms):
                state = broker.partition.leader_state
                assert state is not None
                self.say(f"{broker.number} proposes ISR {state.in_sync.proposed}")

    def do_show(self) -> None:
        for broker in self.brokers.values():
            partition = broker.partition
            if not broker.is_up:
                self.say(f"{broker.number} is down")
                continue
            epochs = " ".join(f"{epoch}@{start}" for epoch, start in broker.log.leader_epochs.entries())
            role = f"leads epoch {partition.leader_epoch}" if partition.is_leader else f"follows {partition.leader}"
            line = f"{broker.number} {role}: [{broker.values()}] high watermark {partition.high_watermark.offset}"
            line += f", epochs {epochs or 'none'}"
            if partition.leader_state is not None:
                line += f", {partition.leader_state.in_sync}"
            self.say(line)
