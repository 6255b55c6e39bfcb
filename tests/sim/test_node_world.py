"""One whole node, its clients and its faults in the simulated world: nothing it promised is ever broken."""

from __future__ import annotations

import pytest

from moldau.sim.__main__ import DEFAULT_MILLISECONDS, main
from moldau.sim.kernel import host
from moldau.sim.kernel.disk import Inode, SimDisk
from moldau.sim.node.world import NodeWorld
from tests.sim.seeds import SEEDS, kept_seeds
from tests.sim.worlds import count_what_happens, run_both_ways, trace_digest


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_keeps_its_promises_through_every_fault(seed: int) -> None:
    """Replay with: python -m moldau.sim --seed SEED -v"""
    NodeWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("node"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    run_both_ways(NodeWorld, seed, milliseconds)


def test_the_faults_of_a_few_seeds_really_happen() -> None:
    names = ("deaths", "data_losses", "acknowledged_records", "fetched_records", "slow_disks")
    counts = count_what_happens(NodeWorld, range(1000, 1004), DEFAULT_MILLISECONDS, *names)
    assert counts["slow disk"] + counts["unsteady disk"] > 0
    assert counts["stuck disk"] > 0
    assert counts["deaths"] > 4
    assert counts["data_losses"] > 0
    assert counts["acknowledged_records"] > 1000
    assert counts["fetched_records"] > 100


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    arguments = ("--seed", "5", "--steps", "6000")
    assert trace_digest("1", *arguments) == trace_digest("2", *arguments)


class ForgetsToSync(SimDisk):
    """Says that a file is synced and does nothing."""

    def sync_inode(self, inode: Inode, path: str, number: int) -> None:
        return


def test_a_node_on_a_disk_that_lies_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "SimDisk", ForgetsToSync)
    with pytest.raises(Exception):  # noqa: B017 - it may show as a broken promise or as a node that cannot start
        for seed in range(20):
            NodeWorld(seed).run(DEFAULT_MILLISECONDS)


def test_the_command_replays_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "2", "--steps", "2000"]) == 0
    assert capsys.readouterr().out.startswith("seed 2:")
