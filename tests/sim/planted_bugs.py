"""Bugs that a cluster could have, each planted on its own: what the simulator is for is to find them.

Every one is a line or two that somebody might write, or leave out. They replace methods of interpreted classes, so
they cannot be planted into a compiled build.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.api import produce
from moldau.controller.leadership import Leadership
from moldau.controller.partition_change import PartitionChange
from moldau.metadata.model import NO_LEADER
from moldau.node.metadata_log import QUORUM_STATE_FILE, MetadataLog
from moldau.node.metadata_node import MetadataNode
from moldau.node.responsive_endpoints import ResponsiveEndpoints
from moldau.protocol.errors import KafkaError
from moldau.raft import roles
from moldau.raft.state import NO_NODE
from moldau.replication.follower import Follower
from moldau.replication.leader import LeaderState
from moldau.replication.partition import Partition
from moldau.storage.disk import Done
from moldau.storage.killed_broker import KilledRun
from moldau.storage.leader_epochs import LeaderEpochs
from moldau.storage.producer_state import ProducerEntry
from tests.sim.worlds import Plant


def skip_truncation(patch: pytest.MonkeyPatch) -> None:
    """A follower that is told where its log parts from the leader's does not cut it."""

    def truncate(self: Follower, log: Any, offset: int, now_ms: int, backoff_ms: int) -> None:
        log.leader_epochs.assign(self.leader_epoch, log.log_end_offset)

    patch.setattr(Follower, "_truncate", truncate)


