"""Plays scripts about transactions against anything that answers requests: a simulated node, Moldau, Apache Kafka.

A producer is written `p1/0`: p1 is the first producer id that was given out, 0 its epoch. What clients do again after
CONCURRENT_TRANSACTIONS or COORDINATOR_LOAD_IN_PROGRESS is done again here, except where a command ends with `once`.

    > init x [timeout=60000] [as=p1/0] [v=5]           InitProducerId
    > add x p1/0 t-0 t-1 [v=3]                         AddPartitionsToTxn; from v=4 on as a leader asks
    > verify x p1/0 t-0                                the same, verification only
    > write x p1/0 t-0 seq=0 [n=1] [v=12] [plain] [control]   Produce
    > add-offsets x p1/0 g                             AddOffsetsToTxn
    > commit-offset x p1/0 g t-0 5 [v=5] [gen=1] [member=m]   TxnOffsetCommit
    > commit x p1/0 [v=5], > abort x p1/0 [v=5]        EndTxn
    > marker p1/0 commit t-0 [coordinator=0] [v=2]     WriteTxnMarkers
    > finalize 1                                       UpdateFeatures: transaction.version
    > describe x, > states t-0, > log t-0, > offset g t-0, > records x
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from moldau.coordinator.routing import partition_for
from moldau.protocol import errors
from moldau.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from moldau.protocol.primitives import Message, Reader
from moldau.protocol.records_data import MemoryRecords
from moldau.protocol.stored.transaction_records import TransactionLogKey, TransactionLogValue
from moldau.records.batch import split_batches
from moldau.records.builder import BatchBuilder
from moldau.records.walk import read_records

STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
UNKNOWN_PRODUCER = 123_456_789
SAFE_DOWNGRADE = 2


class Player:
    """`ask` sends a request and returns the answer, `pause` lets a moment pass. Names get `suffix` on the wire."""

    def __init__(
        self,
        ask: Callable[[Message, int], Any],
        pause: Callable[[], None],
        now_ms: Callable[[], int],
        transaction_partitions: int,
        suffix: str = "",
    ) -> None:
        self._ask = ask
        self._pause = pause
        self._now_ms = now_ms
        self._transaction_partitions = transaction_partitions
        self._suffix = suffix
        self._known: list[int] = []
        self._retries = 50

    # Names

    def _real(self, name: str) -> str:
        return name + self._suffix if name != "''" else ""

    def _shown(self, name: str) -> str:
        return name.removesuffix(self._suffix) if self._suffix else name

    def _producer(self, text: str) -> tuple[int, int]:
        name, _, epoch = text.partition("/")
        number = int(name.removeprefix("p"))
        return (self._known[number - 1] if number <= len(self._known) else UNKNOWN_PRODUCER), int(epoch)

    def _shown_producer(self, producer_id: int, epoch: int) -> str:
        if producer_id < 0:
            return "none" if epoch < 0 else f"none/{epoch}"
        if producer_id not in self._known:
            self._known.append(producer_id)
        return f"p{self._known.index(producer_id) + 1}/{epoch}"

    def _place(self, text: str) -> tuple[str, int]:
        topic, _, index = text.rpartition("-")
        return self._real(topic), int(index)

    # Playing

    def play(self, command: str) -> list[str]:
        words = command.split()
        options = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        plain = [word for word in words[1:] if "=" not in word]
        self._retries = 0 if "once" in plain else 50
        plain = [word for word in plain if word != "once"]
        verb = getattr(self, "_" + words[0].replace("-", "_"))
        shown = verb(plain, options)
        return [shown] if isinstance(shown, str) else shown

    def _until_done(self, request: Message, version: int, code_of: Callable[[Any], int]) -> Any:
        answer = self._ask(request, version)
        for _ in range(self._retries):
            if code_of(answer) not in (errors.CONCURRENT_TRANSACTIONS, errors.COORDINATOR_LOAD_IN_PROGRESS):
                break
            self._pause()
            answer = self._ask(request, version)
        return answer

    def _init(self, words: list[str], options: dict[str, str]) -> str:
        request = InitProducerIdRequest(self._real(words[0]), int(options.get("timeout", "60000")))
        if "as" in options:
            request.producer_id, request.producer_epoch = self._producer(options["as"])
        answer = self._until_done(request, int(options.get("v", "5")), lambda one: int(one.error_code))
        if answer.error_code:
            return errors.error_name(answer.error_code)
        return self._shown_producer(answer.producer_id, answer.producer_epoch)

    def _add(self, words: list[str], options: dict[str, str], verify: bool = False) -> str:
        transactional_id, (producer_id, epoch) = self._real(words[0]), self._producer(words[1])
        topics: dict[str, list[int]] = {}
        for topic, index in map(self._place, words[2:]):
            topics.setdefault(topic, []).append(index)
        rows = [AddPartitionsToTxnTopic(topic, indexes) for topic, indexes in topics.items()]
        version = int(options.get("v", "3"))
        if version < 4:
            request = AddPartitionsToTxnRequest(None, transactional_id, producer_id, epoch, rows)
        else:
            one = AddPartitionsToTxnTransaction(transactional_id, producer_id, epoch, verify, rows)
            request = AddPartitionsToTxnRequest([one])

        def results(answer: Any) -> list[Any]:
            topics = answer.results_by_topic_v3_and_below
            if version >= 4:
                topics = answer.results_by_transaction[0].topic_results
            return [(topic.name, row) for topic in topics for row in topic.results_by_partition]

        answer = self._until_done(request, version, lambda one: int(results(one)[0][1].partition_error_code))
        shown = [
            f"{self._shown(topic)}-{row.partition_index} {errors.error_name(row.partition_error_code)}"
            for topic, row in results(answer)
        ]
        return ", ".join(sorted(shown))

    def _verify(self, words: list[str], options: dict[str, str]) -> str:
        return self._add(words, {"v": "5", **options}, verify=True)

    def _write(self, words: list[str], options: dict[str, str]) -> str:
        producer_id, epoch = self._producer(words[1])
        topic, index = self._place(words[2])
        builder = BatchBuilder()
        count = int(options.get("n", "1"))
        for number in range(count):
            if "control" in words:
                builder.append(self._now_ms(), b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00", [])
            else:
                builder.append(self._now_ms(), None, b"%d" % number, [])
        data = builder.build(
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=int(options.get("seq", "0")),
            transactional="plain" not in words,
            control="control" in words,
        )
        row = PartitionProduceData(index=index, records=MemoryRecords(data, 0, len(data)))
        transactional_id = None if words[0] == "-" else self._real(words[0])
        request = ProduceRequest(transactional_id, -1, 10_000, [TopicProduceData(name=topic, partition_data=[row])])

        def only(answer: Any) -> Any:
            return answer.responses[0].partition_responses[0]

        answer = self._until_done(request, int(options.get("v", "12")), lambda one: int(only(one).error_code))
        code = only(answer).error_code
        return errors.error_name(code) if code else f"at {only(answer).base_offset}"

    def _add_offsets(self, words: list[str], options: dict[str, str]) -> str:
        request = AddOffsetsToTxnRequest(self._real(words[0]), *self._producer(words[1]), self._real(words[2]))
        answer = self._until_done(request, int(options.get("v", "4")), lambda one: int(one.error_code))
        return errors.error_name(answer.error_code)

    def _commit_offset(self, words: list[str], options: dict[str, str]) -> str:
        topic, index = self._place(words[3])
        row = TxnOffsetCommitRequestPartition(index, int(words[4]), -1, "")
        request = TxnOffsetCommitRequest(
            self._real(words[0]),
            self._real(words[2]),
            *self._producer(words[1]),
            int(options.get("gen", "-1")),
            options.get("member", ""),
            topics=[TxnOffsetCommitRequestTopic(topic, [row])],
        )

        def code(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        return errors.error_name(code(self._until_done(request, int(options.get("v", "5")), code)))

    def _commit(self, words: list[str], options: dict[str, str]) -> str:
        return self._end(words, options, True)

    def _abort(self, words: list[str], options: dict[str, str]) -> str:
        return self._end(words, options, False)

    def _end(self, words: list[str], options: dict[str, str], committed: bool) -> str:
        version = int(options.get("v", "5"))
        request = EndTxnRequest(self._real(words[0]), *self._producer(words[1]), committed)
        answer = self._until_done(request, version, lambda one: int(one.error_code))
        if answer.error_code:
            return errors.error_name(answer.error_code)
        self._settle(words[0])
        return "NONE" if version < 5 else self._shown_producer(answer.producer_id, answer.producer_epoch)

    def _settle(self, transactional_id: str) -> None:
        """Markers are written behind the back of the client; scripts look when they are."""
        for _ in range(200):
            if not self._described(transactional_id).transaction_state.startswith("Prepare"):
                return
            self._pause()

    def _marker(self, words: list[str], options: dict[str, str]) -> str:
        topic, index = self._place(words[2])
        marker = WritableTxnMarker(
            *self._producer(words[0]),
            words[1] == "commit",
            [WritableTxnMarkerTopic(topic, [index])],
            int(options.get("coordinator", "0")),
            int(options.get("tv", "0")),
        )
        answer = self._ask(WriteTxnMarkersRequest([marker]), int(options.get("v", "2")))
        return errors.error_name(answer.markers[0].topics[0].partitions[0].error_code)

    def _finalize(self, words: list[str], options: dict[str, str]) -> str:
        update = FeatureUpdateKey("transaction.version", int(words[0]), upgrade_type=SAFE_DOWNGRADE)
        answer = self._ask(UpdateFeaturesRequest(feature_updates=[update]), 1)
        for _ in range(10):
            self._pause()
        return errors.error_name(answer.error_code or answer.results[0].error_code)

    # Looking

    def _described(self, transactional_id: str) -> Any:
        answer = self._ask(DescribeTransactionsRequest([self._real(transactional_id)]), 0)
        return answer.transaction_states[0]

    def _describe(self, words: list[str], options: dict[str, str]) -> str:
        one = self._described(words[0])
        if one.error_code:
            return errors.error_name(one.error_code)
        places = sorted(f"{self._shown(row.topic)}-{index}" for row in one.topics for index in row.partitions)
        places = [re.sub("__consumer_offsets-[0-9]+", "offsets", place) for place in places]
        since = "" if one.transaction_start_time_ms < 0 else " begun"
        shown = self._shown_producer(one.producer_id, one.producer_epoch)
        return " ".join([f"{one.transaction_state} {shown} {one.transaction_timeout_ms} ms{since}", *places])

    def _states(self, words: list[str], options: dict[str, str]) -> list[str]:
        """What DescribeProducers tells of a partition."""
        topic, index = self._place(words[0])
        answer = self._ask(DescribeProducersRequest([TopicRequest(topic, [index])]), 0)
        return sorted(
            f"{self._shown_producer(one.producer_id, one.producer_epoch)} sequence {one.last_sequence}"
            f" open since {one.current_txn_start_offset}"
            for one in answer.topics[0].partitions[0].active_producers
        )

    def _fetch(self, topic: str, index: int, offset: int) -> Any:
        row = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        wanted = FetchTopic(topic=topic, partitions=[row])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation_level=0, topics=[wanted])
        return self._ask(request, 12).responses[0].partitions[0]

    def _log(self, words: list[str], options: dict[str, str]) -> list[str]:
        """Every batch: what it is, whose, from where to where; at the end the last stable offset."""
        topic, index = self._place(words[0])
        offset, end, shown, answer = 0, 1, [], None
        while offset < end:
            answer = self._fetch(topic, index, offset)
            data = b"" if answer.records is None else answer.records.to_bytes()
            end = answer.high_watermark
            for header in split_batches(data, 0, len(data)):
                kind = "records" if header.is_transactional else "plain records"
                if header.is_control:
                    record = read_records(data, header)[0]
                    kind = "commit" if record.key == b"\x00\x00\x00\x01" else "abort"
                who = self._shown_producer(int(header.producer_id), int(header.producer_epoch))
                sequence = "" if header.is_control else f" sequence {header.base_sequence}"
                shown.append(f"{header.base_offset}-{header.last_offset} {kind} {who}{sequence}")
                offset = int(header.next_offset)
            if not data:
                break
        stable = self._stable_offset(topic, index)
        return [*shown, f"stable to {stable} of {end}"]

    def _stable_offset(self, topic: str, index: int) -> int:
        row = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1)
        wanted = FetchTopic(topic=topic, partitions=[row])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, isolation_level=1, topics=[wanted])
        return int(self._ask(request, 12).responses[0].partitions[0].last_stable_offset)

    def _offset(self, words: list[str], options: dict[str, str]) -> str:
        topic, index = self._place(words[1])
        wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=[index])]
        group = OffsetFetchRequestGroup(self._real(words[0]), topics=wanted)
        row = self._ask(OffsetFetchRequest(groups=[group], require_stable=True), 9).groups[0].topics[0].partitions[0]
        return errors.error_name(row.error_code) if row.error_code else str(row.committed_offset)

    def _records(self, words: list[str], options: dict[str, str]) -> list[str]:
        """What the log of the coordinator says about an id."""
        name = self._real(words[0])
        index = partition_for(name, self._transaction_partitions)
        answer = self._fetch("__transaction_state", index, 0)
        data = answer.records.to_bytes()
        shown = []
        for header in split_batches(data, 0, len(data)):
            for record in read_records(data, header):
                assert record.key is not None
                if TransactionLogKey.decode(Reader(record.key[2:]), 0).transactional_id != name:
                    continue
                shown.append("tombstone" if record.value is None else self._value(record.value))
        return shown

    def _value(self, data: bytes) -> str:
        reader = Reader(data)
        version = reader.int16()
        value = TransactionLogValue.decode(reader, version)
        rows = value.transaction_partitions
        places = (
            "null"
            if rows is None
            else ",".join(sorted(f"{self._shown(row.topic)}-{index}" for row in rows for index in row.partition_ids))
        )
        previous = self._shown_producer(value.previous_producer_id, 0).partition("/")[0]
        following = self._shown_producer(value.next_producer_id, 0).partition("/")[0]
        begun = "" if value.transaction_start_timestamp_ms < 0 else " begun"
        return (
            f"v{version} {STATES[value.transaction_status]} "
            f"{self._shown_producer(value.producer_id, value.producer_epoch)} previous {previous} next {following} "
            f"{value.transaction_timeout_ms} ms [{re.sub('__consumer_offsets-[0-9]+', 'offsets', places)}]{begun} "
            f"client {value.client_transaction_version}"
        )
