"""Transactions of Moldau's own client, the same suite against Moldau and against Apache Kafka."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from moldau.client import (
    Admin,
    AsyncProducer,
    Consumer,
    ConsumerGroupMetadata,
    NewTopic,
    PreparedTransaction,
    Producer,
    TopicPartition,
)
from moldau.client.errors import (
    Category,
    ClientError,
    CommitFailedError,
    InvalidTxnTimeoutError,
    ProducerFencedError,
    RecordTooLargeError,
    TransactionAbortableError,
    TransactionCallError,
    error_for,
)
from moldau.client.produce.transactions import TransactionManager
from moldau.protocol import errors as codes
from tests.interop.kafka_oracle import java_command, run_tool
from tests.interop.nodes import Node
from tests.pace import patience, patience_ms

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["moldau_server", "oracle"], ids=["moldau", "kafka"])
def server(request: pytest.FixtureRequest) -> str:
    node: Node = request.getfixturevalue(request.param)
    return node.bootstrap


@pytest.fixture(params=[1, 2], ids=["tv1", "tv2"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The transaction version that the client speaks; servers with version 2 serve clients of version 1 as well."""
    number: int = request.param
    if number == 1:
        monkeypatch.setattr(TransactionManager, "_features_level", lambda self: 1)
    return number


def create(server: str, topic: str, partitions: int = 1) -> list[TopicPartition]:
    with Admin(server) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].get()
    return [TopicPartition(topic, index) for index in range(partitions)]


def new_producer(server: str, topic: str, **more: Any) -> Producer:
    producer = Producer(server, transactional_id=f"of-{topic}", **more)
    producer.init_transactions()
    return producer


def read(server: str, partitions: list[TopicPartition], **more: Any) -> list[bytes]:
    """Everything up to the end as the isolation level sees it."""
    values: list[bytes] = []
    with Consumer(server, **{"isolation_level": "read_committed", **more}) as consumer:
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        deadline = time.monotonic() + patience(30)
        while any(consumer.position(item) < ends[item] for item in partitions):
            assert time.monotonic() < deadline, "the last stable offset is stuck"
            values += [record.value or b"" for record in consumer.poll(200)]
    return values


def test_what_is_committed_is_read_and_what_is_aborted_is_not(server: str, topic: str, version: int) -> None:
    partitions = create(server, topic, 2)
    with new_producer(server, topic) as producer:
        assert producer._transactions is not None
        for number in range(4):
            producer.begin_transaction()
            for partition in (0, 1):
                producer.send(topic, b"%d in %d" % (number, partition), partition=partition)
            if number % 2:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
            assert producer._transactions.manager.version_2 is (version == 2)
    assert sorted(read(server, partitions)) == [b"0 in 0", b"0 in 1", b"2 in 0", b"2 in 1"]
    assert len(read(server, partitions, isolation_level="read_uncommitted")) == 8


def test_nothing_is_read_while_a_transaction_is_open(server: str, topic: str, version: int) -> None:
    partitions = create(server, topic)
    with Producer(server) as other, new_producer(server, topic) as producer:
        other.send(topic, b"before").result()
        producer.begin_transaction()
        producer.send(topic, b"open").result()
        other.send(topic, b"after").result()
        assert read(server, partitions) == [b"before"]
        producer.commit_transaction()
        assert read(server, partitions) == [b"before", b"open", b"after"]


def test_records_that_were_not_sent_yet_are_dropped_by_an_abort(server: str, topic: str, version: int) -> None:
    partitions = create(server, topic)
    with new_producer(server, topic, linger_ms=60_000, delivery_timeout_ms=patience_ms(120_000)) as producer:
        producer.begin_transaction()
        future = producer.send(topic, b"never")
        producer.abort_transaction()
        error = future.exception(patience_ms(5_000))
        assert error is not None and error.category is Category.ABORTABLE
        with producer.transaction():
            producer.send(topic, b"later")
    assert read(server, partitions) == [b"later"]