def count_any_replica(patch: pytest.MonkeyPatch) -> None:
    """The high watermark counts a majority of the replicas instead of all that are in sync."""

    def committed_end(self: LeaderState, leader_end: int, own_durable_end: int, now_ms: int, brokers: Any) -> int:
        ends = sorted([own_durable_end, *(max(0, follower.log_end_offset) for follower in self.followers)])
        return ends[len(ends) // 2]

    patch.setattr(LeaderState, "committed_end", committed_end)


def high_watermark_by_the_leader_alone(patch: pytest.MonkeyPatch) -> None:
    """The leader takes its own log end for what is committed."""

    def committed_end(self: LeaderState, leader_end: int, own_durable_end: int, now_ms: int, brokers: Any) -> int:
        return own_durable_end

    patch.setattr(LeaderState, "committed_end", committed_end)


def high_watermark_without_the_replica_that_joins(patch: pytest.MonkeyPatch) -> None:
    """A replica that is being added to the ISR does not count yet: the controller may elect it all the same."""

    def committed_end(self: LeaderState, leader_end: int, own_durable_end: int, now_ms: int, brokers: Any) -> int:
        ends = [f.log_end_offset for f in self.followers if f.replica_id in self.in_sync.committed]
        return min([own_durable_end, *ends])

    patch.setattr(LeaderState, "committed_end", committed_end)


def high_watermark_without_the_replica_that_leaves(patch: pytest.MonkeyPatch) -> None:
    """A replica that the controller was asked to remove does not count any more, before the controller has agreed."""
    original = LeaderState.committed_end

    def committed_end(self: LeaderState, leader_end: int, own_durable_end: int, now_ms: int, brokers: Any) -> int:
        before = self.in_sync.maximal
        if self.in_sync.proposed:
            self.in_sync.maximal = self.in_sync.proposed
        try:
            return original(self, leader_end, own_durable_end, now_ms, brokers)
        finally:
            self.in_sync.maximal = before

    patch.setattr(LeaderState, "committed_end", committed_end)


def ignore_the_minimum(patch: pytest.MonkeyPatch) -> None:
    """`min.insync.replicas` is not looked at: neither before an append nor when the high watermark moves."""
    patch.setattr(Partition, "min_in_sync_replicas", lambda self, log: 1)


def vote_twice(patch: pytest.MonkeyPatch) -> None:
    """A voter does not look whom it has voted for in this epoch."""

    def can_grant(self: Any, candidate: Any, log_is_up_to_date: bool, pre_vote: bool) -> bool:
        return log_is_up_to_date and (pre_vote or self.leader_id == NO_NODE)

    patch.setattr(roles.Role, "_can_grant_without_leader", can_grant)


def forget_to_sync_votes(patch: pytest.MonkeyPatch) -> None:
    """quorum-state is written and not synced."""

    def write(self: MetadataLog, state: Any, data_version: int, voter_ids: list[int], done: Done) -> None:
        path, data = f"{self._directory}/{QUORUM_STATE_FILE}", state.to_json(data_version, voter_ids)
        self.disk.do_later(self._directory, lambda disk: disk.write_file(path, data, sync=False), done)

    patch.setattr(MetadataLog, "write_quorum_state", write)


def forget_to_sync_metadata(patch: pytest.MonkeyPatch) -> None:
    """The metadata log says that it is synced, and is not."""

    def sync_later(self: MetadataLog, done: Callable[[OSError | None], None]) -> None:
        done(None)

    patch.setattr(MetadataLog, "sync_later", sync_later)


def join_without_catching_up(patch: pytest.MonkeyPatch) -> None:
    """A follower is proposed for the ISR as soon as it fetches."""

    def may_join(self: LeaderState, follower: Any, high_watermark: int, epoch_start: int, brokers: Any) -> bool:
        if self.in_sync.is_changing or follower.replica_id in self.in_sync.committed:
            return False
        return bool(brokers.is_eligible(follower.replica_id, follower.broker_epoch))

    patch.setattr(LeaderState, "may_join", may_join)


def ignore_leader_epochs(patch: pytest.MonkeyPatch) -> None:
    """A leader counts what a follower of any epoch says, whether their logs are the same or not."""
    original = Partition.check_leader
    patch.setattr(Partition, "check_leader", lambda self, current_leader_epoch: original(self, -1))
    patch.setattr(Partition, "_find_divergence", lambda self, *arguments: None)


def elect_anybody(patch: pytest.MonkeyPatch) -> None:
    """When nobody eligible is there, any replica that lives leads."""
    original = PartitionChange._choose_leader

    def choose(self: PartitionChange) -> tuple[int, bool]:
        leader, unclean = original(self)
        if leader == NO_LEADER:
            for replica in self.target_replicas:
                if self.is_acceptable_leader(replica):
                    return replica, True
        return leader, unclean

    patch.setattr(PartitionChange, "_choose_leader", choose)


def keep_epochs_of_what_is_cut(patch: pytest.MonkeyPatch) -> None:
    """A truncation leaves the entries of the leader epoch cache."""
    patch.setattr(LeaderEpochs, "truncate_from_end", lambda self, end_offset, write=True: None)


def cut_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A new follower cuts its log to its high watermark, as before KIP-101."""
    original = Follower.begin

    def begin(self: Follower, leader_epoch: int) -> None:
        log = self.partition.log
        if log is not None and self.partition.high_watermark.offset < log.log_end_offset:
            try:
                self.logs.truncate(log, self.partition.high_watermark.offset, 0)
            except KafkaError:
                pass
        original(self, leader_epoch)

    patch.setattr(Follower, "begin", begin)


def trust_a_broker_that_lost_its_data(patch: pytest.MonkeyPatch) -> None:
    """A broker that comes back without a clean stop stays in the ISR."""
    patch.setattr(Leadership, "forget_broker", Leadership.remove_broker)


def acknowledge_at_once(patch: pytest.MonkeyPatch) -> None:
    """acks=all does not wait for the high watermark."""
    original = produce.Awaited.__init__

    def without_waiting(self: Any, partition: Any, acks: int, leader_epoch: int, offset: int, answer: Any) -> None:
        original(self, partition, acks, leader_epoch, 0, answer)

    patch.setattr(produce.Awaited, "__init__", without_waiting)


def append_every_retry(patch: pytest.MonkeyPatch) -> None:
    """A batch that an idempotent producer sends again is appended again."""
    patch.setattr(ProducerEntry, "find_duplicate", lambda self, header: None)
    patch.setattr(ProducerEntry, "check_sequence", lambda self, header: None)


def answer_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """The controller answers when it has appended, before a majority has it."""

    def submit(self: MetadataNode, verb: Any, done: Any, now_ms: int | None = None) -> None:
        if self._active is None:
            original(self, verb, done, now_ms)
            return
        try:
            result = verb(self._active.controller)
            self._active.append(result.records, True, self.now_ms)
        except KafkaError as error:
            done(error, self.now_ms)
            return
        done(result.response, self.now_ms)
        self._work()

    original = MetadataNode.submit
    patch.setattr(MetadataNode, "submit", submit)


def believe_any_refusal(patch: pytest.MonkeyPatch) -> None:
    """A controller asks the first listener of a broker and believes a refusal, whether it ever had an answer there."""

    def responsive(self: ResponsiveEndpoints, broker_id: int, broker_epoch: int) -> list[Any]:
        return list(self._registered[broker_id].endpoints.values())[:1]

    patch.setattr(ResponsiveEndpoints, "responsive", responsive)


def trust_what_memory_shows(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks the disk whether it could write what a killed broker had handed to it."""
    patch.setattr(KilledRun, "sync", lambda self, logs: None)


def trust_a_shorter_log(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks whether the logs of a killed broker are as long as they were."""
    patch.setattr(KilledRun, "check", lambda self, logs, directory: None)


PLANTED: list[Plant] = [
    skip_truncation,
    count_any_replica,
    high_watermark_by_the_leader_alone,
    high_watermark_without_the_replica_that_leaves,
    ignore_the_minimum,
    vote_twice,
    forget_to_sync_votes,
    forget_to_sync_metadata,
    join_without_catching_up,
    ignore_leader_epochs,
    elect_anybody,
    keep_epochs_of_what_is_cut,
    cut_to_the_high_watermark,
    trust_a_broker_that_lost_its_data,
    acknowledge_at_once,
    append_every_retry,
    answer_before_the_commit,
]

PLANTED_IN_TRUST: list[Plant] = [
    trust_what_memory_shows,
    trust_a_shorter_log,
]

# What the controller has decided and the leader has not heard yet: seen where answers are long on their way.
PLANTED_IN_SLOW_LINKS: list[Plant] = [
    high_watermark_without_the_replica_that_joins,
]
