"""All share partitions that this broker leads, and the share sessions of its clients.

A share partition is made by the first fetch and forgotten when its leadership, its topic, the feature or the last
session of its group on this broker goes. Kafka: SharePartitionManager, SharePartitionCache.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import SHARE_VERSION
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import BROKER_RESOURCE, GROUP_RESOURCE
from moldau.node.context import ClientContext
from moldau.node.replicas import Replicas
from moldau.node.share.dead_letters import DeadLetters
from moldau.node.share.partition import CLOSED, SharePartition
from moldau.node.share.sessions import SessionKey, ShareSession, ShareSessions
from moldau.node.share.settings import ShareSettings
from moldau.node.share.states import ShareStates
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.records.clocks import NEVER_MS
from moldau.replication.partition import Partition


class SharePartitions:
    """See the module."""

    def __init__(self, config: BrokerConfig, replicas: Replicas, states: ShareStates, letters: DeadLetters) -> None:
        self.letters = letters
        self.settings = ShareSettings(config)
        self.sessions = ShareSessions(self.settings.sessions_max)
        letters.settings = self.settings
        self.found: dict[SharePartitionKey, SharePartition] = {}
        self.states = states
        self.counts = letters.counts
        self.level = 0
        self.is_enabled = False
        self._replicas = replicas
        self._image = MetadataImage()
        self._due_ms = NEVER_MS
        self.on_deadline: Callable[[int], None] | None = None
        self._connections: dict[ClientContext, HeldSessions] = {}

    def update_config(self, config: BrokerConfig) -> None:
        self.settings = ShareSettings(config)
        self.sessions.sessions_max = self.settings.sessions_max
        self.letters.settings = self.settings
        self._configure_all()

    def _configure_all(self) -> None:
        for one in self.found.values():
            one.configure(self.settings, self._image)

    # Following the metadata

    def start(self, image: MetadataImage) -> None:
        self._image = image
        self.level = image.features.get(SHARE_VERSION, 0)
        self.is_enabled = self.level >= 1

    def apply(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> None:
        level = self.level
        self.start(image)
        if not self.is_enabled:
            self.sessions.sessions.clear()
        for one in list(self.found.values()):
            if not self.is_enabled or one.key[1] not in image.topics_by_id:
                one.close(KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION), now_ms)
            elif not one.is_current():
                one.close(KafkaError(errors.NOT_LEADER_OR_FOLLOWER), now_ms)
        if level != self.level or any(kind in (GROUP_RESOURCE, BROKER_RESOURCE) for kind, _ in delta.changed_configs):
            self._configure_all()

    # Finding and forgetting

    def find(self, key: SharePartitionKey) -> SharePartition | None:
        one = self.found.get(key)
        return None if one is None or one.state == CLOSED else one

    def find_or_load(self, key: SharePartitionKey, partition: Partition, now_ms: int) -> SharePartition:
        """Raises KafkaError when this broker does not lead the partition."""
        one = self.find(key)
        if one is not None:
            if one.is_kept_for_letters:
                # Offsets may have been altered meanwhile. What is loaded tells which dead letters are missing.
                one.close(KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION), now_ms)
            elif one.is_current():
                one.is_unused = False
                return one
            else:
                one.close(KafkaError(errors.NOT_LEADER_OR_FOLLOWER), now_ms)
        partition.check_leader(-1)
        one = SharePartition(key, partition, self.states, self._on_closed, self._on_lock, self.letters.add)
        one.on_loaded = self.counts.load_ms.add
        one.configure(self.settings, self._image)
        self.found[key] = one
        one.load(now_ms)
        return one

    def _on_closed(self, one: SharePartition) -> None:
        if self.found.get(one.key) is one:
            del self.found[one.key]

    # Sessions

    def hold(self, context: ClientContext, session: ShareSession) -> None:
        """The session ends with the connection, unless the member has begun a newer one on another."""
        held = self._connections.get(context)
        if held is None:
            held = self._connections[context] = HeldSessions(self, context)
            context.when_closed(held.on_closed)
        known = self.sessions.sessions
        held.sessions = {key: one for key, one in held.sessions.items() if known.get(key) is one}
        held.sessions[session.key] = session

    def on_connection_closed(self, context: ClientContext, now_ms: int) -> None:
        held = self._connections.pop(context, None)
        if held is not None:
            for session in held.sessions.values():
                if self.sessions.sessions.get(session.key) is session:
                    self.counts.lost_sessions_total += 1
                self.end_session(session, now_ms)

    def end_session(self, session: ShareSession, now_ms: int) -> None:
        """What the member holds in the session's partitions is given back."""
        if not self.sessions.end(session):
            return
        group_id, member_id = session.key
        for topic_id, index in session.partitions:
            one = self.find((group_id, topic_id, index))
            if one is not None:
                one.release(member_id, now_ms)
        if not self.sessions.has_group(group_id):
            self._forget_group(group_id, now_ms)

    def _forget_group(self, group_id: str, now_ms: int) -> None:
        """Nobody of the group is here any more: whoever comes next finds what is stored then, as offsets may have been
        altered. What is still being stored keeps the share partition a while."""
        self.counts.groups.pop(group_id, None)
        for one in [one for key, one in self.found.items() if key[0] == group_id]:
            one.is_unused = True
            one.retire_if_unused(now_ms)

    # Time

    def _on_lock(self, due_ms: int) -> None:
        if due_ms < self._due_ms:
            self._due_ms = due_ms
            if self.on_deadline is not None:
                self.on_deadline(due_ms)

    def poll(self, now_ms: int) -> int:
        if now_ms >= self._due_ms:
            for one in list(self.found.values()):
                before = one.timeouts_total
                one.expire_locks(now_ms)
                self.counts.lock_timeouts_total += one.timeouts_total - before
            self._due_ms = min([one.window.next_lock_ms() for one in self.found.values()], default=NEVER_MS)
        return self._due_ms


class HeldSessions:
    """What was opened over one connection, the newest of each member; some may be over."""

    def __init__(self, owner: SharePartitions, context: ClientContext) -> None:
        self._owner = owner
        self._context = context
        self.sessions: dict[SessionKey, ShareSession] = {}

    def on_closed(self, now_ms: int) -> None:
        self._owner.on_connection_closed(self._context, now_ms)
