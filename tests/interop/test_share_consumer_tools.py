"""The tools that read in a share group, as whole processes against a running Moldau."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.cli import Cli
from tests.interop.conftest import new_node, stop_cleanly
from tests.interop.nodes import Node
from tests.interop.test_client_share import QUICK
from tests.interop.test_console_tools import create, read_lines, run, started
from tests.pace import moment_ms, patience, patience_ms

VALUES = [b"%d" % number for number in range(6)]
ROUNDS = 4


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    started_node = new_node(tmp_path_factory.mktemp("share-tools"), QUICK)
    started_node.start()
    yield started_node
    stop_cleanly(started_node)


@pytest.fixture
def group(node: Node, topic: str) -> str:
    """A share group that begins with the first of six records of the topic, which has its name."""
    create(node, topic, 2)
    assert (
        run("console-producer", node, "--topic", topic, text=b"".join(b"%s\n" % value for value in VALUES)).returncode
        == 0
    )
    config = ("--add-config", "share.auto.offset.reset=earliest")
    assert run("configs", node, "--alter", "--entity-type", "groups", "--entity-name", topic, *config).returncode == 0
    return topic


def end(process: subprocess.Popen[bytes], number: int) -> list[bytes]:
    """Ends it by a signal; the lines that come behind those that were read already, also the buffered ones."""
    process.send_signal(number)
    assert process.stdout is not None and process.stderr is not None
    lines = process.stdout.readlines()
    err = process.stderr.read()
    assert process.wait(patience(30)) == 128 + number and b"Traceback" not in err, err
    return lines


def test_the_console_consumer_releases_accepts_and_gives_the_rest_back(node: Node, group: str) -> None:
    shown = ("--formatter-property", "print.delivery=true", "--topic", group, "--group", group)
    done = run("console-share-consumer", node, *shown, "--max-messages", "6", "--release")
    first = sorted(b"Delivery:1\t%s" % value for value in VALUES)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, first), done.stderr
    assert done.stderr.endswith(b"Processed a total of 6 messages\n")
    done = run("console-share-consumer", node, *shown, "--max-messages", "2")
    some = done.stdout.splitlines()
    assert len(some) == 2 and all(line.startswith(b"Delivery:2\t") for line in some)
    with started("console-share-consumer", node, *shown) as process:
        rest = read_lines(process, 4)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=patience(30))
    assert process.returncode == 143 and b"Processed a total of 4 messages" in err
    found = [line.split(b"\t")[1].strip() for line in [*some, *rest]]
    assert sorted(found) == VALUES
    done = run("console-share-consumer", node, *shown, "--timeout-ms", str(moment_ms(2000)))
    assert (done.returncode, done.stdout) == (0, b"") and b"errors.TimeoutException" in done.stderr


def test_nothing_that_was_shown_before_a_signal_is_delivered_again(node: Node, topic: str, tmp_path: Path) -> None:
    """Each member is ended while it works as fast as it can; all together show every record once."""
    values = [b"%d" % number for number in range(20_000)]
    create(node, topic, 1)
    run("console-producer", node, "--topic", topic, text=b"".join(b"%s\n" % value for value in values))
    config = ("--add-config", "share.auto.offset.reset=earliest,share.delivery.count.limit=10")
    run("configs", node, "--alter", "--entity-type", "groups", "--entity-name", topic, *config)
    one_by_one = ("share.acquire.mode=record_limit", "max.poll.records=1")
    cli = Cli(node, tmp_path)
    shown: list[bytes] = []
    for number in range(ROUNDS):
        ending = (signal.SIGTERM, signal.SIGINT)[number % 2]
        properties = [word for pair in one_by_one for word in ("--command-property", pair)]
        arguments = ("--topic", topic, "--group", topic, *properties)
        with started("console-share-consumer", node, *arguments) as process:
            shown += read_lines(process, 10 + 7 * number)
            shown += end(process, ending)
        process = cli.start("consume", topic, "--share", topic, "--follow", "-n", "5000")
        shown += read_lines(process, 5 + 3 * number)
        shown += end(process, ending)
    shown += cli.ok("consume", topic, "--share", topic).splitlines(keepends=True)
    assert sorted(shown) == sorted(b"%s\n" % value for value in values)


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_the_verifiable_consumer_acknowledges_all_that_it_tells_of(node: Node, topic: str, mode: str) -> None:
    create(node, topic, 2)
    run("console-producer", node, "--topic", topic, text=b"".join(b"%s\n" % value for value in VALUES))
    arguments = ("--topic", topic, "--group-id", topic, "--acknowledgement-mode", mode)
    done = run(
        "verifiable-share-consumer", node, *arguments, "--max-messages", "6", "--offset-reset-strategy", "earliest"
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    names = [event["name"] for event in events]
    assert names[:2] == ["startup_complete", "offset_reset_strategy_set"] and names[-1] == "shutdown_complete"

    def offsets(name: str) -> list[tuple[int, int]]:
        return sorted(
            (row["partition"], offset)
            for event in events
            if event["name"] == name
            for row in event["partitions"]
            for offset in row["offsets"]
        )

    assert len(offsets("records_consumed")) == 6 and offsets("records_consumed") == offsets("offsets_acknowledged")
    assert (done.returncode, done.stderr) == (0, b"")


def test_measurements_count_what_the_group_handed_out(node: Node, group: str) -> None:
    arguments = ("--topic", group, "--group", group, "--num-records", "6", "--hide-header", "--show-consumer-stats")
    done = run("share-consumer-perf-test", node, *arguments, "--threads", "2", "--timeout", str(patience_ms(15_000)))
    first, second, total = done.stdout.decode().splitlines()
    assert "client id perf-share-consumer-client-2 " in second and total.split(", ")[5] == "6"
    assert sum(int(line.split(", ")[5]) for line in (first, second)) == 6
    assert done.returncode == 0
    again = run("share-consumer-perf-test", node, *arguments[:5], "1", "--hide-header", "--timeout", "1500")
    assert again.stdout.startswith(b"WARNING: Exiting before consuming the expected number of records")


def test_moldau_consume_takes_releases_and_is_done(node: Node, group: str, tmp_path: Path) -> None:
    cli = Cli(node, tmp_path)
    looked = cli.ok("consume", group, "--share", group, "--ack", "release").split()
    assert sorted(looked) == VALUES
    taken = cli.ok("consume", group, "--share", group, "-n", "2").split()
    process = cli.start("consume", group, "--share", group, "--follow")
    taken += [line.strip() for line in read_lines(process, 4)]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=patience(30))
    assert sorted(taken) == VALUES
    assert cli.ok("consume", group, "--share", group) == b""
    code, _, err = cli.run("consume", "no-such-topic", "--share", group)
    assert code == 1 and "does not exist" in err
