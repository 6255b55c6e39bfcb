"""Decides how one partition changes: its ISR, who leads it, who may lead it later (KIP-966).

Invariants: a leader is chosen from the ISR, else from the eligible leader replicas; anybody else only by an unclean
election, after which the ISR is that leader alone and the partition is recovering. Naming a leader raises the epoch.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.metadata.features import partition_version
from moldau.metadata.model import NO_LEADER, NO_LEADER_CHANGE, RECOVERING, UNASSIGNED_DIRECTORY, PartitionRegistration
from moldau.protocol.stored.metadata_records import PartitionChangeRecord

ONLINE = 0
PREFERRED = 1
UNCLEAN = 2


class PartitionChange:
    """Set the targets, then `build`."""

    def __init__(
        self,
        partition: PartitionRegistration,
        topic_id: bytes,
        index: int,
        is_acceptable_leader: Callable[[int], bool],
        metadata_version: int,
        min_isr: int,
        elr_enabled: bool,
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.index = index
        self.is_acceptable_leader = is_acceptable_leader
        self.metadata_version = metadata_version
        self.min_isr = min_isr
        self.elr_enabled = elr_enabled
        self.election = ONLINE
        self.target_isr = list(partition.isr)
        self.target_replicas = list(partition.replicas)
        self.target_removing = list(partition.removing_replicas)
        self.target_adding = list(partition.adding_replicas)
        self.target_recovery_state = partition.leader_recovery_state
        self.target_directories: dict[int, bytes] = {}
        """Places of replicas that change."""
        self.default_directory: Callable[[int], bytes] = lambda broker_id: UNASSIGNED_DIRECTORY
        self.unclean_shutdown: frozenset[int] = frozenset()
        self._target_elr = list(partition.elr)
        self._target_last_known = list(partition.last_known_elr)

    def build(self) -> tuple[PartitionChangeRecord, int] | None:
        """The record and its version, or None when nothing changes."""
        record = PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id)
        self._complete_reassignment()
        self._derive_elr()
        forced_isr = self._elect(record)
        self._bump_epoch_if_replicas_leave(record)
        if forced_isr or not self.elr_enabled:
            # After an unclean election, or without the feature, nobody is known to have everything.
            self._target_elr, self._target_last_known = [], []
        self._fill_elr(record)
        if record.isr is None and self.target_isr != list(self.partition.isr) and (self.target_isr or self.elr_enabled):
            record.isr = self.target_isr
        self._remember_last_leader(record)
        self._fill_assignment(record)
        if self.target_recovery_state != self.partition.leader_recovery_state:
            record.leader_recovery_state = self.target_recovery_state
        if record == PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id):
            return None
        return record, partition_version(self.metadata_version)

    # Eligible leader replicas

    def _derive_elr(self) -> None:
        """While the ISR is below min.insync.replicas, those who leave it stay eligible: they miss nothing committed."""
        if not self.elr_enabled:
            return
        if len(self.target_isr) >= min(self.min_isr, len(self.target_replicas)):
            self._target_elr, self._target_last_known = [], []
            return
        candidates = [*self.partition.elr, *(r for r in self.partition.isr if r not in self.partition.elr)]
        self._target_elr = [r for r in candidates if r not in self.target_isr and r not in self.unclean_shutdown]

    def _fill_elr(self, record: PartitionChangeRecord) -> None:
        if partition_version(self.metadata_version) < 2:
            return
        if sorted(self._target_elr) != sorted(self.partition.elr):
            record.eligible_leader_replicas = self._target_elr
        if sorted(self._target_last_known) != sorted(self.partition.last_known_elr):
            record.last_known_elr = self._target_last_known

    def _remember_last_leader(self, record: PartitionChangeRecord) -> None:
        """When the last one leaves, its name is kept: it may come back as the leader even after an unclean stop."""
        leader = self.partition.leader
        if self.elr_enabled and record.isr == [] and self.partition.last_known_elr != (leader,):
            record.last_known_elr = [leader]

    # Election

    def _elect(self, record: PartitionChangeRecord) -> bool:
        """Names a new leader if there has to be one; True when the ISR was set by an unclean election."""
        leader, unclean = self._choose_leader()
        if leader == self.partition.leader:
            return False
        record.leader = leader
        if unclean:
            record.isr = [leader]
            self.target_recovery_state = RECOVERING
            return True
        if leader != NO_LEADER and leader not in self.target_isr:
            # It comes from the eligible ones: it has everything committed, the rest must catch up with it.
            self.target_isr = [leader]
            self._derive_elr_after_election(leader)
        return False

    def _derive_elr_after_election(self, leader: int) -> None:
        if len(self.target_isr) >= min(self.min_isr, len(self.target_replicas)):
            self._target_elr, self._target_last_known = [], []
        else:
            self._target_elr = [r for r in self._target_elr if r != leader]
            self._target_last_known = []

    def _choose_leader(self) -> tuple[int, bool]:
        if self.election == PREFERRED and self.target_replicas and self._is_valid_leader(self.target_replicas[0]):
            return self.target_replicas[0], False
        if self._is_valid_leader(self.partition.leader):
            return self.partition.leader, False
        for replica in self.target_replicas:
            if self._is_valid_leader(replica):
                return replica, False
        if self._can_elect_last_known():
            return self.partition.last_known_elr[0], True
        if self.election == UNCLEAN:
            for replica in self.target_replicas:
                if self.is_acceptable_leader(replica):
                    return replica, True
        return NO_LEADER, False

    def _is_valid_leader(self, replica: int) -> bool:
        eligible = replica in self.target_isr or (self.elr_enabled and replica in self._target_elr)
        return eligible and self.is_acceptable_leader(replica)

    def _can_elect_last_known(self) -> bool:
        if not self.elr_enabled or self.target_isr or self._target_elr:
            return False
        last = self.partition.last_known_elr
        return len(last) == 1 and self.is_acceptable_leader(last[0])

    # Reassignment

    def _complete_reassignment(self) -> None:
        """Once the added replicas are in sync, those to be removed go."""
        if not self.target_removing and not self.target_adding:
            return
        replicas = [r for r in self.target_replicas if r not in self.target_removing]
        isr = [r for r in self.target_isr if r not in self.target_removing]
        if not replicas or not isr or any(r not in isr for r in self.target_adding):
            return
        self.target_replicas, self.target_isr = replicas, isr
        self.target_removing, self.target_adding = [], []

    def _bump_epoch_if_replicas_leave(self, record: PartitionChangeRecord) -> None:
        """A replica that is no longer assigned must not go on fetching as if it were."""
        if record.leader == NO_LEADER_CHANGE and any(r not in self.target_replicas for r in self.partition.replicas):
            record.leader = self.partition.leader

    def _fill_assignment(self, record: PartitionChangeRecord) -> None:
        partition = self.partition
        if self.target_replicas != list(partition.replicas) and self.target_replicas:
            record.replicas = self.target_replicas
        if self.target_removing != list(partition.removing_replicas):
            record.removing_replicas = self.target_removing
        if self.target_adding != list(partition.adding_replicas):
            record.adding_replicas = self.target_adding
        if partition_version(self.metadata_version) >= 1:
            places = dict(zip(partition.replicas, partition.directories, strict=True))
            places.update(self.target_directories)
            directories = [places[r] if r in places else self.default_directory(r) for r in self.target_replicas]
            if record.replicas is not None or directories != list(partition.directories):
                record.directories = directories
