"""Two builds of Moldau in turn, both alive: CPU and time of one as parts of the other's.

    python bench/in_turn.py --moldau NEW/bin/moldau --before OLD/bin/moldau [--rows single,cluster] [--turns 40]

For "did this change cost anything". Rounds of minutes differ by more than most changes do, on a machine that others
use; slices of a third of a second, one build right after the other, see the same machine. Of each pair of slices the
ratio is taken, and the median of the ratios is the figure; the quarters beside it say how far to believe it. A build
against itself shows what the machine alone makes of it: `--before` the same command.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import compare
from side_by_side import MoldauProgram, Nodes, family_of, say

SLICE_S = 0.35
MEGABYTES_A_SLICE = 150

Work = Callable[[], float]
"""Does something for a slice, and returns how much it was."""


def main() -> None:
    arguments = options()
    heading = "the new build for the same work, as parts of the old one"
    print(f"{heading:<70}{'CPU':>8}{'quarters':>16}{'time':>8}")
    for row in arguments.rows.split(","):
        count = {"single": 1, "cluster": 3}[row]
        with started(arguments.moldau, count) as new, started(arguments.before, count) as old:
            for label, make in works(row):
                show(f"{row}: {label}", paired([new, old], make, arguments.turns))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moldau", required=True, help="the command of the new build")
    parser.add_argument("--before", required=True, help="the command of the old one")
    parser.add_argument("--rows", default="single,cluster")
    parser.add_argument("--turns", type=int, default=40, help="pairs of slices for each figure")
    return parser.parse_args()


def started(command: str, count: int) -> Nodes:
    nodes = Nodes(
        MoldauProgram(shlex.split(command)), count, {"num.partitions": "1", "min.insync.replicas": str(min(count, 2))}
    )
    try:
        nodes.start()
        for topic in ("small", "middle", "large"):
            compare.create_topic(nodes.ports[1], topic, 1, count)
    except BaseException:
        nodes.remove()
        raise
    return nodes


def works(row: str) -> list[tuple[str, Callable[[Nodes], Work]]]:
    found = [
        ("1 record of 100 B, five in flight", producing("small", 1, 100, 5)),
        ("1 record of 100 B, one in flight", producing("small", 1, 100, 1)),
        ("16 KB, five in flight", producing("middle", 16, 1000, 5)),
        ("1 MB, five in flight", producing("large", 1000, 1000, 5)),
    ]
    if row == "single":
        found += [("fetch of 1 MB", fetching("middle", 1 << 20)), ("fetch of 64 KB", fetching("middle", 64 << 10))]
    return found


def producing(topic: str, records: int, size: int, in_flight: int) -> Callable[[Nodes], Work]:
    batch = compare.batch_of(records, size)

    def make(nodes: Nodes) -> Work:
        leader = compare.leaders_of(nodes.ports[1], topic)[0]
        load = compare.Load(nodes.ports[leader], topic, batch)
        return lambda: load.run(SLICE_S, in_flight)[0]

    return make


def fetching(topic: str, size: int) -> Callable[[Nodes], Work]:
    def make(nodes: Nodes) -> Work:
        reader = compare.Reader(nodes.ports[1], topic, size)

        def work() -> float:
            reader.mb_per_second(MEGABYTES_A_SLICE)
            return MEGABYTES_A_SLICE

        return work

    return make


def paired(both: list[Nodes], make: Callable[[Nodes], Work], turns: int) -> list[tuple[float, float]]:
    """The ratios of CPU and of time in each turn; who comes first changes from turn to turn."""
    workers = [make(nodes) for nodes in both]
    for work in workers:
        work()
    ratios = []
    for turn in range(turns):
        figures = [(0.0, 0.0), (0.0, 0.0)]
        for place in (0, 1) if turn % 2 else (1, 0):
            figures[place] = measured(both[place], workers[place])
        (new_cpu, new_s), (old_cpu, old_s) = figures
        ratios.append((new_cpu / old_cpu, new_s / old_s))
    return ratios


def measured(nodes: Nodes, work: Work) -> tuple[float, float]:
    """CPU and time for one unit of work."""
    cpu, began = cpu_ns(nodes), time.perf_counter()
    amount = work()
    return (cpu_ns(nodes) - cpu) / amount, (time.perf_counter() - began) / amount


def cpu_ns(nodes: Nodes) -> int:
    """As exactly as the scheduler knows it: of all threads, those of child processes too."""
    total = 0
    for process in nodes.processes.values():
        for pid in family_of(process.pid):
            for task in Path(f"/proc/{pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
    return total


def show(label: str, ratios: list[tuple[float, float]]) -> None:
    cpu = sorted(ratio for ratio, _ in ratios)
    lower, upper = cpu[len(cpu) // 4], cpu[len(cpu) * 3 // 4]
    taken = statistics.median(ratio for _, ratio in ratios)
    print(f"{label:<70}{statistics.median(cpu):>8.3f}{lower:>8.3f}{upper:>8.3f}{taken:>8.3f}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        say("stopped")
