"""Compares console tools against one broker: rows a second from standard input into a topic, and from it into a file.

    python bench/console_tools.py [--records 1000000] [--size 100] [--rounds 2] [--bootstrap-server HOST:PORT]
                                  [--moldau COMMAND] [--markdown] [--start-up]

Without a server one Moldau is started for the run. Each row is a whole process, its start included, because that is
what people wait for: `moldau kafka-console-producer` and `moldau produce`, kcat, and Kafka's own console tools where
Java and its jars are there (tools/fetch_kafka.sh). All of them get the same lines, acks=all and batches of 16 KB unless
a tool has a larger default of its own. Of several rounds the best counts, as these machines are noisy. --start-up
measures how long the tools take to list topics, and `moldau` to show its help and version.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.interop.kafka_oracle import LIBS, TOOL_CLASSES, logging_file, missing  # noqa: E402
from tests.interop.nodes import MoldauNode  # noqa: E402

START_UP_RUNS = 7
# bin/kafka-run-class.sh; the heap is that of the console tools.
DISTRIBUTION_JVM = [
    "-Xmx512M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]


class Took(NamedTuple):
    """The time of a whole process."""

    seconds: float
    cpu_seconds: float


def run(command: list[str], source: Path | None = None, target: Path | None = None) -> Took:
    with contextlib.ExitStack() as files:
        stdin = files.enter_context(source.open("rb")) if source is not None else subprocess.DEVNULL
        stdout = files.enter_context(target.open("wb")) if target is not None else subprocess.DEVNULL
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{shlex.join(command)} ended with {process.returncode}:\n{said.decode()[-2000:]}")
    return Took(seconds, used.ru_utime + used.ru_stime)


def producers(moldau: list[str], server: str, topic: str) -> dict[str, list[str]]:
    real = real_tool("console-producer", "--bootstrap-server", server, "--topic", topic)
    kcat = shutil.which("kcat")
    return {
        "moldau kafka-console-producer": [
            *moldau, "kafka-console-producer", "--bootstrap-server", server, "--topic", topic
        ],
        "moldau produce": [*moldau, "produce", topic, "-b", server, "-q"],
        **({"kcat -P": [kcat, "-P", "-b", server, "-t", topic, "-X", "acks=all"]} if kcat else {}),
        **({"kafka-console-producer.sh": real} if real else {}),
    }  # fmt: skip


def consumers(moldau: list[str], server: str, topic: str, count: int) -> dict[str, list[str]]:
    wanted = ["--bootstrap-server", server, "--topic", topic, "--from-beginning", "--max-messages", str(count)]
    # One partition: no group, whose first rebalance alone takes three seconds.
    real = real_tool("console-consumer", *wanted, "--partition", "0")
    kcat = shutil.which("kcat")
    return {
        "moldau kafka-console-consumer": [*moldau, "kafka-console-consumer", *wanted],
        "moldau consume": [*moldau, "consume", topic, "-b", server, "-n", str(count)],
        **({"kcat -C": [kcat, "-C", "-e", "-q", "-b", server, "-t", topic, "-c", str(count)]} if kcat else {}),
        **({"kafka-console-consumer.sh": real} if real else {}),
    }


def real_tool(name: str, *arguments: str) -> list[str] | None:
    """The real tool as its distribution starts it: those JVM options, and no archive of classes."""
    if missing() is not None:
        return None
    logging = f"-Dlog4j2.configurationFile={logging_file()}"
    return ["java", *DISTRIBUTION_JVM, logging, "-cp", f"{LIBS}/*", TOOL_CLASSES[name], *arguments]


@contextlib.contextmanager
def broker(server: str | None, moldau: list[str]) -> Iterator[str]:
    if server is not None:
        yield server
        return
    os.environ["MOLDAU_COMMAND"] = shlex.join(moldau)
    with tempfile.TemporaryDirectory() as directory:
        node = MoldauNode(Path(directory) / "moldau")
        node.format()
        node.start()
        try:
            yield node.bootstrap
        finally:
            node.stop()


def write_lines(path: Path, count: int, size: int) -> None:
    letters = bytes(97 + byte % 26 for byte in range(256))
    pool = random.Random(7).randbytes(1 << 20).translate(letters)
    with path.open("wb") as file:
        for index in range(count):
            place = (index * 97) % (len(pool) - size)
            file.write(pool[place : place + size] + b"\n")


def create_topic(moldau: list[str], server: str, topic: str) -> None:
    run([*moldau, "kafka-topics", "--bootstrap-server", server, "--create", "--topic", topic, "--partitions", "1"])


def compare(options: argparse.Namespace, moldau: list[str], server: str) -> list[tuple[str, str, Took]]:
    rows: dict[tuple[str, str], Took] = {}
    with tempfile.TemporaryDirectory() as directory:
        lines, out = Path(directory) / "lines.txt", Path(directory) / "out.txt"
        write_lines(lines, options.records, options.size)
        expected = lines.stat().st_size
        for turn in range(options.rounds):
            for index, name in enumerate(producers(moldau, server, "")):
                topic = f"bench-{os.getpid()}-{turn}-{index}"
                create_topic(moldau, server, topic)
                took = run(producers(moldau, server, topic)[name], lines)
                keep(rows, ("stdin to topic", name), took)
            for name, command in consumers(moldau, server, topic, options.records).items():
                keep(rows, ("topic to file", name), run(command, None, out))
                if out.stat().st_size != expected:
                    raise SystemExit(f"{name} wrote {out.stat().st_size} bytes instead of {expected}.")
    return [(*key, took) for key, took in rows.items()]


def keep(rows: dict[tuple[str, str], Took], key: tuple[str, str], took: Took) -> None:
    if key not in rows or took.seconds < rows[key].seconds:
        rows[key] = took


def print_rows(rows: list[tuple[str, str, Took]], count: int, markdown: bool) -> None:
    print("| direction | tool | rows/s | seconds | CPU s |" if markdown else "direction, tool, rows/s, seconds, CPU s")
    if markdown:
        print("|---|---|---:|---:|---:|")
    for direction, name, took in rows:
        cells = [direction, name, f"{count / took.seconds:,.0f}", f"{took.seconds:.2f}", f"{took.cpu_seconds:.2f}"]
        print("| " + " | ".join(cells) + " |" if markdown else ", ".join(cells))


def print_start_up(moldau: list[str], server: str, markdown: bool) -> None:
    """The best of some runs: what is measured is the tool, not what else the machine does."""
    commands = {
        "moldau --version": [*moldau, "--version"],
        "moldau --help": [*moldau, "--help"],
        "moldau kafka-topics --list": [*moldau, "kafka-topics", "--bootstrap-server", server, "--list"],
        "moldau topic list": [*moldau, "topic", "list", "-b", server],
    }
    real = real_tool("topics", "--bootstrap-server", server, "--list")
    if real is not None:
        commands["kafka-topics.sh --list"] = real
    print("| command | ms | CPU ms |\n|---|---:|---:|" if markdown else "command, ms, CPU ms")
    for name, command in commands.items():
        took = min((run(command) for _ in range(START_UP_RUNS)), key=lambda item: item.seconds)
        cells = [name, f"{took.seconds * 1000:.0f}", f"{took.cpu_seconds * 1000:.0f}"]
        print("| " + " | ".join(cells) + " |" if markdown else ", ".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--bootstrap-server")
    parser.add_argument("--moldau", help="the command to measure; the sources of this checkout if not given")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--start-up", action="store_true", help="only how long the tools take to start")
    options = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)
    if options.moldau:
        moldau = shlex.split(options.moldau)
    else:
        moldau = [sys.executable, "-m", "moldau"]
        os.environ["PYTHONPATH"] = str(ROOT / "src")
    with broker(options.bootstrap_server, moldau) as server:
        if options.start_up:
            print_start_up(moldau, server, options.markdown)
        else:
            print_rows(compare(options, moldau, server), options.records, options.markdown)


if __name__ == "__main__":
    main()
