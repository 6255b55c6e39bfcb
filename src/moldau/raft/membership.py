"""Changes of the voters while the quorum runs (KIP-853): add, remove, update, and the way from static to dynamic.

One change at a time, and none before the leader committed a record of its own epoch: two majorities of neighbouring
sets then always share a voter. A set counts from its append on; the change is done when its record is committed, for
which the new set counts. A leader that removed itself goes on until then and resigns.
"""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.uuids import ZERO_UUID, uuid_to_text
from moldau.raft.batches import ControlRecord, control_batch, version_record, voters_record
from moldau.raft.core import logger
from moldau.raft.leading import Leading
from moldau.raft.messages import (
    AddVoterReply,
    AddVoterRequest,
    ChangeReply,
    ProbeReply,
    ProbeRequest,
    RemoveVoterReply,
    RemoveVoterRequest,
    UpdateVoterReply,
    UpdateVoterRequest,
)
from moldau.raft.roles import Follower, Leader, PendingChange, ReplicaProgress, Role
from moldau.raft.state import ReplicaKey
from moldau.raft.voters import Voter, VoterSet

CAUGHT_UP_WITHIN_MS = 3_600_000
SUPPORTED_KRAFT_VERSIONS = (0, 1)


class Membership(Leading):
    # As the leader

    def _on_add_voter_request(self, request: AddVoterRequest, token: object, now_ms: int) -> None:
        role = self.role
        problem = self._leader_problem() or self._invalid_voter(request.voter, "Add")
        if problem is None and isinstance(role, Leader):
            problem = self._change_problem(role, "adding")
            if problem is None and self.voters.get(request.voter.key.id) is not None:
                known = f"is already part of the set of voters {self._shown_voters()}."
                text = f"The voter id for {_show(request.voter)} {known}"
                problem = errors.DUPLICATE_VOTER, text
        if problem is not None or not isinstance(role, Leader):
            self._answer_change(AddVoterReply, token, problem)
            return
        role.change = PendingChange(token, request, now_ms + self.config.request_timeout_ms)
        self._send(request.voter.key.id, ProbeRequest(role.epoch), now_ms)

    def _on_probe_reply(self, reply: ProbeReply, now_ms: int) -> None:
        role = self.role
        change = role.change if isinstance(role, Leader) else None
        if not isinstance(role, Leader) or change is None or change.offset >= 0:
            return
        request = change.request
        assert isinstance(request, AddVoterRequest)
        key = request.voter.key
        voter = Voter(key, request.voter.endpoints, reply.min_kraft_version, reply.max_kraft_version)
        shown, version = _show(voter), self.voter_history.kraft_version()
        if reply.error:
            name = errors.error_name(reply.error)
            text = f"Aborted add voter operation for {shown} since API_VERSIONS returned an error {name}"
            self._finish_change(role, (errors.INVALID_REQUEST, text))
        elif not voter.supports(version):
            span = (
                f"SupportedVersionRange[min_version:{voter.min_kraft_version}, max_version:{voter.max_kraft_version}]"
            )
            text = f"Aborted add voter operation for {shown} since kraft.version range {span} doesn't support the "
            self._finish_change(role, (errors.INVALID_REQUEST, f"{text}finalized version {version}"))
        elif not self._is_caught_up(role, voter, now_ms):
            text = f"Aborted add voter operation for {shown} since it is lagging behind"
            self._finish_change(role, (errors.REQUEST_TIMED_OUT, text))
        else:
            change.offset = self._append_voters(role, self.voters.with_voter(voter), now_ms)
            if not request.ack_when_committed:
                self._answer_change(AddVoterReply, change.token, None)
                change.answered = True
            self._update_commit(now_ms)

    def _on_probe_failure(self) -> None:
        role = self.role
        if isinstance(role, Leader) and role.change is not None and role.change.offset < 0:
            # As Kafka says it, with nobody named.
            text = "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
            self._finish_change(role, (errors.REQUEST_TIMED_OUT, text))

    def _is_caught_up(self, role: Leader, voter: Voter, now_ms: int) -> bool:
        """It had the whole log at some time and still fetches; without that the commit would wait for it."""
        progress = role.observers.get(voter.key)
        if progress is None or progress.last_caught_up_ms < 0:
            return False
        return progress.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS

    def _on_remove_voter_request(self, request: RemoveVoterRequest, token: object, now_ms: int) -> None:
        role = self.role
        problem = self._leader_problem() or self._invalid_key(request.voter, "Remove")
        if problem is None and isinstance(role, Leader):
            problem = self._change_problem(role, "removing")
        if problem is None:
            known = self.voters.get(request.voter.id)
            if known is None or known.key != request.voter or len(self.voters) == 1:
                shown = _show(Voter(request.voter))
                text = f"Cannot remove voter {shown} from the set of voters {self._shown_voters()}"
                problem = errors.VOTER_NOT_FOUND, text
        if problem is not None or not isinstance(role, Leader):
            self._answer_change(RemoveVoterReply, token, problem)
            return
        role.change = PendingChange(token, request, now_ms + self.config.request_timeout_ms)
        role.change.offset = self._append_voters(role, self.voters.without(request.voter.id), now_ms)
        self._update_commit(now_ms)

    def _on_update_voter_request(self, request: UpdateVoterRequest, token: object, now_ms: int) -> None:
        """Answered when it is appended: the voter that asks may be needed for the commit."""
        role = self.role
        error = self._leader_error(request.epoch)
        problem = (error, "") if error else self._invalid_voter(request.voter, "Update")
        version = self.voter_history.kraft_version()
        if problem is None and isinstance(role, Leader):
            known = self.voters.get(request.voter.key.id)
            if known is None or not known.key.is_same(request.voter.key):
                problem = errors.VOTER_NOT_FOUND, ""
            elif not request.voter.supports(version):
                problem = errors.INVALID_REQUEST, ""
            elif version == 0:
                # Nothing of it can be written yet; it is what an upgrade of kraft.version will write.
                role.described[request.voter.key.id] = request.voter
            elif known != request.voter:
                problem = self._change_problem(role, "updating")
                if problem is None:
                    self._append_voters(role, self.voters.with_voter(request.voter), now_ms)
                    self._update_commit(now_ms)
        self._answer_change(UpdateVoterReply, token, problem)

    def _leader_problem(self) -> tuple[int, str] | None:
        if self.is_leader:
            return None
        return errors.NOT_LEADER_OR_FOLLOWER, errors.default_text(errors.NOT_LEADER_OR_FOLLOWER)

    def _invalid_voter(self, voter: Voter, verb: str) -> tuple[int, str] | None:
        problem = self._invalid_key(voter.key, verb)
        if problem is not None:
            return problem
        if self.listener_name and all(name != self.listener_name for name, _, _ in voter.endpoints):
            each = [f"ListenerName({name})={host}/<unresolved>:{port}" for name, host, port in voter.endpoints]
            shown = "Endpoints(endpoints={" + ", ".join(each) + "})"
            text = f"{verb} voter request didn't include the endpoint ({shown}) for the default listener "
            return errors.INVALID_REQUEST, f"{text}ListenerName({self.listener_name})"
        return None

    def _invalid_key(self, key: ReplicaKey, verb: str) -> tuple[int, str] | None:
        if key.id >= 0 and key.directory_id != ZERO_UUID:
            return None
        return errors.INVALID_REQUEST, f"{verb} voter request didn't include a valid voter"

    def _change_problem(self, role: Leader, doing: str) -> tuple[int, str] | None:
        """Why the voters cannot be changed now."""
        if role.change is not None:
            text = "Request timed out waiting for leader to handle previous voter change request"
            return errors.REQUEST_TIMED_OUT, text
        if self.high_watermark <= role.epoch_start_offset:
            text = "Request timed out waiting for leader to establish HWM and fence previous voter changes"
            return errors.REQUEST_TIMED_OUT, text
        version = self.voter_history.kraft_version()
        if version < 1:
            text = f"Cluster doesn't support {doing} voter because the kraft.version feature is {version}"
            return errors.UNSUPPORTED_VERSION, text
        offset = self.voter_history.latest_offset()
        if offset >= self.high_watermark:
            text = "Request timed out waiting for voters to commit the latest voter change at "
            return errors.REQUEST_TIMED_OUT, f"{text}{offset} with HWM {self.high_watermark}"
        return None

    def _append_voters(self, role: Leader, voters: VoterSet, now_ms: int) -> int:
        """Appends the new set, which counts from now on; returns the offset of its record."""
        return self._append_controls(role, [voters_record(voters)], voters, now_ms)

    def _append_controls(self, role: Leader, records: list[ControlRecord], voters: VoterSet, now_ms: int) -> int:
        """`records` ends with the voters record."""
        before = self.voters
        start = self.log.end_offset()
        self._append(control_batch(start, role.epoch, self.wall.at(now_ms), records))
        offset = start + len(records) - 1
        self.voter_history.add_voters(offset, voters)
        self._take_over_progress(role, before, voters, now_ms)
        self._serve_parked(now_ms)
        return offset

    def _take_over_progress(self, role: Leader, before: VoterSet, after: VoterSet, now_ms: int) -> None:
        """What is known of an observer stays known when it becomes a voter, and the other way round. What it has on
        its disk is not known of an observer."""
        progress: dict[int, ReplicaProgress] = {}
        for voter in after.voters():
            old = before.get(voter.key.id)
            if old is not None and old.key.is_same(voter.key):
                progress[voter.key.id] = role.voters[voter.key.id]
            else:
                progress[voter.key.id] = role.observers.pop(voter.key, ReplicaProgress())
        for voter in before.voters():
            if after.get(voter.key.id) is None and voter.key.id != self.local.id:
                role.observers[voter.key] = role.voters[voter.key.id]
                role.observers[voter.key].synced_offset = -1
        role.voters = progress
        role.fetched_voters &= set(progress)
        role.check_quorum_deadline_ms = self._check_quorum_deadline(now_ms)

    def _on_committed(self, now_ms: int) -> None:
        """The high watermark of the leader moved."""
        role = self.role
        if not isinstance(role, Leader):
            return
        if role.change is not None and 0 <= role.change.offset < self.high_watermark:
            self._finish_change(role, None)
        if not self.is_voter and self.voter_history.latest_offset() < self.high_watermark:
            # It removed itself, or was removed by a record its predecessor left behind.
            self._become_resigned(now_ms)
        elif len(self.voters) > 1 and self._is_to_update_itself(role):
            self._append_voters(role, self.voters.with_voter(self._own_voter()), now_ms)

    def _is_to_update_itself(self, role: Leader) -> bool:
        """A leader that listens elsewhere than its voters record says: the others would not find it after its time."""
        known = self.voters.get(self.local.id)
        is_bound = bool(self.endpoints) and all(port > 0 for _, _, port in self.endpoints)
        return is_bound and known is not None and known != self._own_voter() and not self._change_problem(role, "")

    def _own_voter(self) -> Voter:
        return Voter(self.local, self.endpoints, *SUPPORTED_KRAFT_VERSIONS)

    def _tick_change(self, now_ms: int) -> None:
        role = self.role
        if isinstance(role, Leader) and role.change is not None and now_ms >= role.change.deadline_ms:
            if role.change.offset < 0:
                self._on_probe_failure()
            else:
                text = "Request timed out waiting for voters to commit the voter change at "
                self._finish_change(role, (errors.REQUEST_TIMED_OUT, f"{text}{role.change.offset}"))

    def _end_change(self, before: Role) -> None:
        if isinstance(before, Leader) and before.change is not None:
            self._finish_change(before, (errors.NOT_LEADER_OR_FOLLOWER, "The leader stepped down"))

    def _finish_change(self, role: Leader, problem: tuple[int, str] | None) -> None:
        change, role.change = role.change, None
        if change is not None and not change.answered:
            kind = AddVoterReply if isinstance(change.request, AddVoterRequest) else RemoveVoterReply
            self._answer_change(kind, change.token, problem)

    def _answer_change(self, kind: type[ChangeReply], token: object, problem: tuple[int, str] | None) -> None:
        error, text = problem if problem is not None else (errors.NONE, "")
        self._reply(token, kind(error, self.leader_id, self.epoch, text or None))

    def _shown_voters(self) -> str:
        return "[" + ", ".join(_show(voter) for voter in self.voters.voters()) + "]"

    # From a static to a dynamic quorum

    def upgrade_kraft_version(self, level: int, validate_only: bool, now_ms: int) -> None:
        """Writes kraft.version and the voters to the log; raises KafkaError when not every voter is ready for it."""
        role = self.role
        current = self.voter_history.kraft_version()
        if not isinstance(role, Leader):
            raise KafkaError(errors.NOT_CONTROLLER, "This replica is not the leader of the quorum.")
        if level < current:
            raise KafkaError(errors.INVALID_UPDATE_VERSION, f"kraft.version cannot go back from {current} to {level}.")
        if level == current:
            return
        voters = self._described_voters(role)
        unready = [
            str(voter.key.id) for voter in voters if voter.key.directory_id == ZERO_UUID or not voter.supports(level)
        ]
        if unready:
            text = f"The voters {', '.join(unready)} have not told the leader that they support kraft.version {level}."
            raise KafkaError(errors.INVALID_UPDATE_VERSION, text)
        if self.high_watermark <= role.epoch_start_offset:
            raise KafkaError(errors.REQUEST_TIMED_OUT, "The leader has not committed a record of its epoch yet.")
        if not validate_only:
            start, after = self.log.end_offset(), VoterSet(voters)
            self._append_controls(role, [version_record(level), voters_record(after)], after, now_ms)
            self.voter_history.add_version(start, level)
            self._update_commit(now_ms)

    def _described_voters(self, role: Leader) -> list[Voter]:
        known = role.described | {self.local.id: self._own_voter()}
        return [known.get(voter.key.id, voter) for voter in self.voters.voters()]

    # As a follower

    def _drive_change(self, role: Follower, now_ms: int) -> bool:
        """Asks the leader for a change of the voters that concerns this replica; True when it did."""
        if now_ms < role.next_change_ms or not self.endpoints or not role.has_fetched:
            return False
        request = self._update_to_ask_for(role) if self.is_voter else self._change_to_ask_for()
        if request is None:
            return False
        role.next_change_ms = now_ms + self.config.fetch_timeout_ms
        self._send(role.leader_id, request, now_ms)
        return True

    def _update_to_ask_for(self, role: Follower) -> UpdateVoterRequest | None:
        voter = self._own_voter()
        if self.voter_history.kraft_version() < 1:
            return None if role.told_leader else UpdateVoterRequest(role.epoch, voter)
        return UpdateVoterRequest(role.epoch, voter) if self.voters.get(self.local.id) != voter else None

    def _change_to_ask_for(self) -> AddVoterRequest | RemoveVoterRequest | None:
        """A controller that may join by itself (KIP-1186) takes the place of its former directory first."""
        if not self.config.auto_join or self.voter_history.kraft_version() < 1:
            return None
        known = self.voters.get(self.local.id)
        if known is not None:
            return RemoveVoterRequest(-1, known.key)
        return AddVoterRequest(-1, self._own_voter(), ack_when_committed=False)

    def _on_change_reply(self, source: int, reply: ChangeReply) -> None:
        """Tried again after a while if it failed; what it came to is seen in the log."""
        role = self.role
        if isinstance(role, Follower) and role.leader_id == source:
            if isinstance(reply, UpdateVoterReply) and not reply.error:
                role.told_leader = True
            elif reply.error:
                logger.info("leader %d rejected a change of the voters: %s", source, reply)


def _show(voter: Voter) -> str:
    """As Kafka writes a replica's key."""
    directory = voter.key.directory_id
    shown = uuid_to_text(directory) if directory != ZERO_UUID else "<undefined>"
    return f"ReplicaKey(id={voter.key.id}, directoryId={shown})"
