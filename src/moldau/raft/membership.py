"""Changes of the voters while the quorum runs (KIP-853): add, remove, update, and the way from static to dynamic.

One change at a time, and none before the leader committed a record of its own epoch: two majorities of neighbouring
sets then always share a voter. A set counts from its append on; the change is done when its record is committed, for
which the new set counts. A leader that removed itself goes on until then and resigns.
"""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.uuids import ZERO_UUID, uuid_to_text
from moldau.raft import commit, leading, voter_changes
from moldau.raft.batches import version_record, voters_record
from moldau.raft.core import RaftCore, logger
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
from moldau.raft.roles import Follower, Leader, PendingChange
from moldau.raft.state import ReplicaKey
from moldau.raft.voters import Voter, VoterSet

CAUGHT_UP_WITHIN_MS = 3_600_000


# As the leader


def on_add_voter_request(core: RaftCore, request: AddVoterRequest, token: object, now_ms: int) -> None:
    role = core.role
    problem = _leader_problem(core) or _invalid_voter(core, request.voter, "Add")
    if problem is None and isinstance(role, Leader):
        problem = voter_changes.change_problem(core, role, "adding")
        if problem is None and core.voters.get(request.voter.key.id) is not None:
            known = f"is already part of the set of voters {_shown_voters(core)}."
            text = f"The voter id for {_show(request.voter)} {known}"
            problem = errors.DUPLICATE_VOTER, text
    if problem is not None or not isinstance(role, Leader):
        voter_changes.reply_to_change(core, AddVoterReply, token, problem)
        return
    role.change = PendingChange(token, request, now_ms + core.config.request_timeout_ms)
    core.send(request.voter.key.id, ProbeRequest(role.epoch), now_ms)


def on_probe_reply(core: RaftCore, reply: ProbeReply, now_ms: int) -> None:
    role = core.role
    change = role.change if isinstance(role, Leader) else None
    if not isinstance(role, Leader) or change is None or change.offset >= 0:
        return
    request = change.request
    assert isinstance(request, AddVoterRequest)
    key = request.voter.key
    voter = Voter(key, request.voter.endpoints, reply.min_kraft_version, reply.max_kraft_version)
    shown, version = _show(voter), core.voter_history.kraft_version()
    if reply.error:
        name = errors.error_name(reply.error)
        text = f"Aborted add voter operation for {shown} since API_VERSIONS returned an error {name}"
        voter_changes.finish_change(core, role, (errors.INVALID_REQUEST, text))
    elif not voter.supports(version):
        span = f"SupportedVersionRange[min_version:{voter.min_kraft_version}, max_version:{voter.max_kraft_version}]"
        text = f"Aborted add voter operation for {shown} since kraft.version range {span} doesn't support the "
        voter_changes.finish_change(core, role, (errors.INVALID_REQUEST, f"{text}finalized version {version}"))
    elif not _is_caught_up(role, voter, now_ms):
        text = f"Aborted add voter operation for {shown} since it is lagging behind"
        voter_changes.finish_change(core, role, (errors.REQUEST_TIMED_OUT, text))
    else:
        change.offset = voter_changes.append_voters(core, role, core.voters.with_voter(voter), now_ms)
        if not request.ack_when_committed:
            voter_changes.reply_to_change(core, AddVoterReply, change.token, None)
            change.has_reply = True
        commit.update_commit(core, now_ms)


def on_probe_failure(core: RaftCore) -> None:
    role = core.role
    if isinstance(role, Leader) and role.change is not None and role.change.offset < 0:
        # As Kafka says it, with nobody named.
        text = "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
        voter_changes.finish_change(core, role, (errors.REQUEST_TIMED_OUT, text))


def _is_caught_up(role: Leader, voter: Voter, now_ms: int) -> bool:
    """It had the whole log at some time and still fetches; without that the commit would wait for it."""
    progress = role.observers.get(voter.key)
    if progress is None or progress.last_caught_up_ms < 0:
        return False
    return progress.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS


def on_remove_voter_request(core: RaftCore, request: RemoveVoterRequest, token: object, now_ms: int) -> None:
    role = core.role
    problem = _leader_problem(core) or _invalid_key(request.voter, "Remove")
    if problem is None and isinstance(role, Leader):
        problem = voter_changes.change_problem(core, role, "removing")
    if problem is None:
        known = core.voters.get(request.voter.id)
        if known is None or known.key != request.voter or len(core.voters) == 1:
            shown = _show(Voter(request.voter))
            text = f"Cannot remove voter {shown} from the set of voters {_shown_voters(core)}"
            problem = errors.VOTER_NOT_FOUND, text
    if problem is not None or not isinstance(role, Leader):
        voter_changes.reply_to_change(core, RemoveVoterReply, token, problem)
        return
    role.change = PendingChange(token, request, now_ms + core.config.request_timeout_ms)
    role.change.offset = voter_changes.append_voters(core, role, core.voters.without(request.voter.id), now_ms)
    commit.update_commit(core, now_ms)


def on_update_voter_request(core: RaftCore, request: UpdateVoterRequest, token: object, now_ms: int) -> None:
    """Replied to when it is appended: the voter that asks may be needed for the commit."""
    role = core.role
    error = leading.leader_error(core, request.epoch)
    problem = (error, "") if error else _invalid_voter(core, request.voter, "Update")
    version = core.voter_history.kraft_version()
    if problem is None and isinstance(role, Leader):
        known = core.voters.get(request.voter.key.id)
        if known is None or not known.key.is_same(request.voter.key):
            problem = errors.VOTER_NOT_FOUND, ""
        elif not request.voter.supports(version):
            problem = errors.INVALID_REQUEST, ""
        elif version == 0:
            # Nothing of it can be written yet; it is what an upgrade of kraft.version will write.
            role.described[request.voter.key.id] = request.voter
        elif known != request.voter:
            problem = voter_changes.change_problem(core, role, "updating")
            if problem is None:
                voter_changes.append_voters(core, role, core.voters.with_voter(request.voter), now_ms)
                commit.update_commit(core, now_ms)
    voter_changes.reply_to_change(core, UpdateVoterReply, token, problem)


def _leader_problem(core: RaftCore) -> tuple[int, str] | None:
    if core.is_leader:
        return None
    return errors.NOT_LEADER_OR_FOLLOWER, errors.default_text(errors.NOT_LEADER_OR_FOLLOWER)


def _invalid_voter(core: RaftCore, voter: Voter, verb: str) -> tuple[int, str] | None:
    problem = _invalid_key(voter.key, verb)
    if problem is not None:
        return problem
    if core.listener_name and all(name != core.listener_name for name, _, _ in voter.endpoints):
        each = [f"ListenerName({name})={host}/<unresolved>:{port}" for name, host, port in voter.endpoints]
        shown = "Endpoints(endpoints={" + ", ".join(each) + "})"
        text = f"{verb} voter request didn't include the endpoint ({shown}) for the default listener "
        return errors.INVALID_REQUEST, f"{text}ListenerName({core.listener_name})"
    return None


def _invalid_key(key: ReplicaKey, verb: str) -> tuple[int, str] | None:
    if key.id >= 0 and key.directory_id != ZERO_UUID:
        return None
    return errors.INVALID_REQUEST, f"{verb} voter request didn't include a valid voter"


def tick_change(core: RaftCore, now_ms: int) -> None:
    role = core.role
    if isinstance(role, Leader) and role.change is not None and now_ms >= role.change.deadline_ms:
        if role.change.offset < 0:
            on_probe_failure(core)
        else:
            text = "Request timed out waiting for voters to commit the voter change at "
            voter_changes.finish_change(core, role, (errors.REQUEST_TIMED_OUT, f"{text}{role.change.offset}"))


