"""Compares command lines against one broker: lines to a topic and back, and the time to list topics.

    python bench/command_line.py --bootstrap-server HOST:PORT [--moldau COMMAND] [--records 1000000] [--rounds 2]

`moldau`, kcat where it is installed, and Kafka's own tools, run from the jars that tools/fetch_kafka.sh fetches. Every
tool sends the same file of 100-byte lines from standard input to a topic with one partition, and writes the same topic
to a file, which must then be the file that was sent. Whole processes are timed, start included; the best of the rounds
counts.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZE = 100
LIBS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "apache-kafka-4.3.1" / "libs"
JAVA = ["java", "-Xmx512M", "-cp", f"{LIBS}/*"]


class Tool:
    """Commands of one tool; {server}, {topic} and {records} are filled in."""

    def __init__(self, name: str, produce: list[str], consume: list[str], list_topics: list[str]) -> None:
        self.name = name
        self.produce = produce
        self.consume = consume
        self.list_topics = list_topics


def tools(moldau: str) -> list[Tool]:
    ours = shlex.split(moldau)
    found = [
        Tool(
            "moldau",
            [*ours, "produce", "{topic}", "-q", "-b", "{server}"],
            [*ours, "consume", "{topic}", "-b", "{server}"],
            [*ours, "topic", "list", "-b", "{server}"],
        )
    ]
    if shutil.which("kcat"):
        found.append(
            Tool(
                "kcat",
                ["kcat", "-P", "-b", "{server}", "-t", "{topic}", "-X", "acks=all"],
                ["kcat", "-C", "-b", "{server}", "-t", "{topic}", "-e", "-q"],
                ["kcat", "-L", "-b", "{server}"],
            )
        )
    if shutil.which("java") and LIBS.exists():
        package = "org.apache.kafka.tools"
        place = ["--bootstrap-server", "{server}"]
        read = ["--topic", "{topic}", "--from-beginning", "--max-messages", "{records}"]
        found.append(
            Tool(
                "Kafka's tools",
                [*JAVA, f"{package}.ConsoleProducer", *place, "--topic", "{topic}"],
                [*JAVA, f"{package}.consumer.ConsoleConsumer", *place, *read],
                [*JAVA, f"{package}.TopicCommand", *place, "--list"],
            )
        )
    return found


def run(command: list[str], values: dict[str, str], stdin: Path | None, stdout: Path | None) -> tuple[float, float]:
    """Seconds, and CPU seconds of the process."""
    filled = [word.format(**values) for word in command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with open(stdin or os.devnull, "rb") as source, open(stdout or os.devnull, "wb") as target:
        done = subprocess.run(filled, stdin=source, stdout=target, stderr=subprocess.PIPE)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(filled)} ended with {done.returncode}:\n{done.stderr.decode()[-2000:]}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def lines_file(folder: Path, records: int) -> Path:
    """Different lines, but not so many that making them takes longer than sending them."""
    source = random.Random(1)
    letters = b"abcdefghijklmnopqrstuvwxyz0123456789 "
    lines = [bytes(source.choices(letters, k=SIZE)) + b"\n" for _ in range(1000)]
    path = folder / "lines.txt"
    with path.open("wb") as file:
        for start in range(0, records, len(lines)):
            file.write(b"".join(lines[: records - start]))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--moldau", default=f"{sys.executable} -m moldau")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    ours = shlex.split(given.moldau)
    best: dict[tuple[str, str], tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines, back = lines_file(folder, given.records), folder / "back.txt"
        for _ in range(given.rounds):
            for number, tool in enumerate(tools(given.moldau)):
                topic = f"bench-command-line-{number}"
                values = {"server": given.bootstrap_server, "topic": topic, "records": str(given.records)}
                at = ["-b", given.bootstrap_server]
                run([*ours, "topic", "delete", topic, "--if-exists", *at], {}, None, None)
                run([*ours, "topic", "create", topic, "-p", "1", *at], {}, None, None)
                taken = {
                    "produce": run(tool.produce, values, lines, None),
                    "consume": run(tool.consume, values, None, back),
                    "list topics": run(tool.list_topics, values, None, None),
                }
                if not filecmp.cmp(lines, back, shallow=False):
                    sys.exit(f"{tool.name}: what came back is not what was sent")
                for row, found in taken.items():
                    best[row, tool.name] = min(best.get((row, tool.name), found), found)
                run([*ours, "topic", "delete", topic, *at], {}, None, None)
    print("| | tool | seconds | records/s | CPU seconds |\n|---|---|---:|---:|---:|")
    for (row, tool_name), (seconds, cpu) in sorted(best.items(), key=lambda item: (item[0][0], item[1])):
        rate = "" if row == "list topics" else f"{given.records / seconds:,.0f}"
        print(f"| {row} | {tool_name} | {seconds:.2f} | {rate} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
