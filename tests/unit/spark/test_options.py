"""Options of a read: names and defaults of Spark's Kafka connector, and a sentence for whatever is wrong."""

from __future__ import annotations

import logging
import pickle

import pytest

from moldau.client import config as client_settings
from moldau.client.results import TopicPartition
from moldau.spark.options import Bound, OptionError, Subscription, client_config, read_options

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def test_defaults_are_those_of_sparks_connector() -> None:
    """A batch reads everything, a stream what is new; data loss fails; uncommitted records are seen."""
    batch, stream = read_options(BASE), read_options(BASE, streaming=True)
    assert batch.subscription == Subscription(topics=("orders",))
    assert (batch.starting, batch.ending) == (Bound("earliest", "startingOffsets"), Bound("latest", "endingOffsets"))
    assert stream.starting == Bound("latest", "startingOffsets")
    assert batch.fail_on_data_loss and not batch.include_headers and not batch.read_committed
    assert batch.max_trigger_delay_ms == 15 * 60_000


def test_names_are_taken_without_regard_to_case_as_spark_hands_them_over() -> None:
    options = read_options({**BASE, "STARTINGOFFSETS": "Earliest", "includeheaders": "TRUE", "minPartitions": "7"})
    assert (options.starting.kind, options.include_headers, options.min_partitions) == ("earliest", True, 7)


def test_a_time_goes_before_times_and_times_before_offsets() -> None:
    times, offsets = '{"orders":{"0":5}}', '{"orders":{"0":7}}'
    every = {"startingTimestamp": "9", "startingOffsetsByTimestamp": times, "startingOffsets": offsets}
    assert read_options({**BASE, **every}).starting == Bound("timestamp", "startingTimestamp", 9)
    del every["startingTimestamp"]
    by_partition = {TopicPartition("orders", 0): 5}
    assert read_options({**BASE, **every}).starting == Bound(
        "timestamps", "startingOffsetsByTimestamp", -1, by_partition
    )


def test_kafka_settings_reach_the_client_and_the_group_does_not() -> None:
    """Reading joins no group, so kafka.group.id is accepted and has no say."""
    options = read_options(
        {**BASE, "kafka.isolation.level": "read_committed", "kafka.group.id": "g", "kafka.fetch.min.bytes": "10"}
    )
    assert options.client_config == {
        "bootstrap.servers": "localhost:9092", "isolation.level": "read_committed", "fetch.min.bytes": "10",
    }  # fmt: skip
    assert options.read_committed


def test_options_travel_to_executors() -> None:
    options = read_options({**BASE, "startingOffsets": '{"orders":{"0":1}}', "valueFormat": "string"})
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"subscribe": ""}, "subscribe, subscribePattern and assign"),
        ({"subscribePattern": "x.*"}, "subscribe and subscribePattern are set"),
        ({"subscribe": " , "}, "names no topic"),
        ({"subscribe": "", "subscribePattern": "*"}, "no regular expression"),
        ({"subscribe": "", "assign": "orders"}, '{"topicA":[0,1]'),
        ({"startingOffsets": "latest"}, "cannot start at the latest"),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, "cannot start at the latest"),
        ({"endingOffsets": "earliest"}, "cannot end at the earliest"),
        ({"endingOffsets": '{"orders":{"0":-2}}'}, "cannot end at the earliest"),
        ({"startingOffsets": "erliest"}, "is no JSON"),
        ({"startingTimestamp": "yesterday"}, "milliseconds since 1970"),
        ({"minPartitions": "0"}, "above 0"),
        ({"failOnDataLoss": "no"}, "true or false"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "localhost"}, "host:port"),
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "commitGroup"),
        ({"kafka.security.protocol": "SASL"}, "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"kafka.security.protocol": "SASL_SSL"}, "cannot log in with sasl.mechanism=GSSAPI"),
        ({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "/none"}, "/none cannot be read"),
        ({"kafka.ssl.engine.factory.class": "x"}, "says how connections are secured"),
        ({"kafka.isolation.level": "dirty"}, "read_committed"),
        ({"startingOffsetsByTimestampStrategy": "first"}, "error, latest"),
        ({"valueFormat": "xml"}, "json, avro, protobuf, csv, string"),
        ({"onBadRecord": "drop"}, "needs valueFormat"),
        ({"valueFormat": "string", "deadLetterTopic": "bad"}, "onBadRecord=deadLetter"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_write_instead(more: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options({**BASE, **more})
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"endingOffsets": "latest"}, "for batch reads"),
        ({"endingTimestamp": "5"}, "for batch reads"),
        ({"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "5"}, "swap them"),
        ({"maxTriggerDelay": "soon"}, "15m"),
    ],
)
def test_what_a_stream_cannot_have_is_refused(more: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        read_options({**BASE, **more}, streaming=True)


@pytest.mark.parametrize(("text", "milliseconds"), [("15m", 900_000), ("90s", 90_000), ("1 h", 3_600_000), ("7", 7)])
def test_a_trigger_delay_is_written_as_spark_writes_times(text: str, milliseconds: int) -> None:
    assert read_options({**BASE, "maxTriggerDelay": text}, streaming=True).max_trigger_delay_ms == milliseconds


@pytest.mark.parametrize("streaming", [False, True])
def test_a_misspelt_option_is_refused(streaming: bool) -> None:
    """A batch would read all rows where a few were meant."""
    with pytest.raises(
        OptionError, match=r"There is no option startingOffset for a read: did you mean startingOffsets\?"
    ):
        read_options({**BASE, "startingOffset": "latest"}, streaming)
    with pytest.raises(OptionError, match=r"There is no option colour for a read: docs/spark\.md"):
        read_options({**BASE, "colour": "blue"}, streaming)


def test_options_of_others_are_told_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "moldau.spark"):
        read_options({**BASE, "vendor.pool": "x", "kafka.metric.reporters": "x"})
    assert "vendor.pool has no effect" in caplog.text
    assert "kafka.metric.reporters has no effect" in caplog.text


def test_a_plaintext_protocol_is_no_secured_connection() -> None:
    assert read_options({**BASE, "kafka.security.protocol": "PLAINTEXT"}).client_config["security.protocol"]


def test_the_settings_of_other_clients_are_made_of_the_same_options() -> None:
    """The sink takes the producer's part of kafka.*, and leaves the consumer's out without a word."""
    chosen = client_config({**BASE, "kafka.linger.ms": "5", "kafka.fetch.min.bytes": "1"}, client_settings.PRODUCER)
    assert chosen == {"bootstrap.servers": "localhost:9092", "linger.ms": "5"}
