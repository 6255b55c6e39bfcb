"""kafka-console-share-consumer, -verifiable-share-consumer, -share-consumer-perf-test: options, output, exit codes."""

from __future__ import annotations

import json
import re
import signal
from typing import Any

import pytest

from moldau.cli.kafka import console_share_consumer, share_consumer_perf, share_reading, verifiable_share_consumer
from moldau.cli.kafka.console_share_options import ShareOptions
from moldau.cli.kafka.frame import guard
from moldau.cli.kafka.options import Exit, JavaFailure
from moldau.client.errors import error_for
from moldau.client.record import ConsumerRecord
from moldau.protocol import errors as codes
from tests.unit.cli.share_consumer_fakes import FakeShareConsumer, record

Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
SERVER = ["--bootstrap-server", "h:1"]
DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"
INTEGERS = "value.deserializer=org.apache.kafka.common.serialization.IntegerDeserializer"


def use(patch: Patch, consumer: FakeShareConsumer) -> FakeShareConsumer:
    patch.setattr(share_reading, "new_share_consumer", consumer.new)
    return consumer


def console(*arguments: str) -> int:
    return guard(lambda: console_share_consumer.main([*SERVER, "--topic", "t", *arguments]))


# kafka-console-share-consumer


@pytest.mark.parametrize(("flag", "said"), [((), "ACCEPT"), (("--release",), "RELEASE"), (("--reject",), "REJECT")])
def test_what_is_shown_is_acknowledged(flag: tuple[str, ...], said: str, monkeypatch: Patch, capsys: Captured) -> None:
    consumer = use(monkeypatch, FakeShareConsumer([record(0, b"a"), record(1, b"b", deliveries=3), record(2)]))
    assert console("--max-messages", "2", "--formatter-property", "print.delivery=true", *flag) == 0
    out, err = capsys.readouterr()
    assert out == "Delivery:1\ta\nDelivery:3\tb\n" and err == "Processed a total of 2 messages\n"
    assert consumer.sent == {0: said, 1: said} and consumer.closed and consumer.topics == ["t"]


def test_settings_of_the_group_and_the_user(monkeypatch: Patch) -> None:
    consumer = use(monkeypatch, FakeShareConsumer())
    assert console("--max-messages", "0", "--command-property", "share.acknowledgement.mode=implicit") == 0
    assert (consumer.config["group.id"], consumer.config["client.id"]) == ("console-share-consumer",) * 2
    assert consumer.config["share.acknowledgement.mode"] == "explicit"
    assert console("--max-messages", "0", "--group", "g", "--command-property", "client.id=c") == 0
    assert (consumer.config["group.id"], consumer.config["client.id"]) == ("g", "c")


def test_nothing_in_time_is_told_and_no_failure(monkeypatch: Patch, capsys: Captured) -> None:
    use(monkeypatch, FakeShareConsumer())
    assert console("--timeout-ms", "0", "--enable-systest-events") == 0
    out, err = capsys.readouterr()
    assert out == "shutdown_complete\n"
    assert "ERROR Error processing message, terminating consumer process: " in err
    assert err.endswith("org.apache.kafka.common.errors.TimeoutException\nProcessed a total of 0 messages\n")


def test_a_record_that_cannot_be_shown_goes_back_and_ends_the_tool(monkeypatch: Patch, capsys: Captured) -> None:
    polled = [record(0, b"\0\0\0\7"), record(1, b"no integer"), record(2, b"\0\0\0\7")]
    consumer = use(monkeypatch, FakeShareConsumer(polled))
    assert console("--formatter-property", INTEGERS) == 1
    out, err = capsys.readouterr()
    assert out.startswith("7\n") and consumer.sent == {0: "ACCEPT"} and consumer.closed
    assert err.startswith("Processed a total of 2 messages\n")
    assert "ERROR Unknown error when running consumer: " in err and "SerializationException: Size of data" in err


def test_a_record_that_cannot_be_shown_is_rejected_where_that_is_wanted(monkeypatch: Patch, capsys: Captured) -> None:
    polled = [record(0, b"no integer"), record(1, b"\0\0\0\7")]
    consumer = use(monkeypatch, FakeShareConsumer(polled))
    assert console("--formatter-property", INTEGERS, "--reject-message-on-error", "--max-messages", "2") == 0
    assert consumer.sent == {0: "REJECT", 1: "ACCEPT"}
    assert "ERROR Error processing message, rejecting this message: " in capsys.readouterr().err


