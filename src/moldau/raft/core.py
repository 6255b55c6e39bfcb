"""The state of one replica of the quorum, its log and its messages; the only place that moves the high watermark.

The other modules here are functions over it: `transitions` (the only ones that set the role), `elections`, `leading`,
`following`, `membership` and what these share. Only `replica` makes a core and hands it to them.
Invariants: the high watermark never goes back; nothing below it is truncated.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from moldau.raft.log import OffsetAndEpoch, RaftLog
from moldau.raft.messages import AddVoterRequest, FetchRequest, Reply, Request
from moldau.raft.ready import Outbound, Ready
from moldau.raft.roles import Leader, Role, Unattached
from moldau.raft.state import NO_NODE, QuorumState, ReplicaKey
from moldau.raft.voters import Endpoint, VoterHistory, VoterSet
from moldau.records.clocks import NEVER_MS, WallClock
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


def named_address(endpoints: tuple[Endpoint, ...], listener_name: str) -> Address | None:
    for name, host, port in endpoints:
        if name == listener_name:
            return host, port
    return None


def address_on(endpoints: tuple[Endpoint, ...], listener_name: str) -> Address | None:
    """The address of that listener; where there is none of that name, of the first."""
    return named_address(endpoints, listener_name) or (endpoints[0][1:] if endpoints else None)


class RaftCore:
    """All that a replica knows; see the single fields."""

    def __init__(
        self,
        config: RaftConfig,
        local: ReplicaKey,
        log: RaftLog,
        voters: VoterHistory,
        rng: RandomSource,
        endpoints: tuple[Endpoint, ...] = (),
        bootstrap_servers: list[Address] | None = None,
        *,
        wall: WallClock | None = None,
        listener_name: str = "",
    ) -> None:
        """`endpoints` is where this replica listens for controllers (none: a broker); `bootstrap_servers` are asked who
        leads, under the node ids -2, -3, …; `wall` is for the times in the log, everything else here counts on the
        steady clock; `listener_name` is the listener of others that this replica can talk to."""
        self.config = config
        self.local = local
        self.log = log
        self.voter_history = voters
        self.rng = rng
        self.wall = wall if wall is not None else WallClock()
        self.endpoints = endpoints
        self.listener_name = listener_name or (endpoints[0][0] if endpoints else "")
        """The listener this replica talks to others on: the one it was given, or the first of its own."""
        self.bootstrap_servers = bootstrap_servers if bootstrap_servers is not None else []
        self.role: Role = Unattached(0)
        self.high_watermark = 0
        self.synced_offset = 0
        self.sync_generation = 0
        """Raised by every truncation: a sync that was started before one says nothing about what came after it."""
        self.ready = Ready()
        """What the caller is to do, as far as it is known."""
        self.persisted: QuorumState | None = None
        """What the caller has stored, or was told to store."""
        self.in_flight: dict[int, tuple[Request, int]] = {}
        """The request each destination has not responded to yet, and until when it may."""
        self.retry_at_ms: dict[int, int] = {}
        self.parked: list[ParkedFetch] = []
        self.ask_again_ms = 0
        """When somebody else may be asked who leads."""
        self.next_early_election_ms = 0
        self.lost_elections = 0
        self.fetched_records = 0
        self.appended_records = 0
        """Since the start; those that it appended as the leader, and those that it fetched."""
        self.leader_address: tuple[int, Address] | None = None
        """Node id and address of the leader of this epoch, as it or somebody else told."""
        self.leader_endpoints: tuple[Endpoint, ...] = ()
        """All listeners of the leader of this epoch, if it has introduced itself."""

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

    # Addresses

    def address_of(self, node_id: int) -> Address | None:
        """Where to send a request: what was told of the leader, the voters' endpoints, bootstrap servers."""
        if node_id < NO_NODE:
            number = FIRST_BOOTSTRAP_ID - node_id
            return self.bootstrap_servers[number] if number < len(self.bootstrap_servers) else None
        if self.leader_address is not None and self.leader_address[0] == node_id:
            return self.leader_address[1]
        if node_id == self.local.id:
            return address_on(self.endpoints, self.listener_name)
        voter = self.voters.get(node_id)
        if voter is None and isinstance(self.role, Leader) and self.role.change is not None:
            request = self.role.change.request
            if isinstance(request, AddVoterRequest) and request.voter.key.id == node_id:
                voter = request.voter
        return address_on(voter.endpoints, self.listener_name) if voter is not None else None

    def address_for(self, node_id: int, listener_name: str) -> Address | None:
        """What somebody is told who came by that listener: it may not be able to talk to any other."""
        if listener_name == self.listener_name:
            return self.address_of(node_id)
        if node_id == self.local.id:
            return named_address(self.endpoints, listener_name)
        if node_id == self.leader_id and self.leader_endpoints:
            return named_address(self.leader_endpoints, listener_name)
        voter = self.voters.get(node_id)
        return named_address(voter.endpoints, listener_name) if voter is not None else None

    def note_leader_address(self, leader_id: int, epoch: int, address: Address | None) -> None:
        if address is not None and epoch == self.epoch and leader_id == self.leader_id != self.local.id:
            self.leader_address = (leader_id, address)

    def note_leader_endpoints(self, leader_id: int, epoch: int, endpoints: tuple[Endpoint, ...]) -> None:
        """A leader tells all its listeners; one without that which this replica talks to is reached as before."""
        if epoch == self.epoch and leader_id == self.leader_id != self.local.id:
            self.leader_endpoints = endpoints
        find = named_address if self.listener_name else address_on
        self.note_leader_address(leader_id, epoch, find(endpoints, self.listener_name))

    def is_meant(self, voter: ReplicaKey) -> bool:
        """A request names the voter it is for, with the directory: a replaced disk must not speak for the lost one."""
        return voter.id == NO_NODE or voter.is_same(self.local)

    # Deadlines

    def random_election_deadline(self, now_ms: int) -> int:
        return now_ms + self.config.election_timeout_ms + self.rng.randrange(max(1, self.config.election_timeout_ms))

    def check_quorum_deadline(self, now_ms: int) -> int:
        if self.voters.is_only_voter(self.local):
            return NEVER_MS
        return now_ms + self.config.fetch_timeout_ms * 3 // 2

    # The high watermark

    def advance_high_watermark(self, offset: int) -> None:
        if offset > self.high_watermark:
            assert offset <= self.log.end_offset(), f"high watermark {offset} is above {self.log.end_offset()}"
            self.high_watermark = offset
            self.ready.high_watermark = offset

    # The log

    def append(self, batch: bytes) -> None:
        self.log.append(batch)
        self.note_appended()

    def note_appended(self) -> None:
        self.ready.sync_to = self.log.end_offset()

    def truncate_to(self, offset: int) -> None:
        if offset < self.high_watermark:
            raise AssertionError(f"truncation to {offset} would remove committed records below {self.high_watermark}")
        self.log.truncate_to(offset)
        self.sync_generation += 1
        self.synced_offset = min(self.synced_offset, offset)
        self.voter_history.truncate_to(offset)

    def log_end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.log.end_offset(), self.log.last_epoch())

    # Messages

    def send(self, destination: int, request: Request, now_ms: int) -> None:
        timeout = self.config.request_timeout_ms
        if isinstance(request, FetchRequest):
            timeout += request.max_wait_ms
        self.in_flight[destination] = (request, now_ms + timeout)
        self.ready.requests.append(Outbound(destination, request))

    def wait_before_retry(self, destination: int, now_ms: int, delay_ms: int) -> None:
        self.retry_at_ms[destination] = max(self.retry_at_ms.get(destination, 0), now_ms + delay_ms)

    def can_send(self, destination: int, now_ms: int) -> bool:
        return destination not in self.in_flight and now_ms >= self.retry_at_ms.get(destination, 0)

    def reply(self, token: object, reply: Reply) -> None:
        if reply.leader_id != NO_NODE:
            reply.leader_address = self.address_of(reply.leader_id)
        self.ready.replies.append((token, reply))
