"""Members of share groups in a simulated cluster: they fetch, acknowledge in every way, hang, die and come back.

They speak the protocol themselves, so that they can do what no decent client does: acknowledge late and twice, forget
a session and open the next, answer nothing for seconds, go without saying goodbye. A stranger tries to acknowledge
what it never got. When the world is quiet they all do as they should, until nothing is left to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.node.share.record_states import ACCEPT, GAP, REJECT, RELEASE, RENEW
from moldau.protocol import errors
from moldau.protocol.messages import share_acknowledge_request as acknowledge_request
from moldau.protocol.messages import share_fetch_request as fetch_request
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from moldau.protocol.messages.share_acknowledge_response import ShareAcknowledgeResponse
from moldau.protocol.messages.share_fetch_response import PartitionData, ShareFetchResponse
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import has_valid_crc, split_batches
from moldau.records.walk import read_records
from moldau.sim.cluster.client import NOBODY, ClusterClient, Place
from moldau.sim.kernel.world import Violation
from moldau.sim.share.ledger import Sent

if TYPE_CHECKING:
    from moldau.sim.share.world import ShareWorld

BEAT_MS = 150
HELD_MAX = 60
LOST = (errors.SHARE_SESSION_NOT_FOUND, errors.INVALID_SHARE_SESSION_EPOCH)
OUT = (errors.UNKNOWN_MEMBER_ID, errors.FENCED_MEMBER_EPOCH, errors.GROUP_ID_NOT_FOUND)
NOT_NOW = (
    errors.NOT_COORDINATOR,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.REQUEST_TIMED_OUT,
    errors.NOT_ENOUGH_REPLICAS,
    errors.GROUP_MAX_SIZE_REACHED,
)
FETCH_ERRORS = (
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.LEADER_NOT_AVAILABLE,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.KAFKA_STORAGE_ERROR,
    errors.GROUP_ID_NOT_FOUND,
    errors.OFFSET_NOT_AVAILABLE,
    errors.FENCED_LEADER_EPOCH,
)
ACKNOWLEDGE_ERRORS = (*FETCH_ERRORS, errors.INVALID_RECORD_STATE)
Said = dict[Place, dict[int, int]]
"""What a member says of offsets of partitions."""


class NodeSession:
    """What a member has to do with one broker. Epoch 0: the next request opens a session."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.epoch = 0
        self.places: set[Place] = set()
        self.busy = False
        self.held: dict[Place, dict[int, bool]] = {}
        """Offsets that are locked for the member, and whether there is a record."""
        self.said: Said = {}

    def lose(self) -> None:
        self.epoch = 0
        self.places = set()
        self.held = {}
        self.busy = False

    @property
    def count(self) -> int:
        return sum(len(offsets) for offsets in self.held.values())


