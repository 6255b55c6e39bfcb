"""The clients that sent telemetry requests to this broker: what each was told, and whether it may ask or push now.

A pure state machine: every verb has its time, and responds with an error code of the protocol. Bounds: so many
instances, the least recently used go first; so many on one connection; an instance ends with its connection, or when it
was silent for a minute or three intervals, whichever is more. The checks and their order are those of Kafka's
ClientMetricsManager.

    state of an instance            get                           push
    new                             a response                    checked, as after a long silence
    asked (get after last push)     throttled until an interval   accepted at any time: clients spread their first push
    pushed                          throttled until an interval   throttled until an interval, unless it is the last one
    117 or 76 was its last response a response at once            as before
    terminated (last push said so)  as before                     refused once; then it is as if it had not said so
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.protocol import errors
from moldau.protocol.uuids import METADATA_TOPIC_UUID, ZERO_UUID, random_uuid, uuid_to_text
from moldau.records.random_source import RandomSource
from moldau.telemetry.subscriptions import Request, Subscriptions

INSTANCES_MAX: Final = 16384
INSTANCES_PER_CONNECTION_MAX: Final = 16
SILENT_MS_MIN: Final = 60_000
SILENT_INTERVALS: Final = 3
CODECS_MAX: Final = 4
RESERVED: Final = (ZERO_UUID, METADATA_TOPIC_UUID)
LONG_AGO_MS: Final = -(1 << 62)
# After these a client has to ask anew at once.
ASKS_AGAIN: Final = (errors.UNKNOWN_SUBSCRIPTION_ID, errors.UNSUPPORTED_COMPRESSION_TYPE)


class Instance:
    """One client, as its connection told about it when it came."""

    def __init__(self, instance_id: bytes, connection: int, attributes: dict[str, str]) -> None:
        self.instance_id = instance_id
        self.text = uuid_to_text(instance_id)
        self.connection = connection
        self.attributes = attributes
        self.version = -1
        self.metrics: list[str] = []
        self.interval_ms = 0
        self.subscription_id = 0
        self.last_get_ms = LONG_AGO_MS
        self.last_push_ms = LONG_AGO_MS
        self.is_terminating = False
        self.last_error = errors.NONE
        self.expires_ms = 0
        self.pushes_total = 0
        self.bytes_total = 0
        self.throttled_total = 0

    @property
    def client_id(self) -> str:
        return self.attributes.get("client_id", "")

    def ask(self, request: Request, version: int) -> None:
        """What it is asked for has changed, or it is new: its clock starts again."""
        self.version = version
        self.metrics, self.interval_ms, self.subscription_id = request
        self.last_get_ms = self.last_push_ms = LONG_AGO_MS
        self.is_terminating = False
        self.last_error = errors.NONE

    def may_get(self, now_ms: int) -> bool:
        """Takes the time of the get if it may be."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) >= self.interval_ms:
            self.last_get_ms = now_ms
            return True
        return self.last_error in ASKS_AGAIN

    def may_push(self, now_ms: int) -> bool:
        """Takes the time of the push if it may be."""
        if self.last_get_ms > self.last_push_ms or now_ms - self.last_push_ms >= self.interval_ms:
            self.last_push_ms = now_ms
            return True
        return False


class Push(NamedTuple):
    """What a push says, besides the metrics themselves."""

    instance_id: bytes
    subscription_id: int
    is_terminating: bool
    codec: int
    size: int


