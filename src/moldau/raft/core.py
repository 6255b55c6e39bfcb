"""The state every part of the quorum shares, and the only functions that change a replica's role or high watermark.

Invariants: the epoch never goes back; one vote and one leader per epoch; the high watermark never goes back; a
role whose stored part is new is handed to the caller as `Ready.quorum_state` before anything is said.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from moldau.protocol import errors
from moldau.raft.log import OffsetAndEpoch, RaftLog
from moldau.raft.messages import AddVoterRequest, FetchReply, FetchRequest, Reply, Request
from moldau.raft.ready import Outbound, Ready
from moldau.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    check_succession,
)
from moldau.raft.state import NO_NODE, NO_REPLICA, QuorumState, ReplicaKey
from moldau.raft.voters import Endpoint, VoterHistory, VoterSet
from moldau.records.clocks import WallClock
from moldau.records.random_source import RandomSource

logger = logging.getLogger("moldau.raft")


Address = tuple[str, int]
FIRST_BOOTSTRAP_ID = -2


@dataclass(frozen=True, slots=True)
class RaftConfig:
    """The controller.quorum.* settings, with Kafka's defaults."""

    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 8 * 1024 * 1024
    snapshot_max_bytes: int = 1024 * 1024
    auto_join: bool = False


@dataclass(slots=True)
class ParkedFetch:
    """A fetch that waits at the leader for records, for a higher high watermark, or for its deadline."""

    token: object
    request: FetchRequest
    deadline_ms: int


def address_on(endpoints: tuple[Endpoint, ...], listener_name: str) -> Address | None:
    for name, host, port in endpoints:
        if name == listener_name:
            return host, port
    return endpoints[0][1:] if endpoints else None


