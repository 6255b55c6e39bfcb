"""Decides how one partition changes: its ISR, who leads it, who may lead it later (KIP-966).

Invariants: a leader is chosen from the ISR; from the eligible leader replicas only when the ISR is empty; anybody else
only by an unclean election, after which the ISR is that leader alone and the partition is recovering. Naming a leader
raises the epoch. ISR and eligible replicas have no member in common and nobody who is not a replica.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.metadata.features import isr_shrink_raises_leader_epoch, partition_version
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

    def build(self) -> tuple[PartitionChangeRecord, int] | None:
        """The record and its version, or None when nothing changes."""
        record = PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id)
        self._complete_reassignment()
        self._derive_elr()
        is_unclean = self._elect(record)
        self._bump_epoch_if_replicas_leave(record)
        if is_unclean or not self.elr_enabled:
            # After an unclean election, or without the feature, nobody is known to have everything.
            self._target_elr = []
        if not is_unclean and self.target_isr != list(self.partition.isr) and (self.target_isr or self.elr_enabled):
            record.isr = self.target_isr
        self._bump_epoch_if_isr_shrinks(record)
        if partition_version(self.metadata_version) >= 2:
            if self._target_elr != list(self.partition.elr):
                record.eligible_leader_replicas = self._target_elr
            self._fill_last_known_leader(record)
        self._fill_assignment(record)
        if self.target_recovery_state != self.partition.leader_recovery_state:
            record.leader_recovery_state = self.target_recovery_state
        if record == PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id):
            return None
        self._check_invariants(record)
        return record, partition_version(self.metadata_version)

    def _check_invariants(self, record: PartitionChangeRecord) -> None:
        """Of what this decides; what was decided before, perhaps elsewhere, is what it is."""
        replicas = self.partition.replicas if record.replicas is None else record.replicas
        isr = self.partition.isr if record.isr is None else record.isr
        if record.isr is not None and set(self.partition.isr) <= set(self.partition.replicas):
            assert set(isr) <= set(replicas), f"the ISR {isr} has others than the replicas {replicas}"
        if record.leader not in (NO_LEADER_CHANGE, NO_LEADER, self.partition.leader):
            assert record.leader in isr, f"leader {record.leader} is not in the ISR {isr}"

    # Eligible leader replicas

    def _derive_elr(self) -> None:
        """While the ISR is below min.insync.replicas, those who leave it stay eligible: they miss nothing committed."""
        if not self.elr_enabled:
            return
        if len(self.target_isr) >= self._isr_wanted():
            self._target_elr = []
            return
        eligible = {*self.partition.elr, *self.partition.isr}.difference(self.target_isr, self.unclean_shutdown)
        self._target_elr = sorted(eligible.intersection(self.target_replicas))

    def _isr_wanted(self) -> int:
        return min(self.min_isr, len(self.target_replicas))

    def _fill_last_known_leader(self, record: PartitionChangeRecord) -> None:
        """When the last one leaves the ISR, its name is kept: it may come back as leader even after an unclean stop.

        It is forgotten as soon as there is a leader.
        """
        partition = self.partition
        leads = record.leader if record.leader != NO_LEADER_CHANGE else partition.leader
        known = list(partition.last_known_elr)
        if not self.elr_enabled or leads != NO_LEADER:
            known = []
        elif record.isr == [] and partition.leader in self.target_replicas:
            known = [partition.leader]
        if known != list(partition.last_known_elr):
            record.last_known_elr = known

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
        elif leader in self._target_elr:
            # It has everything committed, the rest must catch up with it.
            self.target_isr = [leader]
            self._target_elr = [r for r in self._target_elr if r != leader] if self._isr_wanted() > 1 else []
        return unclean

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
        candidates = self.target_isr if self.target_isr or not self.elr_enabled else self._target_elr
        return replica in candidates and self.is_acceptable_leader(replica)

    def _can_elect_last_known(self) -> bool:
        if not self.elr_enabled or self.target_isr or self._target_elr:
            return False
        last = self.partition.last_known_elr
        return len(last) == 1 and last[0] in self.target_replicas and self.is_acceptable_leader(last[0])

    # Reassignment

    def _complete_reassignment(self) -> None:
        """Once the added replicas are in sync, those to be removed go."""
        if not self.target_removing and not self.target_adding:
            return
        replicas = [r for r in self.target_replicas if r not in self.target_removing]
        isr = [r for r in self.target_isr if r not in self.target_removing]
        if not replicas or not isr or any(r not in isr for r in self.target_adding):
            return
        if not self.keeps_enough(replicas):
            return
        self.target_replicas, self.target_isr = replicas, isr
        self.target_removing, self.target_adding = [], []

    def keeps_enough(self, replicas: list[int]) -> bool:
        """Whether as many of these replicas have everything committed as min.insync.replicas promises, or as there are
        now if that is fewer: else what was acknowledged would be left to fewer of them."""
        complete = {*self.target_isr, *self.partition.elr}.difference(self.unclean_shutdown)
        return len(complete.intersection(replicas)) >= min(self.min_isr, len(replicas), len(complete))

    def _bump_epoch_if_replicas_leave(self, record: PartitionChangeRecord) -> None:
        """A replica that is no longer assigned must not go on fetching as if it were."""
        if record.leader == NO_LEADER_CHANGE and any(r not in self.target_replicas for r in self.partition.replicas):
            record.leader = self.partition.leader

    def _bump_epoch_if_isr_shrinks(self, record: PartitionChangeRecord) -> None:
        """Brokers of older metadata versions rely on it (KAFKA-15021)."""
        if record.leader != NO_LEADER_CHANGE or record.isr is None:
            return
        if isr_shrink_raises_leader_epoch(self.metadata_version) and not set(self.partition.isr) <= set(record.isr):
            record.leader = self.partition.leader

    def _fill_assignment(self, record: PartitionChangeRecord) -> None:
        partition = self.partition
        if self.target_replicas != list(partition.replicas) and self.target_replicas:
            record.replicas = self.target_replicas
        if self.target_removing != list(partition.removing_replicas):
            record.removing_replicas = self.target_removing
        if self.target_adding != list(partition.adding_replicas):
            record.adding_replicas = self.target_adding
        if record.replicas is None and not self.target_directories:
            return
        if partition_version(self.metadata_version) >= 1:
            places = dict(zip(partition.replicas, partition.directories, strict=True))
            places.update(self.target_directories)
            directories = [places[r] if r in places else self.default_directory(r) for r in self.target_replicas]
            if directories != list(partition.directories):
                record.directories = directories