def test_a_refusal_of_the_cluster_ends_the_tool_in_javas_words(monkeypatch: Patch, capsys: Captured) -> None:
    consumer = use(monkeypatch, FakeShareConsumer(error_for(codes.INVALID_TOPIC_EXCEPTION)))
    assert console() == 0
    assert "InvalidTopicException: Invalid topics: [t]\n" in capsys.readouterr().err and consumer.closed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--topic", "t"], 'Missing required argument "[bootstrap-server]"'),
        (SERVER, "--topic is a required argument"),
        ([*SERVER, "--topic", "t", "--reject", "--release"], "At most one of --reject and --release may be specified."),
        (
            [*SERVER, "--topic", "t", "--consumer-property", "a=b", "--command-property", "a=b"],
            "Options --consumer-property and --command-property cannot be specified together.",
        ),
        (
            [*SERVER, "--topic", "t", "--group", "g3", "--command-property", "group.id=g4"],
            (
                "The group ids provided in different places (directly using '--group', via '--consumer-property', or"
                " via '--consumer-config') do not match. Detected group ids: 'g3', 'g4'"
            ),
        ),
        ([*SERVER, "--topic", "t", "--from-beginning"], "from-beginning is not a recognized option"),
    ],
)
def test_options_that_make_no_sense(arguments: list[str], sentence: str) -> None:
    with pytest.raises(Exit) as refused:
        ShareOptions(arguments)
    assert (refused.value.code, refused.value.message) == (1, sentence) and refused.value.usage_of is not None


def test_settings_that_are_the_groups_are_refused() -> None:
    with pytest.raises(JavaFailure) as refused:
        share_reading.new_share_consumer({"bootstrap.servers": "h:1", "group.id": "g", "auto.offset.reset": "latest"})
    assert refused.value.java_text() == (
        "org.apache.kafka.common.config.ConfigException: auto.offset.reset cannot be set when using a share group."
    )


# kafka-verifiable-share-consumer


def verifiable(*arguments: str) -> int:
    words = [*SERVER, "--topic", "t", "--group-id", "g", *arguments]
    return guard(lambda: verifiable_share_consumer.main(words))


def events(capsys: Captured) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(next(iter(line)) == "timestamp" and line.pop("timestamp") > 0 for line in lines)
    return lines


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_each_step_is_told(mode: str, monkeypatch: Patch, capsys: Captured) -> None:
    use(monkeypatch, FakeShareConsumer([record(0, b"a", b"k"), record(1, None)], [record(2)]))
    assert verifiable("--max-messages", "2", "--verbose", "--acknowledgement-mode", mode) == 0
    where = {"topic": "t", "partition": 0}
    told = {"count": 2, "partitions": [{**where, "count": 2, "offsets": [0, 1]}]}
    found = events(capsys)
    assert found[:5] == [
        {"name": "startup_complete"},
        {"name": "record_data", "key": "k", "value": "a", **where, "offset": 0},
        {"name": "record_data", "key": None, "value": None, **where, "offset": 1},
        {"name": "records_consumed", **told},
        {"name": "offsets_acknowledged", **told, "success": True},
    ]
    # Only the next poll() accepts in the mode auto, so that one gives records too.
    assert [item["name"] for item in found[5:]][-1] == "shutdown_complete"
    assert len(found) == (6 if mode != "auto" else 8)


def test_acknowledgements_that_are_refused_do_not_count(monkeypatch: Patch, capsys: Captured) -> None:
    refusal = error_for(codes.INVALID_RECORD_STATE)
    stop = error_for(codes.GROUP_AUTHORIZATION_FAILED)
    consumer = use(monkeypatch, FakeShareConsumer([record(0)], [record(1)], stop, refuse=refusal))
    assert verifiable("--max-messages", "1", "--acknowledgement-mode", "sync") == 0
    out, err = capsys.readouterr()
    refused = [json.loads(line) for line in out.splitlines() if "offsets_acknowledged" in line]
    assert len(refused) == 2 and list(refused[0])[-2:] == ["success", "error"] and not refused[0]["success"]
    assert "ERROR Failed to commit offset synchronously for topic partition: t-0 " in err
    assert "ERROR Error during processing, terminating share consumer process: " in err and consumer.closed


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_was_told_before_a_signal_is_accepted(
    number: int, code: int, monkeypatch: Patch, capsys: Captured
) -> None:
    consumer = use(monkeypatch, FakeShareConsumer([record(0)], [record(1)]))
    tell_records = verifiable_share_consumer.Run._tell_records

    def tell_and_signal(self: verifiable_share_consumer.Run, records: list[ConsumerRecord]) -> None:
        tell_records(self, records)
        signal.raise_signal(number)

    monkeypatch.setattr(verifiable_share_consumer.Run, "_tell_records", tell_and_signal)
    assert verifiable() == code and consumer.closed and consumer.sent == {0: "ACCEPT"}
    names = [event["name"] for event in events(capsys)]
    assert names == [
        "startup_complete",
        "records_consumed",
        "shutdown_requested",
        "offsets_acknowledged",
        "shutdown_complete",
    ]


