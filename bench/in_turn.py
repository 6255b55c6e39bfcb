"""Two builds of Moldau in turn, both alive: CPU and time of one as parts of the other's.

    python bench/in_turn.py --moldau NEW/bin/moldau --before OLD/bin/moldau [--rows single,cluster] [--turns 12] \
        [--starts 4]

For "did this change cost anything". Rounds of minutes differ by more than most changes do, on a machine that others
use; slices of a third of a second, one build right after the other, see the same machine. Of each pair of slices the
ratio is taken; the median of the ratios is one figure, and the quarters beside it say how far to believe it. The other
figure, "calm", compares what the slices of each build cost that the machine disturbed least: its neighbours only ever
make work dearer. Where memory happened to lie differs from start to start, so both builds are started several times.
A build against itself shows what the machine alone makes of it: `--before` the same command.
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
MEGABYTES_TO_FETCH = 300
"""The same for both builds, in one segment: how much is produced in a slice differs, and closed segments cost more."""

Figures = tuple[float, float]
"""CPU and time for one unit of work."""
Pair = tuple[Figures, Figures]
"""Those of the new build and of the old one, right after each other."""

Work = Callable[[], float]
"""Does something for a slice, and returns how much it was."""


def main() -> None:
    arguments = options()
    heading = "the new build for the same work, as parts of the old one"
    print(f"{heading:<70}{'calm CPU':>10}{'CPU':>8}{'quarters':>16}{'time':>8}")
    for row in arguments.rows.split(","):
        count = {"single": 1, "cluster": 3}[row]
        pairs: dict[str, list[Pair]] = {label: [] for label, _ in works(row)}
        for start in range(arguments.starts):
            commands = [arguments.moldau, arguments.before]
            order = (0, 1) if start % 2 else (1, 0)
            with started(commands[order[0]], count) as first, started(commands[order[1]], count) as second:
                both = [first, second] if order[0] == 0 else [second, first]
                for label, make in works(row):
                    pairs[label] += paired(both, make, arguments.turns)
        for label, figures in pairs.items():
            show(f"{row}: {label}", figures)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moldau", required=True, help="the command of the new build")
    parser.add_argument("--before", required=True, help="the command of the old one")
    parser.add_argument("--rows", default="single,cluster")
    parser.add_argument("--turns", type=int, default=12, help="pairs of slices for each figure and start")
    parser.add_argument("--starts", type=int, default=4, help="how often both builds are started")
    return parser.parse_args()


def started(command: str, count: int) -> Nodes:
    nodes = Nodes(
        MoldauProgram(shlex.split(command)), count, {"num.partitions": "1", "min.insync.replicas": str(min(count, 2))}
    )
    try:
        nodes.start()
        for topic in ("small", "middle", "large", "fetched"):
            compare.create_topic(nodes.ports[1], topic, 1, count)
        if count == 1:
            fill(nodes.ports[1], "fetched")
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
        found += [("fetch of 1 MB", fetching("fetched", 1 << 20)), ("fetch of 64 KB", fetching("fetched", 64 << 10))]
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


def fill(port: int, topic: str) -> None:
    """With batches of 16 KB."""
    with compare.Load(port, topic, compare.batch_of(16, 1000)) as load:
        for _ in range(MEGABYTES_TO_FETCH * 1000 // 16):
            load.send()
            load.receive()


def paired(both: list[Nodes], make: Callable[[Nodes], Work], turns: int) -> list[Pair]:
    """What each build took in each turn; who comes first changes from turn to turn."""
    workers = [make(nodes) for nodes in both]
    for work in workers:
        work()
    pairs = []
    for turn in range(turns):
        figures = [(0.0, 0.0), (0.0, 0.0)]
        for place in (0, 1) if turn % 2 else (1, 0):
            figures[place] = measured(both[place], workers[place])
        pairs.append((figures[0], figures[1]))
    return pairs


def measured(nodes: Nodes, work: Work) -> Figures:
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


def show(label: str, pairs: list[Pair]) -> None:
    cpu = sorted(new[0] / old[0] for new, old in pairs)
    lower, upper = cpu[len(cpu) // 4], cpu[len(cpu) * 3 // 4]
    taken = statistics.median(new[1] / old[1] for new, old in pairs)
    undisturbed = calm([new[0] for new, _ in pairs]) / calm([old[0] for _, old in pairs])
    print(
        f"{label:<70}{undisturbed:>10.3f}{statistics.median(cpu):>8.3f}{lower:>8.3f}{upper:>8.3f}{taken:>8.3f}",
        flush=True,
    )


def calm(figures: list[float]) -> float:
    """The mean of the lowest tenth, without a single outlier."""
    lowest = sorted(figures)[1 : max(3, len(figures) // 10)]
    return statistics.mean(lowest)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        say("stopped")