class ShareMember:
    def __init__(self, setting: ShareWorld, group_id: str, name: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.group_id = group_id
        self.name = name
        self.client = ClusterClient(setting, name)
        self.rng = self.client.rng
        self.life = 0
        self.alive = True
        self.asleep_until_ms = 0
        self.wild = self.rng.random()
        self.by_record = self.rng.random() < 0.4
        self._begin()
        self.world.schedule(self.rng.randint(0, 200), self.tick)

    def _begin(self) -> None:
        self.life += 1
        self.member_id = f"{self.name}.{self.life}"
        self.epoch = 0
        self.coordinator = NOBODY
        self.beating = False
        self.next_beat_ms = 0
        self.assigned: set[Place] = set()
        self.sessions: dict[int, NodeSession] = {}

    # Life

    def tick(self) -> None:
        if self.setting.finished:
            return
        self.world.schedule(self.rng.randint(5, 70), self.tick)
        if not self.alive or self.world.now_ms < self.asleep_until_ms or not self.setting.is_begun:
            return
        if not self.setting.quiet and self.rng.random() < 0.03 * self.wild:
            self._misbehave()
            return
        self._beat()
        self._look_for_leaders()
        for session in list(self.sessions.values()):
            if not session.busy:
                self._step(session)

    def _misbehave(self) -> None:
        draw = self.rng.random()
        if draw < 0.3:
            self.asleep_until_ms = self.world.now_ms + self.rng.choice((200, 1200, 2500))
            self.world.note(f"{self.member_id} hangs")
        elif draw < 0.55:
            self.die(self.rng.choice((10, 500, 2000)))
        elif self.sessions:
            session = self.rng.choice(list(self.sessions.values()))
            if draw < 0.75:
                self.client.disconnect(session.node_id)
                session.lose()
            elif draw < 0.9:
                # A new session on the same connection; what is locked stays so.
                session.epoch = 0
                session.places = set()
            else:
                session.epoch += self.rng.choice((-1, 1, 5))

    def die(self, pause_ms: int) -> None:
        """Sometimes with a word to the coordinator, mostly without."""
        self.world.note(f"{self.member_id} dies")
        self.alive = False
        if self.epoch > 0 and self.coordinator != NOBODY and self.rng.random() < 0.4:
            self.client.ask(self.coordinator, ShareGroupHeartbeatRequest(self.group_id, self.member_id, -1), 1, ignore)
        elif self.rng.random() < 0.5:
            for node_id in self.setting.broker_ids:
                self.client.disconnect(node_id)
        self.world.schedule(pause_ms, self._come_back)

    def _come_back(self) -> None:
        if self.setting.may_join(self.group_id):
            self._begin()
            self.alive = True
        elif not self.setting.finished:
            self.world.schedule(200, self._come_back)

    def leave(self) -> None:
        """For good, as far as it knows: the group is to be empty."""
        if self.alive:
            self.world.note(f"{self.member_id} leaves")
            for session in self.sessions.values():
                if session.epoch > 0:
                    request = acknowledge_request.ShareAcknowledgeRequest(self.group_id, self.member_id, -1)
                    self.client.ask(session.node_id, request, 2, ignore)
            if self.coordinator != NOBODY:
                request_out = ShareGroupHeartbeatRequest(self.group_id, self.member_id, -1)
                self.client.ask(self.coordinator, request_out, 1, ignore)
            self.alive = False
            self.world.schedule(300, self._come_back)
        self.world.schedule(100, self._hang_up)

    def _hang_up(self) -> None:
        if not self.alive:
            for node_id in self.setting.broker_ids:
                self.client.disconnect(node_id)

    # The group

    def _beat(self) -> None:
        if self.beating or self.world.now_ms < self.next_beat_ms:
            return
        self.beating = True
        self.next_beat_ms = self.world.now_ms + BEAT_MS
        life = self.life
        if self.coordinator == NOBODY:
            request = FindCoordinatorRequest(coordinator_keys=[self.group_id])
            self.client.ask(
                self.client.any_node(), request, 4, lambda response: self._on_coordinator(life, response), 800
            )
            return
        topics = self.setting.subscription(self.group_id) if self.epoch == 0 or self.rng.random() < 0.05 else None
        beat = ShareGroupHeartbeatRequest(self.group_id, self.member_id, self.epoch, None, topics)
        self.client.ask(self.coordinator, beat, 1, lambda response: self._on_beat(life, response), 1000)

    def _on_coordinator(self, life: int, response: Message | None) -> None:
        if life != self.life:
            return
        self.beating = False
        if isinstance(response, FindCoordinatorResponse) and response.coordinators[0].error_code == errors.NONE:
            self.coordinator = response.coordinators[0].node_id
            self.next_beat_ms = 0

    def _on_beat(self, life: int, response: Message | None) -> None:
        if life != self.life:
            return
        self.beating = False
        if not isinstance(response, ShareGroupHeartbeatResponse):
            self.coordinator = NOBODY
            return
        code = response.error_code
        if code in OUT:
            self.epoch = 0
            self.assigned = set()
        elif code in NOT_NOW:
            self.coordinator = NOBODY
        elif code != errors.NONE:
            raise Violation(f"a heartbeat is answered: {self.member_id} got {errors.error_name(code)}")
        else:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.assigned = {
                    (row.topic_id, index) for row in response.assignment.topic_partitions for index in row.partitions
                }

    # Leaders

    def _look_for_leaders(self) -> None:
        if self.rng.random() < 0.02:
            self.client.refresh()
        for place in sorted(self.assigned):
            leader = self.client.leader_of(*place)
            if leader == NOBODY:
                self.client.refresh()
            elif leader not in self.sessions:
                self.sessions[leader] = NodeSession(leader)

    def _step(self, session: NodeSession) -> None:
        quiet = self.setting.quiet
        if session.epoch == 0 and any(session.held.values()) and self.rng.random() < 0.5:
            session.held = {}  # as a decent client does; others acknowledge in the new session
        draw = self.rng.random()
        if session.epoch > 0 and not quiet and draw < 0.02 * self.wild:
            self._acknowledge(session, self._choose_said(session), final=True)
        elif session.epoch > 0 and session.said and not quiet and draw < 0.1 * self.wild:
            self._acknowledge(session, session.said)  # once more
        elif session.epoch > 0 and session.held and not quiet and draw > 0.93:
            self._renew(session)
        elif session.epoch > 0 and session.held and draw < 0.55:
            self._acknowledge(session, self._choose_said(session))
        elif session.count < HELD_MAX:
            self._fetch(session)

    def _choose_said(self, session: NodeSession) -> Said:
        said: Said = {}
        for place, offsets in sorted(session.held.items()):
            chosen: dict[int, int] = {}
            one_kind = self._kind() if self.rng.random() < 0.5 else None
            for offset in sorted(offsets):
                if self.setting.quiet or self.rng.random() < 0.8:
                    kind = one_kind if one_kind is not None else self._kind()
                    chosen[offset] = kind if offsets[offset] else GAP
            if chosen:
                said[place] = chosen
        return said

    def _kind(self) -> int:
        draw = self.rng.random()
        if self.setting.quiet or draw < 0.65:
            return ACCEPT
        return RELEASE if draw < 0.92 else REJECT

    def _key(self, place: Place) -> SharePartitionKey:
        return (self.group_id, *place)

    # Requests

    def _fetch(self, session: NodeSession) -> None:
        wanted = {place for place in self.assigned if self.client.leader_of(*place) == session.node_id}
        said = self._choose_said(session) if session.epoch > 0 and self.rng.random() < 0.5 else {}
        if not wanted and not said:
            return
        added = wanted - session.places if session.epoch > 0 else wanted
        forgotten = session.places - wanted
        rows: dict[Place, list[tuple[int, int, list[int]]]] = {place: [] for place in added}
        rows.update({place: batches_of(offsets) for place, offsets in said.items()})
        quiet = self.setting.quiet
        version = 2 if self.by_record else self.rng.choice((1, 2))
        request = fetch_request.ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=self.rng.choice((0, 50, 300)),
            min_bytes=self.rng.choice((0, 1, 1, 500)),
            max_bytes=1 << 20 if quiet else self.rng.choice((1, 300, 1 << 20)),
            max_records=50 if quiet else self.rng.choice((1, 3, 10, 50)),
            batch_size=self.rng.choice((1, 5, 50)),
            share_acquire_mode=1 if self.by_record else 0,
            topics=fetch_topics(rows),
            forgotten_topics_data=[
                fetch_request.ForgottenTopic(topic_id, [index]) for topic_id, index in sorted(forgotten)
            ],
        )
        session.places = wanted
        self._send(session, request, version, said)

    def _acknowledge(self, session: NodeSession, said: Said, *, final: bool = False) -> None:
        if not said and not final:
            return
        epoch = -1 if final else session.epoch
        request = acknowledge_request.ShareAcknowledgeRequest(
            self.group_id, self.member_id, epoch, False, acknowledge_topics(said)
        )
        self._send(session, request, self.rng.choice((1, 2)), said)

    def _renew(self, session: NodeSession) -> None:
        said = {place: dict.fromkeys(offsets, RENEW) for place, offsets in session.held.items() if offsets}
        request = acknowledge_request.ShareAcknowledgeRequest(
            self.group_id, self.member_id, session.epoch, True, acknowledge_topics(said)
        )
        self._send(session, request, 2, said)

    def _send(self, session: NodeSession, request: Message, version: int, said: Said) -> None:
        session.busy = True
        ledger = self.setting.ledger
        sent: dict[Place, Sent] = {}
        renews = False
        for place, offsets in said.items():
            sent[place] = Sent(ledger.share(self._key(place)).generation, self.world.now_ms)
            for offset, kind in offsets.items():
                renews = renews or kind == RENEW
                if kind != RENEW:
                    ledger.on_sent(self._key(place), offset, kind, self.member_id)
        if not renews:
            for place, offsets in said.items():
                for offset in offsets:
                    session.held.get(place, {}).pop(offset, None)
            session.said = said
        life, epoch = self.life, session.epoch
        is_final = isinstance(request, acknowledge_request.ShareAcknowledgeRequest) and request.share_session_epoch < 0

        def on_response(response: Message | None) -> None:
            if life == self.life and self.sessions.get(session.node_id) is session:
                self._on_response(session, epoch, is_final, response, said, sent)
            elif response is not None:
                self._take_results(response, said, sent)

        self.client.ask(session.node_id, request, version, on_response)

    # Responses

    def _on_response(
        self,
        session: NodeSession,
        epoch: int,
        is_final: bool,
        response: Message | None,
        said: Said,
        sent: dict[Place, Sent],
    ) -> None:
        session.busy = False
        if response is None:
            session.lose()
            self.client.refresh()
            return
        assert isinstance(response, (ShareFetchResponse, ShareAcknowledgeResponse))
        if response.error_code in LOST or is_final:
            held = session.held
            session.lose()
            if response.error_code in LOST and self.rng.random() < 0.5:
                session.held = held
            if response.error_code in LOST:
                return
        if response.error_code != errors.NONE:
            name = errors.error_name(response.error_code)
            raise Violation(f"a request of a share session is answered: {self.member_id} got {name}")
        if session.epoch == epoch and not is_final:
            session.epoch += 1
        self._take_results(response, said, sent)
        if isinstance(response, ShareFetchResponse):
            for topic in response.responses:
                for row in topic.partitions:
                    self._on_fetched(session, (topic.topic_id, row.partition_index), row)

    def _take_results(self, response: Message, said: Said, sent: dict[Place, Sent]) -> None:
        if isinstance(response, ShareFetchResponse):
            codes = {
                (topic.topic_id, row.partition_index): row.acknowledge_error_code
                for topic in response.responses
                for row in topic.partitions
            }
        else:
            assert isinstance(response, ShareAcknowledgeResponse)
            codes = {
                (topic.topic_id, row.partition_index): row.error_code
                for topic in response.responses
                for row in topic.partitions
            }
        if response.error_code != errors.NONE:
            return
        for place, offsets in said.items():
            code = codes.get(place)
            if code is None:
                raise Violation(f"every acknowledgement is answered: {self.member_id} heard nothing of {place[1]}")
            if code not in (errors.NONE, *ACKNOWLEDGE_ERRORS):
                # Kafka's words for offsets behind everything that was delivered: the leader has loaded the state anew.
                if code != errors.INVALID_REQUEST:
                    raise Violation(f"an acknowledgement is answered: {self.member_id} got {errors.error_name(code)}")
            if code == errors.NONE:
                for offset, kind in offsets.items():
                    self.setting.ledger.on_told(self._key(place), offset, kind, sent[place])
            else:
                self.setting.refused += 1
                self.client.refresh()

    def _on_fetched(self, session: NodeSession, place: Place, row: PartitionData) -> None:
        if row.error_code != errors.NONE:
            if row.error_code not in FETCH_ERRORS:
                raise Violation(f"a fetch is answered: {self.member_id} got {errors.error_name(row.error_code)}")
            self.client.refresh()
            return
        if not row.acquired_records:
            return
        data = row.records.to_bytes() if isinstance(row.records, MemoryRecords) else b""
        found = self._records_in(place, data)
        for acquired in row.acquired_records:
            for offset in range(acquired.first_offset, acquired.last_offset + 1):
                self._on_record(session, place, offset, offset in found)

    def _records_in(self, place: Place, data: bytes) -> set[int]:
        name = self.setting.ledger.name_of(self._key(place))
        found: set[int] = set()
        for header in split_batches(data, 0, len(data)):
            if not has_valid_crc(data, header):
                raise Violation(f"no corrupt batch is served: {name} offset {header.base_offset}")
            if not header.is_control:
                found.update(record.offset for record in read_records(data, header))
        return found

    def _on_record(self, session: NodeSession, place: Place, offset: int, is_there: bool) -> None:
        self.setting.fetched_records += 1
        session.held.setdefault(place, {})[offset] = is_there
        topic = self.setting.model.by_id(place[0])
        if topic is None:
            return
        where = f"{self.setting.ledger.name_of(self._key(place))} offset {offset}"
        log = self.setting.ledger.log_of(topic.name, place[1])
        if not is_there:
            if offset >= log.end:
                self.setting.checks.look_at_all()
            if offset in log.data and not self.setting.is_compacted(topic.name):
                raise Violation(f"what is acquired is delivered: {where} is missing for {self.member_id}")
        elif self.setting.is_read_committed(self.group_id):
            if offset >= log.end or log.is_undecided(offset):
                self.setting.checks.look_at_all()
            if offset in log.aborted or log.is_undecided(offset):
                raise Violation(f"no aborted record is delivered: {where} to {self.member_id}")


