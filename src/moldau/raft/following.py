"""What a follower or observer does: fetches records or a snapshot, truncates where its log diverges."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import DecodeError
from moldau.raft.batches import control_records, parse_control
from moldau.raft.core import FIRST_BOOTSTRAP_ID, logger
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.membership import Membership
from moldau.raft.messages import FetchReply, FetchRequest, FetchSnapshotReply, FetchSnapshotRequest
from moldau.raft.roles import Follower
from moldau.raft.state import NO_NODE
from moldau.raft.voters import VoterSet
from moldau.records.batch import CorruptBatch, split_batches


class Following(Membership):
    def _drive_follower(self, role: Follower, now_ms: int) -> None:
        if role.leader_lost and not self.is_voter:
            self._ask_who_leads(now_ms, role.leader_id)
        if not self._can_send(role.leader_id, now_ms) or self._drive_change(role, now_ms):
            return
        if role.snapshot is not None:
            position, most = role.snapshot_position, self.config.snapshot_max_bytes
            if role.snapshot_complete:
                # Only to be heard of, and to hear of the leader, while the disk is busy with it.
                position, most = 0, 1
            request = FetchSnapshotRequest(role.epoch, self.local, role.snapshot, position, most)
            self._send(role.leader_id, request, now_ms)
        elif self._may_fetch():
            self._send(role.leader_id, self._fetch_request(), now_ms)

    def _may_fetch(self) -> bool:
        """The fetch offset of a voter tells the leader what is on its disk, so it waits for the sync. So does that of a
        controller which is no voter: it may have been made one, and the leader may count it before it knows. Nobody
        counts what a broker has. What is being truncated takes no records."""
        if not self.log.is_settled():
            return False
        return self.synced_offset == self.log.end_offset() or not (self.is_voter or self.endpoints)

    def _drive_unattached(self, now_ms: int) -> None:
        self._ask_who_leads(now_ms, NO_NODE)

    def _ask_who_leads(self, now_ms: int, besides: int) -> None:
        """Asks a voter or a bootstrap server for records, only to learn who leads; another one if it does not answer
        soon."""
        if now_ms < self._ask_again_ms or not self._may_fetch():
            return
        ready = [node_id for node_id in self._to_be_asked(besides) if self._can_send(node_id, now_ms)]
        if ready:
            self._ask_again_ms = now_ms + self.config.election_timeout_ms // 5
            self._send(ready[self.rng.randrange(len(ready))], self._fetch_request(), now_ms)

    def _to_be_asked(self, besides: int) -> list[int]:
        """The other voters, and the bootstrap servers that are not among them."""
        voter_ids = [voter_id for voter_id in self.voters.ids() if voter_id not in (self.local.id, besides)]
        known = {self.address_of(node_id) for node_id in [*voter_ids, self.local.id]}
        servers = enumerate(self.bootstrap_servers)
        return voter_ids + [FIRST_BOOTSTRAP_ID - number for number, address in servers if address not in known]

    def _fetch_request(self) -> FetchRequest:
        end = self._log_end()
        config = self.config
        return FetchRequest(
            self.epoch,
            self.local,
            end.offset,
            end.epoch,
            config.fetch_max_wait_ms,
            config.fetch_max_bytes,
            self.high_watermark,
        )

    def _on_fetch_reply(self, source: int, request: FetchRequest, reply: FetchReply, now_ms: int) -> None:
        role = self.role
        if not isinstance(role, Follower) or role.leader_id != source:
            # Asked who leads, and it did not know better.
            self._wait_before_retry(source, now_ms, self.config.election_timeout_ms // 10)
            self._ask_again_ms = 0
            return
        if reply.error:
            self._on_leader_refused(role, reply.error, now_ms)
            return
        if request.offset != self.log.end_offset() or request.epoch != role.epoch:
            return
        role.fetch_deadline_ms = now_ms + self.config.fetch_timeout_ms
        role.has_fetched = True
        role.connection_broke = role.leader_lost = False
        if reply.diverging is not None:
            self._truncate_to(self._point_of_divergence(reply.diverging))
        elif reply.snapshot is not None:
            if reply.snapshot.offset < self.high_watermark:
                shown = f"{reply.snapshot.offset} would remove committed records below {self.high_watermark}"
                raise AssertionError(f"a snapshot that ends at {shown}")
            role.snapshot, role.snapshot_position, role.snapshot_complete = reply.snapshot, 0, False
        else:
            if reply.records and not self._append_fetched(role, reply.records):
                self._wait_before_retry(source, now_ms, self.config.retry_backoff_ms)
                return
            role.leader_high_watermark = reply.high_watermark
            self._follow_high_watermark()

    def _on_leader_refused(self, role: Follower, error: int, now_ms: int) -> None:
        """A leader that says twice that it leads no more has resigned, or its process is a new one."""
        if error == errors.NOT_LEADER_OR_FOLLOWER:
            if role.connection_broke and self.is_voter:
                self._elect_early(role, now_ms)
            role.connection_broke = True

    def _point_of_divergence(self, leader_end: OffsetAndEpoch) -> int:
        """Where the own log last agreed with the leader's, as far as this answer tells."""
        local_end = self.log.end_offset_for_epoch(leader_end.epoch)
        if local_end.epoch == leader_end.epoch:
            return min(local_end.offset, leader_end.offset)
        return local_end.offset

    def _append_fetched(self, role: Follower, records: bytes) -> bool:
        """Appends what the leader sent; False when it is damaged, for damage must not spread."""
        before = self.log.end_offset()
        try:
            batches = split_batches(records, 0, len(records))
            if any(int(batch.partition_leader_epoch) > role.epoch for batch in batches):
                raise CorruptBatch(f"a batch of an epoch after {role.epoch}")
            controls = [(offset, parse_control(kind, value)) for offset, kind, value in control_records(records)]
            self.log.append_fetched(records)
        except (CorruptBatch, DecodeError, KafkaError) as error:
            if isinstance(error, KafkaError) and error.code == errors.KAFKA_STORAGE_ERROR:
                raise
            logger.error("records fetched from leader %d at offset %d are damaged: %s", role.leader_id, before, error)
            return False
        for offset, (version, voters) in controls:
            if before <= offset < self.log.end_offset():
                self._apply_control(offset, version, voters)
        self._note_appended()
        return True

    def _apply_control(self, offset: int, version: int | None, voters: VoterSet | None) -> None:
        """Voters and the kraft version count as soon as they are in the log."""
        if version is not None:
            self.voter_history.add_version(offset, version)
        if voters is not None:
            self.voter_history.add_voters(offset, voters)

    def _follow_high_watermark(self) -> None:
        """What the leader says is committed, as far as it is in this log. A majority has it on disk: it counts here
        before this disk has it, too."""
        if isinstance(self.role, Follower) and self.role.leader_high_watermark >= 0:
            self._advance_high_watermark(min(self.role.leader_high_watermark, self.log.end_offset()))

    def _on_fetch_snapshot_reply(
        self, source: int, request: FetchSnapshotRequest, reply: FetchSnapshotReply, now_ms: int
    ) -> None:
        role = self.role
        if not isinstance(role, Follower) or role.leader_id != source or role.snapshot != request.snapshot:
            return
        if role.snapshot_complete:
            if reply.error in (errors.NONE, errors.SNAPSHOT_NOT_FOUND):
                role.connection_broke = role.leader_lost = False
                role.fetch_deadline_ms = now_ms + self.config.fetch_timeout_ms
            self._wait_before_retry(source, now_ms, self.config.fetch_timeout_ms // 4)
            return
        if reply.error in (errors.SNAPSHOT_NOT_FOUND, errors.POSITION_OUT_OF_RANGE):
            role.snapshot = None
            return
        if reply.error or reply.position != role.snapshot_position or not reply.data:
            self._wait_before_retry(source, now_ms, self.config.retry_backoff_ms)
            return
        role.connection_broke = role.leader_lost = False
        role.fetch_deadline_ms = now_ms + self.config.fetch_timeout_ms
        self.log.append_fetched_snapshot(request.snapshot, reply.position, reply.data)
        role.snapshot_position = reply.position + len(reply.data)
        if role.snapshot_position >= reply.size:
            role.snapshot_complete = True
            self._wait_before_retry(source, now_ms, self.config.fetch_timeout_ms // 4)
            self._ready.fetched_snapshot = request.snapshot

    def on_snapshot_checked(self, snapshot: OffsetAndEpoch, problem: ValueError | None, now_ms: int) -> None:
        """What was fetched is whole and on the medium, or it is not what the leader has. By now another leader may want
        something else of this replica; then it is as if nothing had been fetched."""
        role = self.role
        if not isinstance(role, Follower) or role.snapshot != snapshot or not role.snapshot_complete:
            self.log.drop_fetched_snapshot(snapshot)
            return
        role.snapshot, role.snapshot_complete = None, False
        self._retry_at_ms.pop(role.leader_id, None)
        role.fetch_deadline_ms = max(role.fetch_deadline_ms, now_ms + self.config.fetch_timeout_ms)
        if problem is not None:
            text = "snapshot fetched from leader %d is damaged, fetching it again: %s"
            logger.error(text, role.leader_id, problem)
            self._wait_before_retry(role.leader_id, now_ms, self.config.retry_backoff_ms)
        else:
            self._install_snapshot(snapshot)
        self._drive(now_ms)

    def _install_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        self.log.install_fetched_snapshot(snapshot)
        self.sync_generation += 1
        # Its name, and that the log before it is gone, are on the medium after the next sync.
        self.synced_offset = min(self.synced_offset, snapshot.offset - 1)
        self._note_appended()
        self._load_voters()
        self._ready.loaded_snapshot = snapshot
        self._advance_high_watermark(snapshot.offset)

    def _load_voters(self) -> None:
        """Reads voters and kraft version from the latest snapshot and from the log after it."""
        self.voter_history.reset()
        snapshot = self.log.latest_snapshot()
        if snapshot is not None:
            size = self.log.snapshot_size(snapshot)
            for _, control_type, value in control_records(self.log.read_snapshot(snapshot, 0, min(size, 1 << 16))):
                # A record of the first snapshot (0-0) has offset -1, so that the first leader writes it to the log.
                self._apply_control(snapshot.offset - 1, *parse_control(control_type, value))
        position, end = max(self.log.start_offset(), snapshot.offset if snapshot else 0), self.log.end_offset()
        while position < end:
            data = self.log.read(position, 1 << 20)
            records, position = self._scan_controls(data, position)
            for offset, control_type, value in records:
                self._apply_control(offset, *parse_control(control_type, value))

    def _scan_controls(self, data: bytes, position: int) -> tuple[list[tuple[int, int, bytes]], int]:
        batches = split_batches(data, 0, len(data))
        if not batches:
            raise AssertionError(f"the log has no batch at offset {position}")
        return [record for record in control_records(data) if record[0] >= position], int(batches[-1].next_offset)
