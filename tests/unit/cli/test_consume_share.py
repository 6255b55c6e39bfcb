"""`moldau consume --share`: what is printed, what the group is told about it, and what is refused."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli import consume_share
from moldau.cli.consume_output import Output
from moldau.cli.root import root
from moldau.cli.share_printing import print_and_acknowledge
from moldau.client.errors import error_for
from moldau.client.record import ConsumerRecord
from moldau.client.share.acknowledgements import AcknowledgeType
from moldau.protocol import errors as codes
from tests.unit.cli.share_consumer_fakes import FakeShareConsumer, record


class FakeConsumer:
    """Knows every topic."""

    def __init__(self, **_: object) -> None:
        return

    def __enter__(self) -> FakeConsumer:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def partitions_for(self, topic: str) -> list[Any]:
        return []


class SignalledShareConsumer(FakeShareConsumer):
    """Somebody ends the command while it waits in, prints, or speaks of what the first poll() gave."""

    def __init__(self, moment: str, number: int, *polls: list[ConsumerRecord]) -> None:
        super().__init__(*polls)
        self.moment = moment
        self.number = number
        self.signals = 1

    def at(self, moment: str) -> None:
        while moment == self.moment and self.signals:
            self.signals -= 1
            signal.raise_signal(self.number)

    def poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        self.at("poll")
        return super().poll(timeout_ms)

    def acknowledge(self, item: ConsumerRecord, type: AcknowledgeType) -> None:
        super().acknowledge(item, type)
        if type == AcknowledgeType.ACCEPT:
            self.at("acknowledge")


def run(patch: pytest.MonkeyPatch, consumer: FakeShareConsumer, *arguments: str) -> Result:
    patch.setattr(consume_share, "Consumer", FakeConsumer)
    patch.setattr(consume_share, "ShareConsumer", consumer.new)
    patch.setattr(consume_share, "IDLE_S", 0.0)
    if isinstance(consumer, SignalledShareConsumer):
        print_records = Output.print_records

        def print_and_signal(self: Output, records: list[ConsumerRecord]) -> None:
            print_records(self, records)
            consumer.at("write")

        patch.setattr(Output, "print_records", print_and_signal)
    return CliRunner().invoke(root, ["consume", "t", "--share", "g", *arguments], prog_name="moldau")


@pytest.mark.parametrize("ack", ["accept", "reject"])
def test_what_is_printed_is_acknowledged(ack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = FakeShareConsumer([record(0, b"a"), record(1, b"b")], [record(2, b"c")])
    done = run(monkeypatch, consumer, "--ack", ack)
    assert (done.exit_code, done.stdout) == (0, "a\nb\nc\n")
    assert consumer.sent == dict.fromkeys(range(3), ack.upper())
    assert consumer.config["group.id"] == "g" and "auto.offset.reset" not in consumer.config


def test_no_more_is_taken_than_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = FakeShareConsumer([record(number, b"%d" % number) for number in range(3)])
    done = run(monkeypatch, consumer, "-n", "2")
    assert (done.exit_code, done.stdout) == (0, "0\n1\n")
    assert consumer.sent == {0: "ACCEPT", 1: "ACCEPT", 2: "RELEASE"}
    assert (consumer.config["share.acquire.mode"], consumer.config["max.poll.records"]) == ("record_limit", 2)


def test_released_records_are_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    again = [record(number, b"%d" % number) for number in range(2)]
    consumer = FakeShareConsumer(again, [*again, record(2, b"2")], again, again)
    done = run(monkeypatch, consumer, "--ack", "release")
    assert (done.exit_code, done.stdout) == (0, "0\n1\n2\n")
    assert consumer.sent == dict.fromkeys(range(3), "RELEASE") and len(consumer.polls) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("moment", ["poll", "write", "acknowledge"])
def test_what_was_printed_before_a_signal_is_acknowledged(
    number: int, code: int, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = SignalledShareConsumer(moment, number, [record(0, b"a")], [record(1, b"b")])
    before = signal.getsignal(number)
    done = run(monkeypatch, consumer, "--follow")
    assert (done.exit_code, done.stdout) == (code, "a\n")
    assert consumer.sent == {0: "ACCEPT"} and consumer.closed and consumer.interrupted
    assert signal.getsignal(number) is before


def test_a_second_signal_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = SignalledShareConsumer("write", signal.SIGTERM, [record(0, b"a")])
    consumer.signals = 2
    done = run(monkeypatch, consumer, "--follow")
    assert done.exit_code == 143 and consumer.sent == {0: "RELEASE"} and consumer.closed


@pytest.mark.parametrize("trouble", [BrokenPipeError(), KeyboardInterrupt()])
def test_what_could_not_be_printed_goes_back(trouble: BaseException) -> None:
    consumer = FakeShareConsumer([record(0), record(1)])
    consumer.config = {"share.acknowledgement.mode": "explicit"}

    def write() -> None:
        raise trouble

    with pytest.raises(type(trouble)):
        print_and_acknowledge(consumer, consumer.poll(0), AcknowledgeType.ACCEPT, write)  # type: ignore[arg-type]
    assert consumer.said == {0: "RELEASE", 1: "RELEASE"}


def test_acknowledgements_that_are_refused_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = FakeShareConsumer([record(0, b"a")], refuse=error_for(codes.INVALID_RECORD_STATE))
    done = run(monkeypatch, consumer)
    assert (done.exit_code, done.stdout) == (1, "a\n")
    assert "1 of the records above were not accepted, the group delivers them again" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("--from-beginning",), "moldau config alter group g --set share.auto.offset.reset=earliest"),
        (("-o", "5"), "moldau share reset g -t t --to WHERE"),
        (("--last", "5"), "moldau share reset g -t t --to WHERE"),
        (("--group", "x"), "leave one of them out"),
        (("-p", "0"), "leave -p out"),
        (("-u", "end"), "say with -n"),
        (("--read-committed",), "share.isolation.level=read_committed"),
        (("--grep", "x"), "without --share"),
    ],
)
def test_options_that_do_not_fit_say_what_to_do(
    arguments: tuple[str, ...], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(monkeypatch, FakeShareConsumer(), *arguments)
    assert done.exit_code == 2 and advice in " ".join(done.stderr.split())


def test_ack_needs_a_share_group() -> None:
    done = CliRunner().invoke(root, ["consume", "t", "--ack", "reject"], prog_name="moldau")
    assert done.exit_code == 2 and "--share NAME" in done.stderr
