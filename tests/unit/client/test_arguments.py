"""What users hand in wrongly is refused in our words, the same ones compiled and interpreted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from moldau.client import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    AsyncShareConsumer,
    Consumer,
    Producer,
    ShareConsumer,
)
from moldau.client.errors import ConfigError
from moldau.client.wiring import wired
from moldau.protocol.messages.metadata_request import MetadataRequest
from tests.pace import patience_ms
from tests.unit.client.fake_network import HOME, FakeNetwork, ScriptedBroker, metadata
from tests.unit.client.test_producer import new_producer, set_up


def producer_of_anything(**more: object) -> Any:
    return new_producer(set_up({"t": [1]})[0], **more)


def network() -> FakeNetwork:
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata({"t": [1]}))
    return FakeNetwork({HOME: broker})


PRODUCER: list[tuple[str, Callable[[Any], object], str]] = [
    ("a number as topic", lambda p: p.send(5, "v"), "The topic is an int, 5: give its name as text"),
    ("no topic", lambda p: p.send(None, "v"), "The topic is None"),
    ("bytes as topic", lambda p: p.send(b"t", "v"), "The topic is a bytes"),
    ("a list as topic", lambda p: p.send(["t"], "v"), "The topic is a list"),
    ("a number as value", lambda p: p.send("t", 5), "The value is an int: give bytes, text or None, or set value_s"),
    ("a number as key", lambda p: p.send("t", "v", 5), "The key is an int: give bytes"),
    (
        "text as partition",
        lambda p: p.send("t", "v", partition="0"),
        "The partition is a str, '0': give a whole number",
    ),
    ("a fraction as partition", lambda p: p.send("t", "v", partition=1.0), "The partition is a float"),
    ("text as timestamp", lambda p: p.send("t", "v", timestamp_ms="0"), "The timestamp is a str"),
    ("a fraction as timestamp", lambda p: p.send("t", "v", timestamp_ms=1.5), "The timestamp is a float"),
    (
        "no function",
        lambda p: p.send("t", "v", on_delivery=5),
        "The callback on_delivery is an int, 5: give a function",
    ),
    ("a number as headers", lambda p: p.send("t", "v", headers=5), "The headers are an int: give a dict"),
    ("text as headers", lambda p: p.send("t", "v", headers="abc"), "The headers are a str"),
    ("a number in a header", lambda p: p.send("t", "v", headers={"a": 5}), "value of the header a is an int"),
    (
        "a header named by a number",
        lambda p: p.send("t", "v", headers={5: b""}),
        "A header is a pair of a name as text",
    ),
    ("headers that are no pairs", lambda p: p.send("t", "v", headers=["ab"]), "A header is a pair"),
    ("a number as topic of many", lambda p: p.send_many(5, ["v"]), "The topic is an int"),
    ("text as many values", lambda p: p.send_many("t", "abc"), "The values are a str: give a list"),
    ("a number as many values", lambda p: p.send_many("t", 5), "The values are an int"),
    ("text as many keys", lambda p: p.send_many("t", ["v"], "k"), "The keys are a str"),
    ("text as partition of many", lambda p: p.send_many("t", ["v"], partition="x"), "The partition is a str"),
    ("a table to no topic", lambda p: p.send_arrow(5, pa.table({"value": ["v"]})), "The topic is an int"),
    ("partitions of a number", lambda p: p.partitions_for(5), "The topic is an int"),
    ("text as milliseconds", lambda p: p.flush("x"), "The timeout is a str, 'x': give milliseconds"),
    ("text as milliseconds to close", lambda p: p.close("x"), "The timeout is a str"),
]


@pytest.mark.parametrize(("case", "call", "sentence"), PRODUCER, ids=[row[0] for row in PRODUCER])
def test_a_producer_says_what_is_wrong(case: str, call: Callable[[Any], object], sentence: str) -> None:
    producer = producer_of_anything()
    with pytest.raises(TypeError) as caught:
        call(producer)
    assert sentence in str(caught.value)
    assert producer.send("t", "still of use").result(patience_ms(60_000)).offset == 0
    producer.close()


def test_too_few_keys_are_told() -> None:
    with producer_of_anything() as producer, pytest.raises(ValueError, match="more values than keys"):
        producer.send_many("t", ["a", "b"], ["k"])


def test_headers_may_be_text() -> None:
    network, log = set_up({"t": [1]})
    with new_producer(network) as producer:
        producer.send("t", "v", headers={"a": "b", "c": None})
        producer.send("t", "v", headers=(["a", b"b"],))
    assert [record.headers for record in log.records[0]] == [[("a", b"b"), ("c", None)], [("a", b"b")]]


def test_serializers_and_partitioners_have_to_give_what_can_be_sent() -> None:
    wrong: Any = lambda *given: "text"  # noqa: E731
    sentence = "value_serializer made a str of the value: it has to make bytes"
    with producer_of_anything(value_serializer=wrong) as producer, pytest.raises(TypeError, match=sentence):
        producer.send("t", 5)
    sentence = "partition that the partitioner chose is a str"
    with producer_of_anything(partitioner=wrong) as producer, pytest.raises(TypeError, match=sentence):
        producer.send("t", "v")
    with pytest.raises(TypeError, match="The key_serializer is an int, 5: give a function"):
        producer_of_anything(key_serializer=5)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"value": [1]}, "The column value is of the type int64: it has to have bytes or text"),
        ({"value": ["v"], "key": [1]}, "The column key is of the type int64"),
        ({"value": ["v"], "timestamp": ["x"]}, "The column timestamp is of the type string: it has to have timestamps"),
        ({"value": ["v"], "partition": ["x"]}, "The column partition is of the type string"),
        ({"value": ["v"], "headers": ["x"]}, "The column of headers is of the type string"),
    ],
)
def test_columns_of_other_types_are_named(columns: dict[str, list[Any]], sentence: str) -> None:
    with producer_of_anything() as producer, pytest.raises(ConfigError) as caught:
        producer.send_arrow("t", pa.table(columns))
    assert sentence in caught.value.message


CONSUMER: list[tuple[str, Callable[[Any], object], str]] = [
    ("names to assign", lambda c: c.assign(["t"]), r"assign() wants TopicPartition(topic, partition), not 't'"),
    ("one name to assign", lambda c: c.assign("t"), "assign() wants a list of TopicPartition"),
    ("a number to assign", lambda c: c.assign(5), "assign() wants a list"),
    ("text as partition", lambda c: c.assign([("t", "0")]), "assign() wants TopicPartition"),
    ("a name to seek", lambda c: c.seek("t", 0), "seek() wants TopicPartition"),
    ("text to seek", lambda c: c.seek(("t", 0), "0"), "The offset is a str, '0'"),
    ("a name to pause", lambda c: c.pause("t"), "pause() wants a list"),
    ("a position of a name", lambda c: c.position("t"), "position() wants TopicPartition"),
    ("a list to commit", lambda c: c.commit([1]), "commit() wants {TopicPartition(topic, partition): offset}"),
    ("a name to commit", lambda c: c.commit({"t": 1}), "commit() wants TopicPartition"),
    ("text to commit", lambda c: c.commit({("t", 0): "1"}), "The offset of t-0 is a str"),
    ("committed of names", lambda c: c.committed(["t"]), "committed() wants TopicPartition"),
    ("ends of names", lambda c: c.end_offsets(["t"]), "end_offsets() wants TopicPartition"),
    ("times of names", lambda c: c.offsets_for_times({"t": 1}), "offsets_for_times() wants TopicPartition"),
    ("text as milliseconds", lambda c: c.poll("x"), "The timeout is a str, 'x': give milliseconds"),
    ("partitions of a number", lambda c: c.partitions_for(5), "The topic is an int"),
    ("a number to subscribe", lambda c: c.subscribe(5), "subscribe() wants the names of topics, not 5"),
    ("numbers to subscribe", lambda c: c.subscribe([5]), "subscribe() wants the names of topics as text"),
    ("no listener", lambda c: c.subscribe("t", listener=5), "The listener is an int: derive its class"),
    ("no pattern", lambda c: c.subscribe(pattern=5), "The pattern is an int: give text"),
]


@pytest.mark.parametrize(("case", "call", "sentence"), CONSUMER, ids=[row[0] for row in CONSUMER])
def test_a_consumer_says_what_is_wrong(case: str, call: Callable[[Any], object], sentence: str) -> None:
    with (
        Consumer("broker:9092", group_id="g", config=wired(network=network())) as consumer,
        pytest.raises(TypeError) as caught,
    ):
        call(consumer)
    assert sentence in str(caught.value)


def test_pairs_are_taken_for_partitions() -> None:
    with Consumer("broker:9092", config=wired(network=network())) as consumer:
        consumer.assign([("t", 0)])  # type: ignore[list-item]
        consumer.seek(("t", 0), 5)  # type: ignore[arg-type]
        assert consumer.position(("t", 0)) == 5  # type: ignore[arg-type]


def test_a_share_consumer_says_what_is_wrong() -> None:
    consumer: Any = ShareConsumer("broker:9092", group_id="g", config=wired(network=network()))
    with consumer:
        with pytest.raises(TypeError, match=r"subscribe\(\) wants the names of topics"):
            consumer.subscribe(5)
        with pytest.raises(TypeError, match=r"acknowledge\(\) wants a record that poll\(\) gave, not an int"):
            consumer.acknowledge(5)


def test_a_configuration_may_come_first() -> None:
    """As with confluent-kafka; keywords go before it."""
    given: Any = {"bootstrap.servers": "broker:9092", "client.id": "c"}
    group: Any = {**given, "group.id": "g"}
    for close in (
        Producer(given, config=wired(network=network())),
        Consumer(group, config=wired(network=network())),
        ShareConsumer(group, config=wired(network=network())),
        Admin(given, config=wired(network=network())),
    ):
        close.close()

    async def open_and_close() -> None:
        for client in (AsyncProducer(given), AsyncConsumer(group), AsyncShareConsumer(group), AsyncAdmin(given)):
            await client.close()

    asyncio.run(open_and_close())


@pytest.mark.parametrize("client", [Producer, Consumer, Admin])
def test_bootstrap_servers_and_settings_of_other_kinds_are_refused(client: Any) -> None:
    with pytest.raises(TypeError, match="The bootstrap servers are 5: give text such as 'localhost:9092'"):
        client(5)
    with pytest.raises(TypeError, match="config is 'x': give a mapping"):
        client(config="x")
    with pytest.raises(ConfigError, match="Settings are named by text, not by 5"):
        client(config={5: 6})
    with pytest.raises(ConfigError, match=r"no setting queue\.buffering\.max\.ms"):
        client({"queue.buffering.max.ms": 5})


def test_an_admin_client_says_what_is_wrong() -> None:
    admin: Any = Admin("broker:9092", config=wired(network=network()))
    with admin:
        for call, sentence in (
            (lambda: admin.create_topics(["x"]), r"create_topics\(\) wants NewTopic\(name, partitions"),
            (lambda: admin.delete_topics(5), "A list of topics is wanted, not 5"),
            (lambda: admin.list_offsets({"t": 1}), r"A partition is TopicPartition\(topic, partition\), not 't'"),
            (lambda: admin.delete_records({"t": 1}), r"A partition is TopicPartition\(topic, partition\), not 't'"),
        ):
            with pytest.raises(TypeError, match=sentence):
                call()
