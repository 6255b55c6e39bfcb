"""A quorum in a world that breaks keeps its promises; planted bugs are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moldau.node.metadata_log import DamagedMetadataLog
from moldau.protocol.uuids import ZERO_UUID
from moldau.raft import commit, elections, following
from moldau.raft.core import RaftCore
from moldau.raft.ready import Ready
from moldau.raft.replica import Raft
from moldau.raft.roles import Leader, Role
from moldau.raft.state import QuorumState, ReplicaKey
from moldau.raft.voters import VoterSet
from moldau.sim.kernel.world import Violation
from moldau.sim.quorum.replica import DIRECTORY, Replica
from moldau.sim.quorum.world import RaftWorld
from moldau.storage.disk import Done
from tests.sim.seeds import SEEDS, kept_seeds
from tests.sim.worlds import run_both_ways

SEEDS_TO_FIND_A_BUG = 60


@pytest.mark.parametrize("seed", SEEDS)
def test_a_quorum_keeps_its_promises(seed: int) -> None:
    """Replay with: python -m moldau.sim --quorum --seed SEED"""
    RaftWorld(seed).run()


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("quorum"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    run_both_ways(RaftWorld, seed, milliseconds)


def test_the_same_seed_gives_the_same_trace() -> None:
    def trace(seed: int) -> list[str]:
        world = RaftWorld(seed)
        world.run(1000)
        return world.world.trace

    assert trace(5) == trace(5)
    assert trace(5) != trace(6)


def test_things_happen_in_this_world() -> None:
    """Otherwise nothing would be proved: leaders change, machines stop, voters change, snapshots are fetched."""
    worlds = [RaftWorld(seed) for seed in range(6)]
    for world in worlds:
        world.run()
    assert sum(len(world.model.leaders) for world in worlds) >= 20
    assert sum(world.model.end_offset for world in worlds) >= 500
    assert sum(replica.lives for world in worlds for replica in world.replicas.values()) >= 100
    assert any(world.model.changes_of_voters for world in worlds)
    assert sum(world.odd_machines.pauses for world in worlds) >= 5
    assert {"slow disk", "unsteady disk", "stuck disk"} <= {
        kind for world in worlds for kind in world.slow_disks.counts
    }
    assert any("loads snapshot" in line for world in worlds for line in world.world.trace)


def vote_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A voter forgets whom it gave its vote in this epoch."""

    def can_grant(role: Role, candidate: ReplicaKey, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        return log_is_up_to_date

    monkeypatch.setattr(Role, "_can_grant_without_leader", can_grant)


def forget_to_sync_quorum_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vote is written, and lost when the power fails."""

    def write(replica: Replica, state: QuorumState, done: Done) -> None:
        path, data = f"{DIRECTORY}/quorum-state", state.to_json(1, [])
        replica.disk.do_later(DIRECTORY, lambda disk: disk.write_file(path, data, sync=False), done)

    monkeypatch.setattr(Replica, "write_quorum_state", write)


def count_unsynced_appends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica says that records are on its disk before they are."""

    def sync(replica: Replica) -> None:
        raft = replica.raft
        if raft is not None and raft.synced_offset < replica.log.end_offset():
            raft.on_synced(replica.log.end_offset(), raft.sync_generation, replica.world.now_ms)

    monkeypatch.setattr(Replica, "sync", sync)


def skip_truncation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower keeps what its log has and the leader's has not."""
    monkeypatch.setattr(RaftCore, "truncate_to", lambda core, offset: None)


def vote_for_a_shorter_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks first is elected, whatever it is missing."""

    def can_grant(role: Role, candidate: ReplicaKey, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote or role.voted in (ReplicaKey(-1, ZERO_UUID), candidate)

    monkeypatch.setattr(Role, "_can_grant_without_leader", can_grant)


def commit_without_a_majority(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader takes for committed what it alone has on its disk."""

    def update_commit(core: RaftCore, now_ms: int) -> None:
        if isinstance(core.role, Leader) and core.synced_offset > core.high_watermark:
            core.advance_high_watermark(core.synced_offset)

    monkeypatch.setattr(commit, "update_commit", update_commit)


def elect_without_a_majority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the voters is enough."""
    monkeypatch.setattr(VoterSet, "majority", lambda voters: max(1, len(voters) // 2))


def lead_an_epoch_again_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state that was stored says nothing about the epoch a replica was in."""

    def read(replica: Replica) -> QuorumState | None:
        state = replica.log.read_quorum_state()
        return QuorumState(max(0, state.epoch - 1)) if state is not None else None

    monkeypatch.setattr(Replica, "read_quorum_state", read)


def answer_for_another_voter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every vote counts twice: the candidate's own, too, when it hears it from itself."""

    def count(core: RaftCore, now_ms: int) -> None:
        role = core.role
        if len(getattr(role, "granted", ())) * 2 >= core.voters.majority():
            for voter_id in core.voters.ids():
                role.granted.add(voter_id)  # type: ignore[attr-defined]
        original(core, now_ms)

    original = elections.count_votes
    monkeypatch.setattr(elections, "count_votes", count)


def answer_before_the_vote_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vote is on its way to the disk when the candidate hears of it."""

    def store(replica: Replica, raft: Raft, ready: Ready, state: QuorumState) -> None:
        replica.write_quorum_state(state, lambda error: None)
        replica._work_off(raft, ready)

    monkeypatch.setattr(Replica, "_store", store)


def fetch_on_without_a_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A voter fetches as a broker does."""
    monkeypatch.setattr(following, "_may_fetch", lambda core: core.log.is_settled())


BUGS: list[Callable[[pytest.MonkeyPatch], None]] = [
    vote_twice,
    forget_to_sync_quorum_state,
    count_unsynced_appends,
    skip_truncation,
    vote_for_a_shorter_log,
    commit_without_a_majority,
    elect_without_a_majority,
    lead_an_epoch_again_after_a_restart,
    answer_for_another_voter,
    answer_before_the_vote_is_stored,
    fetch_on_without_a_sync,
]


@pytest.mark.planted
@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is one that somebody once wrote."""
    plant(monkeypatch)
    with pytest.raises((Violation, AssertionError, DamagedMetadataLog)):
        for seed in range(SEEDS_TO_FIND_A_BUG):
            RaftWorld(seed).run()