def test_many_transactions_of_several_producers_at_once(server: str, topic: str, version: int) -> None:
    """Small fetches, so that transactions reach over many of them."""
    partitions = create(server, topic, 2)
    chance = random.Random(version)
    producers = [new_producer(server, f"{topic}-{number}", linger_ms=0) for number in range(3)]
    wanted: dict[int, list[bytes]] = {0: [], 1: []}
    open_now: dict[int, list[tuple[int, bytes]]] = {}
    written: dict[int, list[tuple[bytes, bool]]] = {0: [], 1: []}
    fate: dict[bytes, bool] = {}
    for step in range(150):
        number = chance.randrange(3)
        producer = producers[number]
        if number not in open_now:
            producer.begin_transaction()
            open_now[number] = []
        if chance.random() < 0.25 and open_now[number]:
            commit = chance.random() < 0.6
            (producer.commit_transaction if commit else producer.abort_transaction)()
            fate.update(dict.fromkeys((value for _, value in open_now.pop(number)), commit))
            continue
        partition = chance.randrange(2)
        value = b"%d of %d" % (step, number) + b"." * chance.randrange(300)
        producer.send(topic, value, partition=partition).result(patience_ms(30_000))
        written[partition].append((value, True))
        open_now[number].append((partition, value))
    for number, rows in open_now.items():
        producers[number].abort_transaction()
        fate.update(dict.fromkeys((value for _, value in rows), False))
    for producer in producers:
        producer.close()
    for partition, rows_ in written.items():
        wanted[partition] = [value for value, _ in rows_ if fate[value]]
    small = {"max_partition_fetch_bytes": 700, "fetch_max_bytes": 1400, "max_poll_records": 7}
    for partition in (0, 1):
        assert read(server, [partitions[partition]], **small) == wanted[partition]


def test_a_later_producer_with_the_same_id_fences_the_earlier_one(server: str, topic: str, version: int) -> None:
    partitions = create(server, topic)
    first = new_producer(server, topic)
    first.begin_transaction()
    first.send(topic, b"of the first").result()
    with new_producer(server, topic) as second:
        with pytest.raises(ProducerFencedError) as raised:
            first.commit_transaction()
        assert raised.value.category is Category.APPLICATION_RECOVERABLE
        for call in (first.begin_transaction, first.abort_transaction):
            with pytest.raises(ProducerFencedError):
                call()
        with second.transaction():
            second.send(topic, b"of the second")
    first.close(0)
    assert read(server, partitions) == [b"of the second"]


def test_a_zombie_that_sends_learns_it_at_the_latest_when_it_ends(server: str, topic: str, version: int) -> None:
    partitions = create(server, topic)
    first = new_producer(server, topic)
    first.begin_transaction()
    first.send(topic, b"one").result()
    second = new_producer(server, topic)
    late = first.send(topic, b"two")
    assert late.exception(patience_ms(30_000)) is not None
    with pytest.raises(ClientError):
        first.commit_transaction()
    if first.in_transaction:
        with pytest.raises(ProducerFencedError):
            first.abort_transaction()
    first.close(0)
    second.close()
    assert read(server, partitions) == []


def test_a_record_that_is_refused_spoils_its_transaction_only(server: str, topic: str, version: int) -> None:
    with Admin(server) as admin:
        admin.create_topics([NewTopic(topic, 1, 1, {"max.message.bytes": "1000"})])[topic].get()
    with new_producer(server, topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"fits").result()
        assert isinstance(producer.send(topic, b"x" * 5000).exception(patience_ms(20_000)), RecordTooLargeError)
        with pytest.raises(TransactionAbortableError) as raised:
            producer.commit_transaction()
        assert isinstance(raised.value.__cause__, RecordTooLargeError)
        with pytest.raises(TransactionAbortableError):
            producer.send(topic, b"more")
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"good")
    assert read(server, [TopicPartition(topic, 0)]) == [b"good"]


def test_the_block_of_a_transaction_commits_or_aborts(server: str, topic: str) -> None:
    partitions = create(server, topic)
    with new_producer(server, topic) as producer:
        with producer.transaction():
            producer.send(topic, b"kept")
        with pytest.raises(RuntimeError, match="mine"), producer.transaction():
            producer.send(topic, b"dropped")
            raise RuntimeError("mine")
        with producer.transaction():
            pass
    assert read(server, partitions) == [b"kept"]


def test_closing_aborts_what_is_open(server: str, topic: str, version: int) -> None:
    partitions = create(server, topic)
    producer = new_producer(server, topic)
    producer.begin_transaction()
    producer.send(topic, b"open").result()
    producer.close()
    assert read(server, partitions) == []
    with Admin(server) as admin:
        described = admin.describe_transactions([f"of-{topic}"])[f"of-{topic}"].get()
    assert described.state == "CompleteAbort"


