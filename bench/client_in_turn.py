"""Two builds of the client in turn, both alive: CPU of one for the same work, as a part of the other's.

    python bench/client_in_turn.py --new NEW/bin/python --old OLD/bin/python [--turns 40] [--bootstrap-server HOST:PORT]

For "did this change cost the client anything". Each build is a process that stays, and they work one after the other
against one broker. Of each pair of turns the ratio of CPU seconds is taken; the median of the ratios is the figure, and
the quarters beside it say how far to believe it. A build against itself shows what the machine alone makes of it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable

RECORDS = 100_000
VALUE = bytes(100)
TOPIC = "client-in-turn"


def works(server: str) -> dict[str, Callable[[], object]]:
    """What a process of either build can be told to do."""
    from moldau.client import Consumer, Producer, TopicPartition

    producer = Producer(server, batch_size=16_384, linger_ms=5)
    consumer = Consumer(server)
    partition = TopicPartition(TOPIC, 0)
    consumer.assign([partition])

    def send() -> None:
        for _ in range(RECORDS):
            producer.send(TOPIC, VALUE, partition=0)
        producer.flush()

    def send_many() -> None:
        for _ in range(RECORDS // 1_000):
            producer.send_many(TOPIC, [VALUE] * 1_000, partition=0)
        producer.flush()

    def send_singly() -> None:
        """A request for each record: what is counted per request shows most."""
        for _ in range(RECORDS // 50):
            producer.send(TOPIC, VALUE, partition=0).result()

    def poll() -> None:
        consumer.seek(partition, 0)
        seen = 0
        while seen < RECORDS:
            seen += len(consumer.poll(1_000))

    return {"send": send, "send_many": send_many, "send, one in flight": send_singly, "poll": poll}


def serve(server: str) -> None:
    """Does what each line says, and answers with the CPU seconds that it took."""
    import time

    known = works(server)
    print("|".join(known), flush=True)
    for line in sys.stdin:
        began = time.process_time()
        known[line.strip()]()
        print(time.process_time() - began, flush=True)


class Build:
    """A process of one build."""

    def __init__(self, python: str, server: str) -> None:
        command = [python, __file__, "--serve", server]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.works = self._line().split("|")

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def run(self, work: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{work}\n")
        self._process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--new")
    parser.add_argument("--old")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092")
    parser.add_argument("--serve")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    builds = [Build(options.new, options.bootstrap_server), Build(options.old, options.bootstrap_server)]
    print(f"{'the new build for the same work, as a part of the old one':<60}{'CPU':>8}{'quarters':>16}")
    for work in builds[0].works:
        ratios = []
        for turn in range(options.turns):
            first, second = builds if turn % 2 else builds[::-1]
            spent = {first: first.run(work), second: second.run(work)}
            if turn:
                ratios.append(spent[builds[0]] / spent[builds[1]])
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"{work:<60}{middle:>8.3f}{low:>8.3f}{high:>8.3f}", flush=True)
    for build in builds:
        build.close()


if __name__ == "__main__":
    main()
