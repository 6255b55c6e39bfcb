"""Every noun and verb of the `moldau` command, against Moldau and against Apache Kafka."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import click
import pytest

from tests.interop.cli import SECONDS_MAX, Cli
from tests.interop.conftest import NodeFactory
from tests.interop.nodes import MoldauNode
from tests.pace import moment


@pytest.fixture(params=["moldau_server", "oracle"])
def cli(request: pytest.FixtureRequest, tmp_path: Path) -> Cli:
    return Cli(request.getfixturevalue(request.param), tmp_path)


def starts(cli: Cli, topic: str) -> list[int]:
    (described,) = cli.json("topic", "describe", topic)
    return [row["start_offset"] for row in described["partitions"]]


def test_topics_are_altered_and_grown(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "1", "-c", "retention.ms=1000000")
    cli.ok("topic", "alter", topic, "--set", "segment.bytes=2000000", "--delete", "retention.ms", "-p", "2")
    cli.ok("topic", "alter", topic, "--append", "cleanup.policy=compact")
    (described,) = cli.json("topic", "describe", topic)
    found = {row["name"]: row["value"] for row in described["configs"] if row["source"] == "topic"}
    assert found["segment.bytes"] == "2000000" and "retention.ms" not in found
    assert sorted(found["cleanup.policy"].split(",")) == ["compact", "delete"]
    assert b"4 partitions, 2 of them new" in cli.ok("topic", "add-partitions", topic, "--num", "2")
    assert cli.json("topic", "add-partitions", topic, "--total", "5", "--validate-only")[0]["partitions"] == 5
    (described,) = cli.json("topic", "describe", topic)
    assert len(described["partitions"]) == 4
    code, _, err = cli.run("topic", "add-partitions", topic, "--total", "3")
    assert code == 1 and "Error:" in err
    code, _, err = cli.run("topic", "alter", topic, "--set", "no.such.config=1")
    assert code == 1 and "no.such.config" in err
    code, _, err = cli.run("topic", "alter", "no-such-topic", "--set", "retention.ms=1")
    assert code == 1 and "does not exist" in err


def test_records_are_deleted_up_to_a_place(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "2")
    base = int(time.time() * 1000) - 60_000
    lines = "".join(json.dumps({"value": str(n), "partition": n % 2, "timestamp": base + n}) + "\n" for n in range(20))
    cli.ok("produce", topic, "-f", "json", stdin=lines.encode())
    cli.ok("topic", "truncate-to", topic, "-8", "--dry-run")
    assert starts(cli, topic) == [0, 0]
    cli.ok("topic", "truncate-to", topic, "-8")
    assert starts(cli, topic) == [2, 2]
    cli.ok("topic", "truncate-to", topic, f"@{base + 10}", "-p", "1")
    assert starts(cli, topic) == [2, 5]
    cli.ok("topic", "delete-records", topic, "0:4", "1:end")
    assert starts(cli, topic) == [4, 10]
    code, _, _ = cli.run("topic", "delete-records", topic, "0:99")
    assert code == 1 and starts(cli, topic) == [4, 10]
    code, _, err = cli.run("topic", "delete-records", topic, "7:1")
    assert code == 1 and "no partition 7" in err
    cli.ok("topic", "truncate-to", topic, "end")
    assert starts(cli, topic) == [10, 10]


def test_configs_of_topics_brokers_and_the_cluster_say_where_they_come_from(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic)
    cli.ok("config", "alter", "topic", topic, "--set", "retention.ms=5000000")
    (row,) = cli.json("config", "describe", "topic", topic, "-k", "retention.ms")
    (entry,) = row["configs"]
    assert (entry["value"], entry["source"]) == ("5000000", "topic")
    assert entry["chain"][0]["source"] == "topic"
    everything = cli.json("config", "describe", "topic", topic, "--all")[0]["configs"]
    assert len(everything) > 25 and {"default", "topic"} <= {item["source"] for item in everything}
    text = cli.ok("config", "describe", "broker", "1", "--all", "--docs", "--chain", "-k", "log.*").decode()
    assert "log.dirs" in text and "file" in text
    cli.ok("config", "alter", "cluster", "--set", "log.cleaner.threads=2")
    (cluster,) = cli.json("config", "describe", "cluster")
    assert ("log.cleaner.threads", "2") in [(item["name"], item["value"]) for item in cluster["configs"]]
    (broker,) = cli.json("config", "describe", "broker", "1", "-k", "log.cleaner.threads")
    assert broker["configs"][0]["source"] == "cluster default"
    cli.ok("config", "alter", "cluster", "--delete", "log.cleaner.threads")
    cli.ok("config", "alter", "group", "g", "--set", "consumer.session.timeout.ms=50000")
    (group,) = cli.json("config", "describe", "group", "g", "-k", "consumer.session.timeout.ms")
    assert (group["configs"][0]["value"], group["configs"][0]["source"]) == ("50000", "group")
    code, _, err = cli.run("config", "describe", "topic", "no-such-topic")
    assert code == 1 and "Topic no-such-topic does not exist." in err


def test_the_cluster_and_its_brokers(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "2")
    found = cli.json("cluster", "describe")
    assert found["controller"] == 1 and found["quorum"]["voters"][0]["id"] == 1
    assert found["features"]["metadata.version"] > 0 and found["brokers"][0]["leaders"] >= 2
    text = cli.ok("cluster", "describe", "--features").decode()
    assert "metadata.version" in text and "active" in text
    (broker,) = cli.json("broker", "describe", "1")
    (directory,) = broker["log_directories"]
    assert directory["path"].endswith("data") and directory["replicas"] >= 2 and directory["total_bytes"] > 0
    assert cli.json("broker", "list")[0]["id"] == 1
    assert b"log.dirs" in cli.ok("broker", "describe")
    code, _, err = cli.run("broker", "describe", "9")
    assert code == 1 and "There is no broker 9" in err


def test_a_healthy_cluster(cli: Cli) -> None:
    found = cli.json("cluster", "health")
    assert found["healthy"] and found["controller"] == 1 and not found["offline_partitions"]
    assert b"healthy" in cli.ok("cluster", "health")


def test_perf_measures_and_reports(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "2")
    sent = cli.json("perf", "produce", topic, "-n", "5000", "-s", "50", "--keys", "10", "-z", "lz4")
    assert (sent["records"], sent["errors"]) == (5000, 0) and 0 < sent["latency"]["p50_ms"] <= sent["latency"]["max_ms"]
    read = cli.json("perf", "consume", topic)
    assert read["records"] == 5000 and read["bytes"] > 250_000
    assert cli.json("perf", "consume", topic, "-n", "100")["records"] == 100
    trip = cli.json("perf", "latency", topic, "-n", "20")
    assert trip["records"] == 20 and trip["end_to_end"]["p50_ms"] > 0 and trip["acknowledged"]["p50_ms"] > 0
    slow = cli.json("perf", "produce", topic, "-n", "100", "--rate", "200")
    assert 0.4 < slow["seconds"] < 10
    code, _, err = cli.run("perf", "produce", "no-such-topic", "-n", "1")
    assert code == 1 and "does not exist" in err


def test_ranges_filters_and_formats_of_consume(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "1")
    base = int(time.time() * 1000) - 3_600_000
    lines = [
        json.dumps({"key": f"k{n}", "value": f"v{n}", "timestamp": base + n * 1000, "headers": {"n": str(n)}})
        for n in range(10)
    ]
    cli.ok("produce", topic, "-f", "json", stdin="\n".join(lines).encode())

    def values(*arguments: str) -> list[str]:
        return cli.ok("consume", topic, "-f", "%s ", *arguments).decode().split()

    assert values("-o", "3", "-u", "6") == ["v3", "v4", "v5"]
    assert values("-o", f"@{base + 2000}", "-u", f"@{base + 4000}") == ["v2", "v3"]
    assert values("--last", "2") == ["v8", "v9"]
    assert values("-o", "-4", "-u", "-2") == ["v6", "v7"]
    assert values("-o", "@-10m") == []
    assert values("--grep", "[135]$", "-n", "2") == ["v1", "v3"]
    assert values("--grep-key", "k[89]") == ["v8", "v9"]
    assert values("--header", "n=^7$") == ["v7"]
    assert values("--header", "other") == []
    assert cli.ok("consume", topic, "-n", "1", "-f", "%s{hex}/%k{base64}/%T/%S/%K/%h") == (
        f"7630/azA=/{base}/2/2/n=0".encode()
    )
    assert b"|v0|" in cli.ok("consume", topic, "-n", "1", "-f", "hex")
    assert b"0:0" in cli.ok("consume", topic, "-n", "1", "-f", "pretty")
    assert cli.ok("consume", topic, "--follow", "-o", "8", "-n", "2", "-f", "value") == b"v8\nv9\n"
    assert cli.ok("consume", topic, "--follow", "-u", "2", "-f", "value") == b"v0\nv1\n"


def test_several_topics_at_once(cli: Cli, topic: str) -> None:
    for name in ("a", "b"):
        cli.ok("topic", "create", f"{topic}-{name}", "-p", "1")
        cli.ok("produce", f"{topic}-{name}", stdin=name.encode())
    found = cli.ok("consume", f"{topic}-a", f"{topic}-b", "-f", "%t=%s\\n").decode().split()
    assert sorted(found) == [f"{topic}-a=a", f"{topic}-b=b"]
    assert len(cli.json("topic", "list", f"{topic}-*")) == 2


def test_ways_to_produce(cli: Cli, topic: str, tmp_path: Path) -> None:
    cli.ok("topic", "create", topic, "-p", "3")
    (tmp_path / "one.txt").write_bytes(b"k1\tv1\nk2\tv2\n")
    (tmp_path / "two.txt").write_bytes(b"k3\tv3")
    files = [str(tmp_path / name) for name in ("one.txt", "two.txt")]
    cli.ok("produce", topic, *files, "-K", "\\t", "-H", "h=1", "-z", "zstd")
    found = cli.ok("consume", topic, "-f", "%k=%s %h\\n").decode().split("\n")
    assert sorted(found) == ["", "k1=v1 h=1", "k2=v2 h=1", "k3=v3 h=1"]
    report = json.loads(
        cli.ok("produce", topic, "--report", "json", "--partitioner", "round-robin", stdin=b"a\nb\nc\n")
    )
    assert (report["delivered"], report["partitions"]) == (3, {"0": 1, "1": 1, "2": 1})
    for partitioner in ("crc32", "random"):
        cli.ok("produce", topic, "--partitioner", partitioner, "-K", ":", stdin=b"k:v\n")
    cli.ok("produce", topic, files[0], "-f", "file", "-k", "whole", "-p", "1")
    assert cli.ok("consume", topic, "-p", "1", "-o", "-1", "-f", "%k=%s") == b"whole=k1\tv1\nk2\tv2\n"
    cli.ok("produce", topic, "-D", ";", "-p", "2", stdin=b"x;y\ny;")
    assert cli.ok("consume", topic, "-p", "2", "-o", "-2", "-f", "<%s>") == b"<x><y\ny>"
    start = time.monotonic()
    cli.ok("produce", topic, "--rate", "20", stdin=b"x\n" * 20)
    assert time.monotonic() - start > 0.9
    code, _, err = cli.run("produce", topic, "-K", ":", str(tmp_path / "one.txt"))
    assert code == 1 and "one.txt line 1 has no key separator" in err
    code, _, err = cli.run("produce", topic, "-p", "9", stdin=b"x")
    assert code == 1 and "no partition 9" in err


def test_keys_go_where_kafka_puts_them_in_both_ways_of_sending(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "5")
    lines = "".join(f"key-{n}:x\n" for n in range(100)).encode()
    cli.ok("produce", topic, "-K", ":", stdin=lines)
    cli.ok("produce", topic, "-K", ":", "--rate", "100000", stdin=lines)
    places = [row.split() for row in cli.ok("consume", topic, "-f", "%k %p\\n").decode().splitlines()]
    assert len(places) == 200 and len({(key, partition) for key, partition in places}) == 100


def test_watching_in_a_pipe_gives_one_answer_after_the_other(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "1")
    watcher = cli.start("topic", "describe", topic, "--watch", "--interval", "0.2", "--format", "json")
    assert watcher.stdout is not None
    first = json.loads(watcher.stdout.readline())
    cli.ok("produce", topic, stdin=b"a\nb\n")
    while True:
        row = json.loads(watcher.stdout.readline())[0]["partitions"][0]
        if row["end_offset"] == 2:
            break
    assert first[0]["partitions"][0]["end_offset"] == 0 and "records_per_second" in row
    watcher.send_signal(signal.SIGINT)
    _, err = watcher.communicate(timeout=SECONDS_MAX)
    assert watcher.returncode == 130 and err == b""


def test_topics_are_completed(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic)
    cli.environment.update(_MOLDAU_COMPLETE="bash_complete", COMP_WORDS=f"moldau consume {topic[:-1]}", COMP_CWORD="2")
    assert f"plain,{topic}".encode() in cli.ok().split()
    cli.environment["MOLDAU_BOOTSTRAP_SERVER"] = "127.0.0.1:1"
    code, out, err = cli.run()
    assert (code, out.strip(), err) == (0, b"", "")


def test_a_broker_that_is_gone_while_one_watches_is_told_of(start_moldau: NodeFactory, tmp_path: Path) -> None:
    node = start_moldau()
    cli = Cli(node, tmp_path)
    watcher = cli.start("cluster", "health", "--watch", "--interval", "0.2", "--timeout", f"{moment(3):.1f}")
    assert watcher.stdout is not None and watcher.stderr is not None
    assert b"healthy" in watcher.stdout.readline()
    node.stop()
    line = watcher.stderr.readline()
    while b"trying again" in line:  # it says so before it gives up, where that takes seconds
        line = watcher.stderr.readline()
    assert b"Error:" in line
    watcher.send_signal(signal.SIGINT)
    watcher.communicate(timeout=SECONDS_MAX)
    assert watcher.returncode == 130


def test_colour_is_for_terminals_that_want_it(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic)
    assert b"\x1b" not in cli.ok("topic", "describe", topic)
    assert b"\x1b[" in in_terminal(cli, "topic", "describe", topic)
    assert b"\x1b[" not in in_terminal(cli, "topic", "describe", topic, NO_COLOR="1")


def test_a_measurement_is_drawn_while_it_runs(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic)
    seen = in_terminal(cli, "perf", "produce", topic, "-d", "1500ms", "--rate", "2000").decode()
    assert "p99.9" in seen and "━" in seen and "records in 1.5" in click.unstyle(seen)


def test_watching_redraws_in_place(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic)
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*MoldauNode.command(), "topic", "describe", topic, "-w", "--interval", "0.2"],
        stdout=theirs,
        env={**cli.environment, "TERM": "xterm-256color"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    seen = b""
    while seen.count(b"\x1b[H") < 3:
        seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS_MAX) == 130
    assert topic.encode() in seen and b"RATE" in seen
    assert b"\x1b[?25h" in seen + os.read(ours, 65536)  # the cursor is back
    os.close(ours)


def in_terminal(cli: Cli, *arguments: str, **variables: str) -> bytes:
    """What the command writes where its output is a terminal."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*MoldauNode.command(), *arguments],
        stdout=theirs,
        stdin=subprocess.DEVNULL,
        env={**cli.environment, "TERM": "xterm-256color", **variables},
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break  # the other end is closed
        if not data:
            break
        written += data
    os.close(ours)
    assert process.wait(SECONDS_MAX) == 0
    return written