def test_modes_and_strategies_that_there_are_not(monkeypatch: Patch, capsys: Captured) -> None:
    use(monkeypatch, FakeShareConsumer())
    assert verifiable("--acknowledgement-mode", "foo") == 1
    out, err = capsys.readouterr()
    assert not out and err == (
        'Exception in thread "main" java.lang.IllegalArgumentException: No enum constant'
        " org.apache.kafka.tools.VerifiableShareConsumer.AcknowledgementMode.FOO\n"
    )
    assert verifiable("--offset-reset-strategy", "foo") == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["name"] for line in out.splitlines()] == ["startup_complete", "shutdown_complete"]
    assert err.endswith("java.lang.IllegalArgumentException: Unknown auto offset reset strategy: foo\n")


def test_what_is_missing_comes_with_the_usage(capsys: Captured) -> None:
    assert guard(lambda: verifiable_share_consumer.main(["--topic", "a"])) == 1
    assert capsys.readouterr().err == (
        "usage: verifiable-share-consumer\n"
        "       [-h] --topic TOPIC --group-id GROUP-ID\n"
        "       [--max-messages MAX-MESSAGES] [--verbose]\n"
        "       [--acknowledgement-mode ACKNOWLEDGEMENT-MODE]\n"
        "       [--offset-reset-strategy OFFSET-RESET-STRATEGY]\n"
        "       [--command-config CONFIG-FILE]\n"
        "       --bootstrap-server HOST1:PORT1[,HOST2:PORT2[...]]\n"
        "verifiable-share-consumer: error: argument --group-id is required\n"
    )


# kafka-share-consumer-perf-test


def perf(*arguments: str) -> int:
    return guard(lambda: share_consumer_perf.main([*SERVER, "--topic", "t", *arguments]))


def test_the_measurement_has_kafkas_columns(monkeypatch: Patch, capsys: Captured) -> None:
    consumer = use(monkeypatch, FakeShareConsumer([record(0, b"x" * 1048576)], [record(1, b"x" * 1048575, b"k")]))
    assert perf("--num-records", "2", "--show-consumer-stats") == 0
    header, one, total = capsys.readouterr().out.splitlines()
    assert header == (
        "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms"
    )
    number = r"(\d+\.\d{4}|∞|Infinity)"
    cells = rf"{DATE}, {DATE}, 2\.0000, {number}, {number}, 2, \d+"
    assert re.fullmatch(cells, total), total
    before = "Share consumer 1 having client id perf-share-consumer-client consumption metrics- "
    assert one.startswith(before) and re.fullmatch(cells, one.removeprefix(before))
    assert consumer.sent == {0: "ACCEPT", 1: "ACCEPT"} and consumer.closed
    assert consumer.config["group.id"] == "perf-share-consumer" and "fetch.max.bytes" not in consumer.config


def test_too_few_records_are_warned_of(monkeypatch: Patch, capsys: Captured) -> None:
    use(monkeypatch, FakeShareConsumer([record(0)]))
    assert perf("--num-records", "2", "--timeout", "0", "--hide-header", "--fetch-size", "5000") == 0
    warning, total = capsys.readouterr().out.splitlines()
    assert warning == (
        "WARNING: Exiting before consuming the expected number of records: timeout (0 ms) exceeded. You can use the"
        " --timeout option to increase the timeout."
    )
    assert total.split(", ")[5] == "1"


def test_reports_in_between_name_the_consumer(monkeypatch: Patch, capsys: Captured) -> None:
    use(monkeypatch, FakeShareConsumer([record(0), record(1)]))
    moments = iter(range(1_000_000, 2_000_000, 1000))
    monkeypatch.setattr(share_consumer_perf, "now_ms", lambda: next(moments))
    arguments = ("--num-records", "2", "--show-detailed-stats", "--reporting-interval", "10", "--hide-header")
    assert perf(*arguments) == 0
    report = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(rf"{DATE}, {DATE}, 0\.0000, 0\.0000, 1\.0000, 1, 1000 for share consumer 1", report)


def test_what_cannot_be_measured(monkeypatch: Patch, capsys: Captured) -> None:
    use(monkeypatch, FakeShareConsumer())
    assert perf("--num-records", "2", "--threads", "0", "--hide-header") == 1
    assert capsys.readouterr().err == "null\njava.lang.IllegalArgumentException\n\n"
    assert perf("--num-records", "2", "--reporting-interval", "0", "--hide-header") == 1
    reason = "java.lang.IllegalArgumentException: Reporting interval must be greater than 0."
    assert capsys.readouterr().err == (
        f"{reason}\njava.util.concurrent.ExecutionException: {reason}\nCaused by: {reason}\n\n"
    )
    assert perf() == 1
    wanted = "Exactly one of the following arguments is required: [messages], [num-records]\n"
    assert capsys.readouterr().err.startswith(wanted)
