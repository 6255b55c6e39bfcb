"""Replays one seed of the simulated world: `python -m moldau.sim --seed N [--steps M] [--logs | --groups | …] [-v]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import traceback
from pathlib import Path

from moldau.sim.cluster import clock_world
from moldau.sim.cluster import world as cluster_world
from moldau.sim.cluster.clock_world import ClockWorld, SlowSegmentsWorld
from moldau.sim.cluster.world import ClusterWorld
from moldau.sim.groups.classic_world import ClassicGroupWorld
from moldau.sim.groups.consumer_world import ConsumerGroupWorld
from moldau.sim.groups.streams_world import StreamsGroupWorld
from moldau.sim.groups.world import GroupWorld
from moldau.sim.kernel.world import World
from moldau.sim.logs.world import LogWorld
from moldau.sim.node import large_world
from moldau.sim.node.large_world import LargeNodeWorld
from moldau.sim.node.world import NodeWorld
from moldau.sim.quorum import world as raft_world
from moldau.sim.quorum.world import RaftWorld
from moldau.sim.share import world as share_world
from moldau.sim.share.world import ShareWorld
from moldau.sim.transactions import world as transaction_world
from moldau.sim.transactions.world import TransactionWorld

LAST_EVENTS = 60
DEFAULT_MILLISECONDS = 10_000
DEFAULT_LENGTHS = {
    "logs": 300,
    "quorum": raft_world.DEFAULT_MILLISECONDS,
    "clocks": clock_world.DEFAULT_MILLISECONDS,
    "segments": clock_world.DEFAULT_MILLISECONDS,
    "large": large_world.DEFAULT_MILLISECONDS,
    "cluster": cluster_world.DEFAULT_MILLISECONDS,
    "transactions": transaction_world.DEFAULT_MILLISECONDS,
    "share": share_world.DEFAULT_MILLISECONDS,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m moldau.sim", description="Replays seeds of the simulated world.")
    parser.add_argument("--seed", type=int, required=True, help="the first (or only) seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds from there on")
    parser.add_argument("--steps", type=int, help="simulated milliseconds of a node, steps of logs alone")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--logs", action="store_true", help="logs alone on the simulated disk, without a node")
    which.add_argument("--groups", action="store_true", help="a node whose clients also commit offsets")
    which.add_argument("--classic-groups", action="store_true", help="a node with members of classic groups")
    which.add_argument("--quorum", action="store_true", help="a metadata quorum alone, without nodes around it")
    which.add_argument("--cluster", action="store_true", help="a cluster of several nodes")
    which.add_argument("--clocks", action="store_true", help="a cluster with wrong clocks and stopped controllers")
    which.add_argument("--segments", action="store_true", help="a cluster whose segments lie on slow or stuck disks")
    which.add_argument("--large", action="store_true", help="a node with many partitions and long indexes")
    which.add_argument("--transactions", action="store_true", help="a cluster whose clients write in transactions")
    which.add_argument("--share", action="store_true", help="a cluster with members of share groups")
    which.add_argument("--consumer-groups", action="store_true", help="a node with members of consumer groups")
    which.add_argument("--streams", action="store_true", help="a node with members of streams groups")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every event as it happens")
    options = parser.parse_args(arguments)
    kind = next((name for name in WORLDS if getattr(options, name.replace("-", "_"), False)), "node")
    seeds = range(options.seed, options.seed + options.count)
    failed = [seed for seed in seeds if not replay(seed, options.steps, kind=kind, verbose=options.verbose)]
    if len(seeds) > 1:
        print(f"{len(seeds)} seeds, {len(failed)} failed" + (f": {', '.join(map(str, failed))}" if failed else ""))
    return 1 if failed else 0


WORLDS: dict[str, type[LogWorld] | type[NodeWorld] | type[ClusterWorld] | type[RaftWorld]] = {
    "clocks": ClockWorld,
    "segments": SlowSegmentsWorld,
    "large": LargeNodeWorld,
    "cluster": ClusterWorld,
    "transactions": TransactionWorld,
    "share": ShareWorld,
    "logs": LogWorld,
    "quorum": RaftWorld,
    "groups": GroupWorld,
    "classic-groups": ClassicGroupWorld,
    "consumer-groups": ConsumerGroupWorld,
    "streams": StreamsGroupWorld,
    "node": NodeWorld,
}


def replay(seed: int, steps: int | None, *, kind: str, verbose: bool) -> bool:
    """Runs one seed; on failure prints the last events, the error and how to see it again."""
    setting = WORLDS[kind](seed)
    world: World = setting.world
    if verbose:
        world.echo = print
    try:
        setting.run(steps if steps is not None else DEFAULT_LENGTHS.get(kind, DEFAULT_MILLISECONDS))
    except Exception:
        if not verbose:
            print("\n".join(world.trace[-LAST_EVENTS:]))
        traceback.print_exc(file=sys.stdout)
        options = ("" if kind == "node" else f" --{kind}") + ("" if steps is None else f" --steps {steps}")
        print(f"seed {seed} failed at commit {commit()}: python -m moldau.sim --seed {seed}{options} -v")
        return False
    print(f"seed {seed}: {setting.summary()}")
    return True


def commit() -> str:
    """Which sources these are, where they lie in a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


if __name__ == "__main__":
    sys.exit(main())