def test_long_work_does_not_print_bars_into_pipes(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "1")
    _, _, err = cli.run("produce", topic, stdin=b"x" * 90 + b"\n" * 200_000)
    assert err.startswith("Delivered 200,000 records")


def test_output_is_whole_also_without_a_buffer(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "1")
    lines = b"".join(b"%099d\n" % number for number in range(20_000))
    cli.ok("produce", topic, stdin=lines)
    cli.environment["PYTHONUNBUFFERED"] = "1"
    reader = cli.start("consume", topic)
    assert reader.stdout is not None
    time.sleep(1)  # the pipe is full by now
    assert reader.stdout.read() == lines
    reader.communicate(timeout=SECONDS_MAX)
    assert reader.returncode == 0


def test_nobody_there_and_where_the_address_came_from(tmp_path: Path, start_moldau: NodeFactory) -> None:
    cli = Cli(MoldauNode(tmp_path / "absent"), tmp_path)
    for command in (("cluster", "health"), ("config", "describe", "cluster"), ("perf", "produce"), ("broker", "list")):
        code, _, err = cli.run(*command)
        assert code == 1 and "MOLDAU_BOOTSTRAP_SERVER" in err and "--bootstrap-server" in err
    cli.ok("profile", "create", "absent", "-b", cli.environment.pop("MOLDAU_BOOTSTRAP_SERVER"))
    code, _, err = cli.run("topic", "list")
    assert code == 1 and "profile absent" in err
    with socket.create_server(("127.0.0.1", 0)) as silent:
        code, _, err = cli.run("topic", "list", "-b", f"127.0.0.1:{silent.getsockname()[1]}", "--timeout", "0.5")
    assert code == 1 and "Error:" in err


def test_a_member_of_a_group_goes_on_where_the_group_stopped(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "2")
    cli.ok("produce", topic, stdin=b"".join(b"%d\n" % number for number in range(10)))
    first = cli.ok("consume", topic, "-g", topic, "-n", "4").split()
    second = cli.ok("consume", topic, "-g", topic).split()
    assert len(first) == 4 and sorted(int(value) for value in [*first, *second]) == list(range(10))
    assert cli.ok("consume", topic, "-g", topic) == b""
    for arguments in (("-p", "0"), ("-o", "7"), ("--last", "3"), ("-u", "end")):
        code, _, err = cli.run("consume", topic, "-g", topic, *arguments)
        assert code == 2 and "group" in err
