"""The quota of changes: how many partitions a client may create and delete in a second (KIP-599).

Each entity has a bucket of tokens, a partition costs one. Who asks in a version that knows the error is refused while
tokens are owed (strict); who asks in an older one gets everything and is told to wait (permissive). What one change
takes may exceed what is there: the next one pays for it. Buckets live as long as the controller is active; the next one
begins with full ones. Kafka: ControllerMutationQuotaManager.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moldau.controller.state import ControllerState
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.quota.connection_quotas import ThrottleTime
from moldau.quota.entities import CONTROLLER_MUTATION_RATE, QuotaTable, Tags
from moldau.quota.rates import WindowedRate
from moldau.quota.token_bucket import TokenBucket

BUCKETS_MAX: Final = 10_000


@dataclass(slots=True, frozen=True)
class Asker:
    """In whose name topics are changed, and whether it knows the error that refuses it."""

    user: str
    client_id: str
    is_strict: bool


class Usage:
    """What one entity has changed lately and may change now."""

    def __init__(self, bucket: TokenBucket, rate: WindowedRate) -> None:
        self.bucket = bucket
        self.rate = rate
        self.throttle_time = ThrottleTime()


class MutationBudget:
    """For one request. `throttle_ms` is what its response says."""

    def __init__(self, usage: Usage | None, is_strict: bool) -> None:
        self._usage = usage
        self._is_strict = is_strict
        self.throttle_ms = 0

    def charge(self, partitions: int, now_ms: int) -> None:
        """KafkaError if the change is refused; then nothing is taken for it."""
        usage = self._usage
        if usage is None:
            return
        bucket = usage.bucket
        if self._is_strict and bucket.is_exhausted(now_ms):
            self.throttle_ms = bucket.wait_ms(now_ms)
            raise KafkaError(errors.THROTTLING_QUOTA_EXCEEDED)
        bucket.take(partitions, now_ms)
        usage.rate.record(partitions, now_ms)
        if not self._is_strict:
            self.throttle_ms = bucket.wait_ms(now_ms)

    def close(self, now_ms: int) -> int:
        """The request is decided: returns how long its client has to wait."""
        if self._usage is not None:
            self._usage.throttle_time.record(self.throttle_ms, now_ms)
        return self.throttle_ms


FREE: Final = MutationBudget(None, False)
"""For what nobody pays for."""


class Mutations:
    """The buckets of all entities that have a quota and changed something."""

    def __init__(self, state: ControllerState) -> None:
        config = state.config
        self._window_count = config.get_int("controller.quota.window.num")
        self._window_ms = config.get_int("controller.quota.window.size.seconds") * 1000
        self._table = QuotaTable(state.image.client_quotas)
        self.usages: dict[Tags, Usage] = {}

    def on_replayed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for entity in delta.changed_quotas:
            self._table.change(entity, image.client_quotas.get(entity))

    def budget(self, asker: Asker | None, now_ms: int) -> MutationBudget:
        if asker is None:
            return FREE
        match = self._table.resolve(CONTROLLER_MUTATION_RATE, asker.user, asker.client_id)
        if not match.is_limited:
            # Who has no limit meanwhile begins anew with the next one.
            self.usages.pop(match.tags, None)
            return FREE
        usage = self.usages.get(match.tags)
        if usage is None:
            self._make_room(now_ms)
            bucket = TokenBucket(match.bound, self._window_count, self._window_ms, now_ms)
            usage = self.usages[match.tags] = Usage(bucket, WindowedRate(self._window_count, self._window_ms))
        elif usage.bucket.rate != match.bound:
            usage.bucket.change_rate(match.bound, now_ms)
        return MutationBudget(usage, asker.is_strict)

    def _make_room(self, now_ms: int) -> None:
        """A full bucket is as good as none. If all are in use, the oldest goes: clients choose their own ids."""
        usages = self.usages
        if len(usages) < BUCKETS_MAX:
            return
        full = [tags for tags, usage in usages.items() if usage.bucket.tokens(now_ms) >= usage.bucket.burst]
        for tags in full or [next(iter(usages))]:
            del usages[tags]