class RaftCore:
    def __init__(
        self,
        config: RaftConfig,
        local: ReplicaKey,
        log: RaftLog,
        voters: VoterHistory,
        rng: RandomSource,
        endpoints: tuple[Endpoint, ...] = (),
        bootstrap_servers: list[Address] | None = None,
    ) -> None:
        """`endpoints` is where this replica listens for controllers, its first listener first (none: a broker);
        `bootstrap_servers` are asked who leads, under the node ids -2, -3, …"""
        self.config = config
        self.local = local
        self.log = log
        self.voter_history = voters
        self.rng = rng
        self.wall = WallClock()
        """For the times in the log; everything else here counts on the steady clock."""
        self.endpoints = endpoints
        self.bootstrap_servers = bootstrap_servers if bootstrap_servers is not None else []
        self.role: Role = Unattached(0)
        self.high_watermark = 0
        self.synced_offset = 0
        self.sync_generation = 0
        """Raised by every truncation: a sync that was started before one says nothing about what came after it."""
        self._ready = Ready()
        self._persisted: QuorumState | None = None
        self._in_flight: dict[int, tuple[Request, int]] = {}
        self._retry_at_ms: dict[int, int] = {}
        self._parked: list[ParkedFetch] = []
        self._ask_again_ms = 0
        self._next_early_election_ms = 0
        self._lost_elections = 0
        self._leader_address: tuple[int, Address] | None = None
        """Node id and address of the leader of this epoch, as it or somebody else told."""

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        return self.role.leader_id

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def voters(self) -> VoterSet:
        return self.voter_history.latest()

    @property
    def is_voter(self) -> bool:
        return self.voters.is_voter(self.local)

    def take_ready(self) -> Ready:
        """What is to be done now; see `Ready` for the order."""
        ready = self._ready
        self._ready = Ready()
        return ready

    # Addresses

    def address_of(self, node_id: int) -> Address | None:
        """Where to send a request: what was told of the leader, the voters' endpoints, bootstrap servers."""
        if node_id < NO_NODE:
            number = FIRST_BOOTSTRAP_ID - node_id
            return self.bootstrap_servers[number] if number < len(self.bootstrap_servers) else None
        if self._leader_address is not None and self._leader_address[0] == node_id:
            return self._leader_address[1]
        if node_id == self.local.id:
            return address_on(self.endpoints, self.listener_name)
        voter = self.voters.get(node_id)
        if voter is None and isinstance(self.role, Leader) and self.role.change is not None:
            request = self.role.change.request
            if isinstance(request, AddVoterRequest) and request.voter.key.id == node_id:
                voter = request.voter
        return address_on(voter.endpoints, self.listener_name) if voter is not None else None

    @property
    def listener_name(self) -> str:
        """The listener this replica talks to others on: the first of its own, or whichever they name first."""
        return self.endpoints[0][0] if self.endpoints else ""

    def _note_leader_address(self, leader_id: int, epoch: int, address: Address | None) -> None:
        if address is not None and epoch == self.epoch and leader_id == self.leader_id != self.local.id:
            self._leader_address = (leader_id, address)

    # Roles

    def _set_role(self, role: Role) -> None:
        before = self.role
        check_succession(before, role)
        if role.epoch == before.epoch and before.leader_id not in (NO_NODE, role.leader_id, self.local.id):
            if role.leader_id != NO_NODE:
                raise AssertionError(f"epoch {role.epoch} would have leaders {before.leader_id} and {role.leader_id}")
        self.role = role
        if role.epoch > before.epoch:
            self._leader_address = None
        if role.leader_id != NO_NODE:
            self._lost_elections = 0
        state = role.to_quorum_state()
        if state != self._persisted:
            self._persisted = state
            self._ready.quorum_state = state
        leads, led = isinstance(role, Leader), isinstance(before, Leader)
        if (role.epoch, role.leader_id, leads) != (before.epoch, before.leader_id, led):
            self._ready.leader_changed = True
        self._in_flight.clear()
        self._retry_at_ms.clear()
        self._ask_again_ms = 0
        if led and not leads:
            self._answer_parked_with_error(errors.NOT_LEADER_OR_FOLLOWER)
            self._end_change(before)
        logger.info("node %d: %s in epoch %d, leader %d", self.local.id, role.name, role.epoch, role.leader_id)

    def _end_change(self, before: Role) -> None:
        """A leader that is none any more leaves a change of the voters to its successor."""
        raise NotImplementedError

    def _voted_in(self, epoch: int) -> ReplicaKey:
        return self.role.voted if self.role.epoch == epoch else NO_REPLICA

    def _become_unattached(self, epoch: int, now_ms: int, voted: ReplicaKey = NO_REPLICA) -> None:
        deadline = self._random_election_deadline(now_ms)
        leader_id = self.role.leader_id if self.role.epoch == epoch and not self.is_leader else NO_NODE
        if leader_id == self.local.id:
            leader_id = NO_NODE
        voted = voted if voted != NO_REPLICA else self._voted_in(epoch)
        self._set_role(Unattached(epoch, leader_id, voted, deadline))

    def _become_follower(self, epoch: int, leader_id: int, now_ms: int) -> None:
        deadline = now_ms + self.config.fetch_timeout_ms
        follower = Follower(epoch, leader_id, self._voted_in(epoch), fetch_deadline_ms=deadline)
        follower.next_change_ms = deadline
        self._set_role(follower)

    def _become_prospective(self, now_ms: int) -> None:
        role = self.role
        if not self.log.is_settled():
            # A leader appends at once, and this log takes nothing yet: somebody else may lead, or this node later.
            self._become_unattached(role.epoch, now_ms)
            return
        leader_id = role.leader_id if role.leader_id != self.local.id else NO_NODE
        deadline = self._random_election_deadline(now_ms)
        self._set_role(Prospective(role.epoch, leader_id, role.voted, {self.local.id}, set(), deadline))

    def _become_candidate(self, now_ms: int) -> None:
        deadline = self._random_election_deadline(now_ms)
        self._set_role(Candidate(self.epoch + 1, NO_NODE, self.local, {self.local.id}, set(), deadline))

    def _become_resigned(self, now_ms: int) -> None:
        successors: list[ReplicaKey] = []
        if isinstance(self.role, Leader):
            progress = self.role.voters
            others = [voter_id for voter_id in progress if voter_id != self.local.id]
            others.sort(key=lambda voter_id: (-progress[voter_id].end_offset, voter_id))
            successors = [self.voters.key(voter_id) for voter_id in others if self.voters.get(voter_id) is not None]
        self._set_role(
            Resigned(
                self.epoch,
                self.local.id,
                unacknowledged={key.id for key in successors},
                successors=tuple(successors),
                election_deadline_ms=self._random_election_deadline(now_ms),
            )
        )

    def _random_election_deadline(self, now_ms: int) -> int:
        return now_ms + self.config.election_timeout_ms + self.rng.randrange(max(1, self.config.election_timeout_ms))

    def _note_epoch(self, leader_id: int, epoch: int, now_ms: int) -> None:
        """Learns from any message: a higher epoch, or the leader of the own one."""
        known = leader_id not in (NO_NODE, self.local.id)
        if epoch > self.epoch:
            if known:
                self._become_follower(epoch, leader_id, now_ms)
            else:
                self._become_unattached(epoch, now_ms)
        elif epoch == self.epoch and known and self.role.leader_id == NO_NODE:
            self._become_follower(epoch, leader_id, now_ms)

    # The high watermark

    def _advance_high_watermark(self, offset: int) -> None:
        if offset > self.high_watermark:
            assert offset <= self.log.end_offset(), f"high watermark {offset} is above {self.log.end_offset()}"
            self.high_watermark = offset
            self._ready.high_watermark = offset

    # The log

    def _note_appended(self) -> None:
        self._ready.sync_to = self.log.end_offset()

    def _truncate_to(self, offset: int) -> None:
        if offset < self.high_watermark:
            raise AssertionError(f"truncation to {offset} would remove committed records below {self.high_watermark}")
        self.log.truncate_to(offset)
        self.sync_generation += 1
        self.synced_offset = min(self.synced_offset, offset)
        self.voter_history.truncate_to(offset)

    def _log_end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.log.end_offset(), self.log.last_epoch())

    # Messages

    def _send(self, destination: int, request: Request, now_ms: int) -> None:
        timeout = self.config.request_timeout_ms
        if isinstance(request, FetchRequest):
            timeout += request.max_wait_ms
        self._in_flight[destination] = (request, now_ms + timeout)
        self._ready.requests.append(Outbound(destination, request))

    def _wait_before_retry(self, destination: int, now_ms: int, delay_ms: int) -> None:
        self._retry_at_ms[destination] = max(self._retry_at_ms.get(destination, 0), now_ms + delay_ms)

    def _can_send(self, destination: int, now_ms: int) -> bool:
        return destination not in self._in_flight and now_ms >= self._retry_at_ms.get(destination, 0)

    def _reply(self, token: object, reply: Reply) -> None:
        if reply.leader_id != NO_NODE:
            reply.leader_address = self.address_of(reply.leader_id)
        self._ready.replies.append((token, reply))

    def _answer_parked_with_error(self, error: int) -> None:
        parked, self._parked = self._parked, []
        for fetch in parked:
            self._reply(fetch.token, FetchReply(error, self.leader_id, self.epoch))