def test_offsets_are_committed_with_the_transaction_or_not_at_all(server: str, topic: str, version: int) -> None:
    partitions = create(server, topic)
    group = ConsumerGroupMetadata(f"g-{topic}")
    with new_producer(server, topic) as producer, Consumer(server, group_id=group.group_id) as reader:
        producer.begin_transaction()
        producer.send_offsets_to_transaction({partitions[0]: 5}, group)
        producer.abort_transaction()
        assert reader.committed(partitions)[partitions[0]] is None
        with producer.transaction():
            producer.send(topic, b"one")
            producer.send_offsets_to_transaction({partitions[0]: 7}, group)
            producer.send_offsets_to_transaction({partitions[0]: 8}, group)
        found = reader.committed(partitions)[partitions[0]]
    assert found is not None and found.offset == 8


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_is_not_a_member_any_more_cannot_commit_offsets(
    server: str, topic: str, version: int, protocol: str
) -> None:
    """KIP-447: the group's generation fences, whatever the transactional id."""
    partitions = create(server, topic)
    settings = {"group.id": f"g-{topic}", "group.protocol": protocol}
    with new_producer(server, topic) as producer, Consumer(server, config=settings) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + patience(30)
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(200)
        now = consumer.group_metadata()
        with producer.transaction():
            producer.send_offsets_to_transaction({partitions[0]: 1}, now)
        producer.begin_transaction()
        with pytest.raises(TransactionAbortableError) as raised:
            producer.send_offsets_to_transaction({partitions[0]: 2}, now._replace(member_id="somebody else"))
        assert isinstance(raised.value.__cause__, CommitFailedError)
        producer.abort_transaction()
        with producer.transaction():
            producer.send_offsets_to_transaction({partitions[0]: 3}, now)
        found = consumer.committed(partitions)[partitions[0]]
        assert found is not None and found.offset == 3


def test_a_timeout_above_the_maximum_is_refused(server: str, topic: str) -> None:
    producer = Producer(server, transactional_id=f"of-{topic}", transaction_timeout_ms=2_000_000_000)
    with pytest.raises(InvalidTxnTimeoutError):
        producer.init_transactions()
    producer.close(0)


def test_calls_out_of_turn(server: str, topic: str) -> None:
    create(server, topic)
    with Producer(server, transactional_id=f"of-{topic}") as producer:
        with pytest.raises(TransactionCallError, match="init_transactions"):
            producer.begin_transaction()
        producer.init_transactions()
        assert producer.partitions_for(topic) == [0]
        with pytest.raises(TransactionCallError, match="begin_transaction"):
            producer.send(topic, b"x")
    with Producer(server) as plain, pytest.raises(TransactionCallError, match=r"transactional\.id"):
        plain.init_transactions()


def test_asyncio(server: str, topic: str) -> None:
    partitions = create(server, topic)

    async def main() -> None:
        async with AsyncProducer(server, transactional_id=f"of-{topic}") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send(topic, b"kept")
                await producer.send_offsets_to_transaction({partitions[0]: 4}, ConsumerGroupMetadata(f"g-{topic}"))
            with pytest.raises(RuntimeError, match="mine"):
                async with producer.transaction():
                    await producer.send(topic, b"dropped")
                    raise RuntimeError("mine")
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"dropped too")
            await producer.abort_transaction()
            await producer.begin_transaction()
            await producer.send(topic, b"kept too")
            await producer.commit_transaction()

    asyncio.run(main())
    assert read(server, partitions) == [b"kept", b"kept too"]


@pytest.mark.parametrize("decided", [True, False])
def test_two_phases(start_moldau: Any, topic: str, decided: bool) -> None:
    """KIP-939: the next producer ends what its predecessor has prepared, as was decided meanwhile."""
    switches = {"transaction.two.phase.commit.enable": "true", "unstable.api.versions.enable": "true"}
    server = start_moldau(switches).bootstrap
    partitions = create(server, topic)
    settings = {"transactional.id": f"of-{topic}", "transaction.two.phase.commit.enable": True}
    with Producer(server, config=settings) as first:
        first.init_transactions()
        first.begin_transaction()
        first.send(topic, b"prepared")
        prepared = first.prepare_transaction()
        with pytest.raises(TransactionCallError, match="prepared"):
            first.send(topic, b"more")
    with Producer(server, config=settings) as second:
        second.init_transactions(keep_prepared=True)
        assert second.in_transaction and read(server, partitions) == []
        noted = PreparedTransaction.parse(str(prepared))
        second.complete_transaction(noted if decided else PreparedTransaction(noted.producer_id, 99))
        with second.transaction():
            second.send(topic, b"next")
    assert read(server, partitions) == ([b"prepared", b"next"] if decided else [b"next"])