def _shown_voters(core: RaftCore) -> str:
    return "[" + ", ".join(_show(voter) for voter in core.voters.voters()) + "]"


# From a static to a dynamic quorum


def upgrade_kraft_version(core: RaftCore, level: int, validate_only: bool, now_ms: int) -> None:
    """Writes kraft.version and the voters to the log; raises KafkaError when not every voter is ready for it."""
    role = core.role
    current = core.voter_history.kraft_version()
    if not isinstance(role, Leader):
        raise KafkaError(errors.NOT_CONTROLLER, "This replica is not the leader of the quorum.")
    if level < current:
        raise KafkaError(errors.INVALID_UPDATE_VERSION, f"kraft.version cannot go back from {current} to {level}.")
    if level == current:
        return
    voters = _described_voters(core, role)
    unready = [
        str(voter.key.id) for voter in voters if voter.key.directory_id == ZERO_UUID or not voter.supports(level)
    ]
    if unready:
        text = f"The voters {', '.join(unready)} have not told the leader that they support kraft.version {level}."
        raise KafkaError(errors.INVALID_UPDATE_VERSION, text)
    if core.high_watermark <= role.epoch_start_offset:
        raise KafkaError(errors.REQUEST_TIMED_OUT, "The leader has not committed a record of its epoch yet.")
    if not validate_only:
        start, after = core.log.end_offset(), VoterSet(voters)
        voter_changes.append_controls(core, role, [version_record(level), voters_record(after)], after, now_ms)
        core.voter_history.add_version(start, level)
        commit.update_commit(core, now_ms)


def _described_voters(core: RaftCore, role: Leader) -> list[Voter]:
    known = role.described | {core.local.id: voter_changes.own_voter(core)}
    return [known.get(voter.key.id, voter) for voter in core.voters.voters()]


# As a follower


def drive_change(core: RaftCore, role: Follower, now_ms: int) -> bool:
    """Asks the leader for a change of the voters that concerns this replica; True when it did."""
    if now_ms < role.next_change_ms or not core.endpoints or not role.has_fetched:
        return False
    request = _update_to_ask_for(core, role) if core.is_voter else _change_to_ask_for(core)
    if request is None:
        return False
    role.next_change_ms = now_ms + core.config.fetch_timeout_ms
    core.send(role.leader_id, request, now_ms)
    return True


def _update_to_ask_for(core: RaftCore, role: Follower) -> UpdateVoterRequest | None:
    voter = voter_changes.own_voter(core)
    if core.voter_history.kraft_version() < 1:
        return None if role.has_updated_leader else UpdateVoterRequest(role.epoch, voter)
    return UpdateVoterRequest(role.epoch, voter) if core.voters.get(core.local.id) != voter else None


def _change_to_ask_for(core: RaftCore) -> AddVoterRequest | RemoveVoterRequest | None:
    """A controller that may join by itself (KIP-1186) takes the place of its former directory first."""
    if not core.config.auto_join or core.voter_history.kraft_version() < 1:
        return None
    known = core.voters.get(core.local.id)
    if known is not None:
        return RemoveVoterRequest(-1, known.key)
    return AddVoterRequest(-1, voter_changes.own_voter(core), ack_when_committed=False)


def on_change_reply(core: RaftCore, source: int, reply: ChangeReply) -> None:
    """Tried again after a while if it failed; what it came to is seen in the log."""
    role = core.role
    if isinstance(role, Follower) and role.leader_id == source:
        if isinstance(reply, UpdateVoterReply) and not reply.error:
            role.has_updated_leader = True
        elif reply.error:
            logger.info("leader %d rejected a change of the voters: %s", source, reply)


def _show(voter: Voter) -> str:
    """As Kafka writes a replica's key."""
    directory = voter.key.directory_id
    shown = uuid_to_text(directory) if directory != ZERO_UUID else "<undefined>"
    return f"ReplicaKey(id={voter.key.id}, directoryId={shown})"