class Instances:
    """All of a broker. `connection` is any number that no two open connections have in common."""

    def __init__(self, subscriptions: Subscriptions, rng: RandomSource, bytes_max: int) -> None:
        self.subscriptions = subscriptions
        self.bytes_max = bytes_max
        self.throttled_total = 0
        self.unknown_subscriptions_total = 0
        self._rng = rng
        # The least recently used first.
        self._by_id: dict[bytes, Instance] = {}
        self._by_connection: dict[int, list[bytes]] = {}
        self.ended: list[Instance] = []
        """Those that are no longer there, until somebody takes them."""

    def __len__(self) -> int:
        return len(self._by_id)

    def find(self, instance_id: bytes) -> Instance | None:
        return self._by_id.get(instance_id)

    def on_connection(self, connection: int) -> list[Instance]:
        return [self._by_id[each] for each in self._by_connection.get(connection, ())]

    def get(self, instance_id: bytes, connection: int, attributes: dict[str, str], now_ms: int) -> tuple[int, Instance]:
        """The subscription of a client; the zero uuid is a client that has no id yet."""
        if instance_id == ZERO_UUID:
            instance_id = self._new_id()
        instance = self._touch(instance_id, connection, attributes, now_ms)
        if not instance.may_get(now_ms):
            self._count_throttled(instance)
            return errors.THROTTLING_QUOTA_EXCEEDED, instance
        instance.last_error = errors.NONE
        return errors.NONE, instance

    def push(self, push: Push, connection: int, attributes: dict[str, str], now_ms: int) -> tuple[int, Instance | None]:
        """Whether what was pushed may be taken. Whoever takes it says afterwards what became of it: `taken`."""
        if push.instance_id in RESERVED:
            return errors.INVALID_REQUEST, None
        instance = self._touch(push.instance_id, connection, attributes, now_ms)
        code = self._check(push, instance, now_ms)
        instance.is_terminating = push.is_terminating
        instance.last_error = code
        return code, instance

    def taken(self, instance: Instance, code: int, size: int) -> None:
        """What was pushed is taken, or could not be."""
        instance.last_error = code
        if code == errors.NONE:
            instance.pushes_total += 1
            instance.bytes_total += size

    def on_closed(self, connection: int) -> None:
        for instance_id in self._by_connection.pop(connection, ()):
            self._end(instance_id)

    def expire(self, now_ms: int) -> None:
        """Forgets those that were silent for too long."""
        for instance in [each for each in self._by_id.values() if each.expires_ms <= now_ms]:
            self._leave_connection(instance)
            self._end(instance.instance_id)

    def take_ended(self) -> list[Instance]:
        ended, self.ended = self.ended, []
        return ended

    def _check(self, push: Push, instance: Instance, now_ms: int) -> int:
        if instance.is_terminating:
            return errors.INVALID_REQUEST
        if not instance.may_push(now_ms) and not push.is_terminating:
            self._count_throttled(instance)
            return errors.THROTTLING_QUOTA_EXCEEDED
        if push.subscription_id != instance.subscription_id:
            self.unknown_subscriptions_total += 1
            return errors.UNKNOWN_SUBSCRIPTION_ID
        if not 0 <= push.codec <= CODECS_MAX:
            return errors.UNSUPPORTED_COMPRESSION_TYPE
        if push.size > self.bytes_max:
            return errors.TELEMETRY_TOO_LARGE
        return errors.NONE

    def _touch(self, instance_id: bytes, connection: int, attributes: dict[str, str], now_ms: int) -> Instance:
        """The instance, made if it is new and brought up to date; it is now the most recently used one."""
        instance = self._by_id.pop(instance_id, None)
        if instance is None:
            attributes = {**attributes, "client_instance_id": uuid_to_text(instance_id)}
            instance = Instance(instance_id, connection, attributes)
            self._join_connection(instance)
        if instance.version != self.subscriptions.version:
            instance.ask(self.subscriptions.request_for(instance_id, instance.attributes), self.subscriptions.version)
        self._by_id[instance_id] = instance
        instance.expires_ms = now_ms + max(SILENT_MS_MIN, SILENT_INTERVALS * instance.interval_ms)
        if len(self._by_id) > INSTANCES_MAX:
            oldest = next(iter(self._by_id.values()))
            self._leave_connection(oldest)
            self._end(oldest.instance_id)
        assert len(self._by_id) <= INSTANCES_MAX
        return instance

    def _join_connection(self, instance: Instance) -> None:
        there = self._by_connection.setdefault(instance.connection, [])
        there.append(instance.instance_id)
        if len(there) > INSTANCES_PER_CONNECTION_MAX:
            self._end(there.pop(0))
        assert len(there) <= INSTANCES_PER_CONNECTION_MAX

    def _leave_connection(self, instance: Instance) -> None:
        there = self._by_connection.get(instance.connection)
        if there is not None:
            there.remove(instance.instance_id)
            if not there:
                del self._by_connection[instance.connection]

    def _end(self, instance_id: bytes) -> None:
        self.ended.append(self._by_id.pop(instance_id))

    def _new_id(self) -> bytes:
        while True:
            instance_id = random_uuid(self._rng.randbytes)
            if instance_id not in self._by_id:
                return instance_id

    def _count_throttled(self, instance: Instance) -> None:
        self.throttled_total += 1
        instance.throttled_total += 1
