"""Writes dead letters: of records that were rejected, or were delivered as often as a group allows (KIP-1191).

A record waits for its letter as ARCHIVING, which is stored; it becomes ARCHIVED when all in-sync replicas of the dead
letter topic's partition have the letter. So there is a letter for every such record and for no other one, and there are
two of them when a leader ends, or hears no response, in between.

Each share partition has one batch on its way at a time, and only some share partitions at once: memory is bounded, and
so is the number of records that wait, by the share partition's window. What fails is tried again for as long as this
broker leads, after a pause that grows, and at once when the metadata changed. Where a setting forbids a letter the
records are archived without one, and the log says why. Kafka: ShareGroupDLQManager.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.config.log_config import LogConfig
from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.metadata.image import MetadataImage
from moldau.node.broker_channels import BrokerChannels
from moldau.node.outbox import NoResponse
from moldau.node.replicas import Replicas
from moldau.node.share.acknowledgement import Letters
from moldau.node.share.counts import ShareCounts
from moldau.node.share.dead_letter_records import LetterBatch, build_letters
from moldau.node.share.dead_letter_source import LetterSource, NotCommittedYet
from moldau.node.share.dead_letter_topics import LetterBox, NoLeader, NotAllowed, TopicMissing, find_letter_box
from moldau.node.share.partition import ACTIVE, SharePartition
from moldau.node.share.settings import ShareSettings
from moldau.node.waiting import TimedWaiter, WaitingRoom
from moldau.protocol import errors
from moldau.protocol.api_table import PRODUCE
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import ProduceResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.clocks import AT_ONCE_MS, NEVER_MS
from moldau.replication.partition import Partition
from moldau.storage.validation import CLIENT

log = logging.getLogger("moldau.node")

PRODUCE_VERSION: Final = 12  # the last one with names
ALL_IN_SYNC: Final = -1
ROUNDS_MAX: Final = 16
LETTERS_MAX: Final = 2000
BATCH_BYTES_MAX: Final = 1 << 20
BACKOFF_MS: Final = 500
BACKOFF_MAX_MS: Final = 30_000
TOLD_AGAIN_MS: Final = 60_000
TOLD_MAX: Final = 1000

TOO_LARGE: Final = frozenset({errors.MESSAGE_TOO_LARGE, errors.RECORD_LIST_TOO_LARGE})
NEVER_TAKEN: Final = frozenset(
    {
        errors.INVALID_RECORD,
        errors.INVALID_TIMESTAMP,
        errors.INVALID_TOPIC_EXCEPTION,
        errors.TOPIC_AUTHORIZATION_FAILED,
        errors.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        errors.UNSUPPORTED_VERSION,
    }
)
"""The topic will not take this letter however often it is sent."""

QUEUED: Final = 0
BUSY: Final = 1
LATER: Final = 2


class Sending:
    """The dead letters of one share partition. `round` counts tries: responses to earlier ones mean nothing."""

    def __init__(self, one: SharePartition) -> None:
        self.one = one
        self.state = QUEUED
        self.round = 0
        self.attempts = 0
        self.due_ms = 0
        self.letters_max = LETTERS_MAX
        self.copies = True
        """False when a copy turned out to be too large for the topic."""
        self.broker_id = -1
        self.due: list[Letters] = []
        self.source: LetterSource | None = None
        self.batch: LetterBatch | None = None

    def forget_round(self) -> None:
        if self.source is not None:
            self.source.abandon()
        self.round += 1
        self.source = self.batch = None
        self.due = []
        self.broker_id = -1


class DeadLetters:
    """See the module. `create_topic` is told the name of a topic that does not exist yet, and `now_ms`."""

    def __init__(
        self,
        broker_id: int,
        replicas: Replicas,
        waiting: WaitingRoom,
        channels: BrokerChannels,
        timeout_ms: int,
        log_config_of: Callable[[str], LogConfig],
        create_topic: Callable[[str, int], None],
    ) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._waiting = waiting
        self._channels = channels
        self._timeout_ms = timeout_ms
        self._log_config_of = log_config_of
        self._create_topic = create_topic
        self.settings: ShareSettings | None = None
        self.counts = ShareCounts()
        self.on_deadline: Callable[[int], None] | None = None
        self._image = MetadataImage()
        self._sendings: dict[SharePartition, Sending] = {}
        self._queue: deque[Sending] = deque()
        self._read: list[tuple[Sending, int]] = []
        self._responses: list[tuple[Sending, int, int]] = []
        self._logged_at_ms: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._sendings)

    @property
    def waiting_letters(self) -> int:
        """Records that are ARCHIVING."""
        return sum([one.window.archiving for one in self._sendings])

    # What there is to do

    def add(self, one: SharePartition, failed: bool, now_ms: int) -> None:
        """It has records that wait; with `failed` that could not be stored, and it is looked at after a while."""
        sending = self._sendings.get(one)
        if sending is None:
            sending = self._sendings[one] = Sending(one)
            if failed:
                self._try_later(sending, now_ms)
                return
            self._queue.append(sending)
        elif sending.state == LATER and not failed and sending.attempts == 0:
            sending.state = QUEUED
            self._queue.append(sending)
        self._wake(now_ms)

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        """New leaders, new topics, new settings: who waited looks again."""
        before, self._image = self._image, image
        for broker_id in self._channels.drop_lost(image):
            for sending in self._sendings.values():
                if sending.state == BUSY and sending.broker_id == broker_id:
                    self._responses.append((sending, sending.round, errors.NETWORK_EXCEPTION))
        if not self._sendings:
            return
        for sending in self._sendings.values():
            if sending.state == LATER and self._looks_different(sending.one.key, before):
                sending.due_ms = now_ms
        self._wake(now_ms)

    def _looks_different(self, key: SharePartitionKey, before: MetadataImage) -> bool:
        """Whether there is something new about where these letters go: an idle controller writes records too."""
        return self._outlook(key, before) != self._outlook(key, self._image)

    def _outlook(self, key: SharePartitionKey, image: MetadataImage) -> tuple[str, int, bool]:
        assert self.settings is not None
        try:
            box = find_letter_box(image, self.settings, key[0], key[2])
        except (NotAllowed, TopicMissing, NoLeader) as error:
            return str(error), -1, False
        broker = image.brokers.get(box.leader)
        return box.topic, box.leader, broker is not None and not broker.fenced

    def _wake(self, due_ms: int) -> None:
        if self.on_deadline is not None:
            self.on_deadline(due_ms)

    def poll(self, now_ms: int) -> int:
        if not self._sendings:
            return NEVER_MS
        responses, self._responses = self._responses, []
        for sending, number, code in responses:
            if sending.state == BUSY and sending.round == number:
                self._on_response(sending, code, now_ms)
        read, self._read = self._read, []
        for sending, number in read:
            if sending.state == BUSY and sending.round == number:
                self._go_on(sending, now_ms)
        due_ms = self._queue_due(now_ms)
        busy = sum([1 for sending in self._sendings.values() if sending.state == BUSY])
        for _ in range(len(self._queue)):
            if busy >= ROUNDS_MAX:
                break
            sending = self._queue.popleft()
            self._begin(sending, now_ms)
            busy += sending.state == BUSY
        if self._responses or self._read or (self._queue and busy < ROUNDS_MAX):
            return now_ms
        return min([due_ms, *[one.due_ms for one in self._sendings.values() if one.state == LATER]])

    def _queue_due(self, now_ms: int) -> int:
        """Those whose pause is over; when the next one's is."""
        next_ms = NEVER_MS
        for sending in list(self._sendings.values()):
            if sending.one.state != ACTIVE and sending.state == LATER:
                self._drop(sending)
            elif sending.state == LATER and sending.due_ms <= now_ms:
                sending.state = QUEUED
                self._queue.append(sending)
            elif sending.state == LATER:
                next_ms = min(next_ms, sending.due_ms)
        return next_ms

    def _drop(self, sending: Sending) -> None:
        sending.forget_round()
        self._sendings.pop(sending.one, None)

    def _try_later(self, sending: Sending, now_ms: int) -> None:
        sending.forget_round()
        sending.state = LATER
        sending.due_ms = now_ms + min(BACKOFF_MAX_MS, BACKOFF_MS << min(sending.attempts, 8))
        sending.attempts += 1
        sending.letters_max = LETTERS_MAX
        sending.copies = True
        self.counts.dead_letter_retries_total += 1
        self._wake(sending.due_ms)

    # One round: find the place, read what is given up, build, send

    def _begin(self, sending: Sending, now_ms: int) -> None:
        one = sending.one
        if one.state != ACTIVE or one.window.archiving == 0:
            self._drop(sending)
            return
        one.store_letters_again(now_ms)
        due = one.letters_due(sending.letters_max)
        if not due:
            # It is told when they are stored.
            sending.state = LATER
            sending.due_ms = now_ms + BACKOFF_MS
            return
        sending.state = BUSY
        sending.due = due
        if self._box_of(sending, now_ms) is None:
            return
        sending.source = LetterSource(one.partition, one.leader_epoch, due, ReadAgain(self, sending).done)
        self._go_on(sending, now_ms)

    def _box_of(self, sending: Sending, now_ms: int) -> LetterBox | None:
        """None if there is none now; then it is seen to that somebody looks again."""
        one = sending.one
        assert self.settings is not None
        try:
            return find_letter_box(self._image, self.settings, one.key[0], one.key[2])
        except NotAllowed as error:
            self._give_up(sending, one.letters_due(NEVER_MS), str(error), now_ms)
        except TopicMissing as error:
            self._create_topic(error.name, now_ms)
            self._try_later(sending, now_ms)
        except NoLeader as error:
            self._tell(one, f"a dead letter has to wait: {error}", now_ms)
            self._try_later(sending, now_ms)
        return None

    def _go_on(self, sending: Sending, now_ms: int) -> None:
        assert sending.source is not None and self.settings is not None
        try:
            source = sending.source.read()
        except (KafkaError, NotCommittedYet):
            self._try_later(sending, now_ms)
            return
        box = None if source is None else self._box_of(sending, now_ms)
        if source is None or box is None:
            return
        one = sending.one
        copies = sending.copies and self.settings.copies_records_of(self._image, one.key[0])
        bytes_max = min(BATCH_BYTES_MAX, self._log_config_of(box.topic).max_message_bytes)
        wall_ms = self._replicas.logs.wall.at(now_ms)
        partition = one.partition
        sending.batch = build_letters(
            one.key[0],
            partition.topic,
            partition.index,
            due=sending.due,
            source=source,
            copies=copies,
            bytes_max=bytes_max,
            wall_ms=wall_ms,
        )
        sending.source = None
        if sending.batch.size == 0:
            self.on_response(sending, sending.round, errors.NONE, now_ms)
            return
        self._send(sending, box, sending.batch, now_ms)

    def _send(self, sending: Sending, box: LetterBox, batch: LetterBatch, now_ms: int) -> None:
        sending.broker_id = box.leader
        response = RoundResponse(self, sending, box)
        if box.leader == self._broker_id:
            self._append(box, batch, response, now_ms)
            return
        channel = self._channels.find(box.leader, self._image)
        if channel is None:
            self._try_later(sending, now_ms)
            return
        records = MemoryRecords(batch.data, 0, len(batch.data))
        topic = TopicProduceData(box.topic, partition_data=[PartitionProduceData(box.index, records)])
        request = ProduceRequest(None, ALL_IN_SYNC, max(1, self._timeout_ms // 2), [topic])
        channel.send(PRODUCE, PRODUCE_VERSION, request, self._timeout_ms, response.on_response)

    def _append(self, box: LetterBox, batch: LetterBatch, response: RoundResponse, now_ms: int) -> None:
        """This broker leads the partition of the dead letter topic too."""
        try:
            partition = self._replicas.find(box.topic, box.index)
            if partition is None:
                raise self._replicas.why_missing(box.topic, box.index)
            records = MemoryRecords(batch.data, 0, len(batch.data))
            result = partition.append_as_leader(records, ALL_IN_SYNC, now_ms, CLIENT)
        except KafkaError as error:
            response.done(error.code, now_ms)
            return
        context = self._replicas.context
        if context.woken:
            context.serve_woken(now_ms)
        wait = LetterWait(partition, result.last_offset + 1, response)
        partition.waiters.append(wait)
        self._waiting.call_at(now_ms + self._timeout_ms, wait)
        wait.on_partition_moved(now_ms)

    # Responses

    def on_read(self, sending: Sending, number: int) -> None:
        self._read.append((sending, number))
        self._wake(AT_ONCE_MS)

    def on_response(self, sending: Sending, number: int, code: int, now_ms: int) -> None:
        """In a turn of its own: what waits for partitions must not change others meanwhile."""
        self._responses.append((sending, number, code))
        self._wake(now_ms)

    def _on_response(self, sending: Sending, code: int, now_ms: int) -> None:
        one, batch = sending.one, sending.batch
        if one.state != ACTIVE or batch is None:
            self._drop(sending)
        elif code == errors.NONE:
            sending.forget_round()
            self.counts.dead_letters_total += batch.size
            sending.attempts = 0
            sending.letters_max = LETTERS_MAX
            sending.copies = True
            self._queue_again(sending)
            one.archive_letters(batch.letters, now_ms)
        elif code in TOO_LARGE and batch.size > 1:
            sending.forget_round()
            sending.letters_max = max(1, batch.size // 2)
            self._queue_again(sending)
        elif code in TOO_LARGE and batch.with_copies:
            sending.forget_round()
            sending.letters_max = 1
            sending.copies = False
            self._queue_again(sending)
        elif code in TOO_LARGE or code in NEVER_TAKEN:
            self._give_up(sending, batch.letters, f"the topic does not take it: {errors.error_name(code)}", now_ms)
        else:
            self._tell(one, f"a dead letter is tried again later: {errors.error_name(code)}", now_ms)
            self._try_later(sending, now_ms)

    def _queue_again(self, sending: Sending) -> None:
        sending.state = QUEUED
        self._queue.append(sending)

    def _give_up(self, sending: Sending, letters: list[Letters], why: str, now_ms: int) -> None:
        """Nobody is held up by a dead letter that cannot be."""
        one = sending.one
        sending.forget_round()
        sending.attempts = 0
        sending.letters_max = LETTERS_MAX
        sending.copies = True
        self._queue_again(sending)
        self._tell(one, f"records are archived without dead letters: {why}", now_ms)
        self.counts.dead_letters_dropped_total += one.archive_letters(letters, now_ms)

    def _tell(self, one: SharePartition, text: str, now_ms: int) -> None:
        """Once in a while: a group may have thousands of them."""
        about = (one.key[0], text)
        if now_ms - self._logged_at_ms.get(about, -TOLD_AGAIN_MS) >= TOLD_AGAIN_MS:
            if len(self._logged_at_ms) >= TOLD_MAX:
                self._logged_at_ms.clear()
            self._logged_at_ms[about] = now_ms
            log.warning("%s: %s", one, text)

    def close(self) -> None:
        self._channels.close()


class ReadAgain:
    """What was cold is in memory."""

    def __init__(self, owner: DeadLetters, sending: Sending) -> None:
        self._owner = owner
        self._sending = sending
        self._round = sending.round

    def done(self) -> None:
        self._owner.on_read(self._sending, self._round)


class RoundResponse:
    """What became of one batch of dead letters."""

    def __init__(self, owner: DeadLetters, sending: Sending, box: LetterBox) -> None:
        self._owner = owner
        self._sending = sending
        self._round = sending.round
        self._box = box

    def done(self, code: int, now_ms: int) -> None:
        self._owner.on_response(self._sending, self._round, code, now_ms)

    def on_response(self, response: Message | NoResponse, now_ms: int) -> None:
        code = errors.NETWORK_EXCEPTION
        if isinstance(response, ProduceResponse):
            for topic in response.responses:
                for row in topic.partition_responses:
                    if (topic.name, row.index) == (self._box.topic, self._box.index):
                        code = row.error_code
        self.done(code, now_ms)


class LetterWait(TimedWaiter):
    """Waits until all in-sync replicas have a batch that was appended here."""

    def __init__(self, partition: Partition, offset: int, response: RoundResponse) -> None:
        super().__init__()
        self._partition = partition
        self._led_since_epoch = partition.led_since_epoch
        self._offset = offset
        self._response = response

    def on_partition_moved(self, now_ms: int) -> None:
        if self.finished:
            return
        partition = self._partition
        if not partition.is_leader or partition.led_since_epoch != self._led_since_epoch:
            code = errors.NOT_LEADER_OR_FOLLOWER
        elif not partition.is_online():
            code = errors.KAFKA_STORAGE_ERROR
        elif partition.high_watermark.offset < self._offset:
            return
        elif not partition.has_enough_in_sync_replicas():
            code = errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        else:
            code = errors.NONE
        self.finished = True
        self._response.done(code, now_ms)

    def on_deadline(self, now_ms: int) -> None:
        self.finished = True
        self._partition.drop_finished_waiters()
        self._response.done(errors.REQUEST_TIMED_OUT, now_ms)