class Stranger:
    """Acknowledges what it never got: nothing may come of it."""

    def __init__(self, setting: ShareWorld, group_id: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.group_id = group_id
        self.client = ClusterClient(setting, f"stranger of {group_id}")
        self.rng = self.client.rng
        self.busy = False
        self.epochs: dict[int, int] = {}
        self.world.schedule(500, self.tick)

    def tick(self) -> None:
        if self.setting.finished or self.setting.quiet:
            return
        self.world.schedule(self.rng.randint(50, 400), self.tick)
        topics = [topic for topic in self.setting.model.present() if not topic.transient]
        if self.busy or not topics or not self.setting.is_begun:
            return
        topic = self.rng.choice(topics)
        place = (topic.topic_id, self.rng.randrange(len(topic.partitions)))
        node_id = self.client.leader_of(*place)
        if node_id == NOBODY:
            self.client.refresh()
            return
        self.busy = True
        if self.epochs.get(node_id, 0) == 0:
            opening = fetch_request.ShareFetchRequest(self.group_id, "stranger", 0, topics=fetch_topics({place: []}))
            self.client.ask(node_id, opening, 2, lambda response: self._on_opened(node_id, response))
            return
        end = self.setting.ledger.log_of(topic.name, place[1]).end
        first = self.rng.randint(max(0, end - 40), end + 2)
        kind = self.rng.choice((ACCEPT, RELEASE, REJECT, GAP))
        said = {place: dict.fromkeys(range(first, first + self.rng.choice((1, 3))), kind)}
        request = acknowledge_request.ShareAcknowledgeRequest(
            self.group_id, "stranger", self.epochs[node_id], False, acknowledge_topics(said)
        )
        sent_ms = self.world.now_ms
        self.client.ask(
            node_id, request, 2, lambda response: self._on_response(node_id, place, first, sent_ms, response)
        )

    def _on_opened(self, node_id: int, response: Message | None) -> None:
        self.busy = False
        if isinstance(response, ShareFetchResponse) and response.error_code == errors.NONE:
            self.epochs[node_id] = 1

    def _on_response(self, node_id: int, place: Place, first: int, sent_ms: int, response: Message | None) -> None:
        self.busy = False
        self.client.refresh()
        if not isinstance(response, ShareAcknowledgeResponse) or response.error_code != errors.NONE:
            self.epochs[node_id] = 0
            return
        self.epochs[node_id] += 1
        self.setting.strange_requests += 1
        key = (self.group_id, *place)
        done = self.setting.share_checks.is_below_a_start(key, first, sent_ms)
        if response.responses[0].partitions[0].error_code == errors.NONE and not done:
            if not self.setting.ledger.share(key).is_done(first):
                name = self.setting.ledger.name_of(key)
                raise Violation(f"nobody acknowledges what it never got: {name} offset {first}")


def ignore(response: Message | None) -> None:
    """Whoever is gone does not care."""


def batches_of(offsets: dict[int, int]) -> list[tuple[int, int, list[int]]]:
    """Neighbours together: one type if they are of one type, else one for each."""
    found: list[tuple[int, int, list[int]]] = []
    for offset, kind in sorted(offsets.items()):
        if found and found[-1][1] + 1 == offset:
            first, _, kinds = found[-1]
            found[-1] = (first, offset, [*kinds, kind])
        else:
            found.append((offset, offset, [kind]))
    return [(first, last, kinds[:1] if len(set(kinds)) == 1 else kinds) for first, last, kinds in found]


def fetch_topics(rows: dict[Place, list[tuple[int, int, list[int]]]]) -> list[fetch_request.FetchTopic]:
    topics: dict[bytes, fetch_request.FetchTopic] = {}
    for place, batches in sorted(rows.items()):
        topic = topics.setdefault(place[0], fetch_request.FetchTopic(place[0]))
        entries = [fetch_request.AcknowledgementBatch(*batch) for batch in batches]
        topic.partitions.append(fetch_request.FetchPartition(place[1], entries))
    return list(topics.values())


def acknowledge_topics(said: Said) -> list[acknowledge_request.AcknowledgeTopic]:
    topics: dict[bytes, acknowledge_request.AcknowledgeTopic] = {}
    for place, offsets in sorted(said.items()):
        topic = topics.setdefault(place[0], acknowledge_request.AcknowledgeTopic(place[0]))
        entries = [acknowledge_request.AcknowledgementBatch(*batch) for batch in batches_of(offsets)]
        topic.partitions.append(acknowledge_request.AcknowledgePartition(place[1], entries))
    return list(topics.values())