def run_own_tool(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moldau", "kafka-transactions", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=patience(60))


def test_the_tool_shows_what_the_real_one_shows(server: str, topic: str, kafka_tools: None) -> None:
    create(server, topic)
    name = f"of-{topic}"
    with new_producer(server, topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"open").result()
        for words in (
            ["list", "--transactional-id-pattern", name],
            ["list", "--duration-filter", "9999999"],
            ["list", "--duration-filter", "x"],
            ["describe", "--transactional-id", "nope"],
            ["describe-producers", "--topic", topic, "--partition", "0"],
            ["find-hanging", "--topic", topic],
            ["find-hanging", "--topic", "nope"],
            ["find-hanging"],
            ["abort", "--topic", topic, "--partition", "0", "--start-offset", "99"],
            ["abort", "--topic", topic, "--partition", "0"],
            ["bogus"],
        ):
            arguments = ["--bootstrap-server", server, *words]
            theirs, ours = run_tool("transactions", *arguments), run_own_tool(*arguments)
            assert (ours.stdout, ours.stderr, ours.returncode) == (theirs.stdout, theirs.stderr, theirs.returncode)
        producer.commit_transaction()
    for words in (["describe-producers", "--topic", topic, "--partition", "0"], ["find-hanging", "--topic", topic]):
        arguments = ["--bootstrap-server", server, *words]
        assert run_own_tool(*arguments).stdout == run_tool("transactions", *arguments).stdout


def test_a_hanging_transaction_is_found_and_aborted(server: str, topic: str) -> None:
    """Made to hang by ending it with its coordinator only for the other partition: nothing tells this one."""
    partitions = create(server, topic)
    with new_producer(server, topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"open").result()
        with Admin(server) as admin:
            now_ms = int(time.time() * 1000) + 60_000
            assert admin.find_hanging_transactions(partitions, 0, now_ms) == []
            where = ["--bootstrap-server", server]
            assert (
                run_own_tool(*where, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0").returncode
                == 0
            )
            state = admin.describe_producers(partitions)[partitions[0]].get()[0]
            assert state.current_transaction_start_offset is None
        assert read(server, partitions) == []
        producer.close(0)


def test_the_example_copies_exactly_once(server: str, topic: str) -> None:
    source, target = create(server, topic, 2), create(server, f"{topic}-copy", 2)
    with Producer(server) as producer:
        producer.send_many(topic, [b"value %d" % number for number in range(500)], [b"%d" % n for n in range(500)])
    for idle in ("8", "6"):
        done = subprocess.run(
            [
                sys.executable,
                str(ROOT / "examples" / "consume_transform_produce.py"),
                *("--bootstrap-server", server, "--source", topic, "--target", f"{topic}-copy"),
                *("--group", f"g-{topic}", "--transactional-id", f"of-{topic}", "--idle", idle),
            ],
            capture_output=True,
            text=True,
            timeout=patience(90),
        )
        assert done.returncode == 0, done.stderr
    assert sorted(read(server, target)) == sorted(value.upper() for value in read(server, source))


def test_what_errors_ask_for_is_true_of_apache_kafka(kafka_tools: None) -> None:
    """Every error has the category (KIP-1050) that the class of its exception has in Java."""
    if shutil.which("javac") is None:
        pytest.skip("a Java development kit is missing: the probe is run from its source")
    probe = Path(__file__).with_name("ErrorProbe.java")
    done = subprocess.run(java_command(str(probe)), capture_output=True, text=True, timeout=patience(120))
    assert done.returncode == 0, done.stderr
    theirs = {int(code): (name, category) for code, name, category in map(str.split, done.stdout.splitlines())}
    assert len(theirs) > 120
    ours = {}
    for code in theirs:
        category = error_for(code).category
        ours[code] = (codes.error_name(code), category.value if category else "none")
    assert ours == theirs
