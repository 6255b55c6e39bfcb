"""What clients used lately, and how long who used too much has to wait: bytes produced and fetched, request time.

One object per node. A kind of quota is off while no entity has a value for its key: then nothing is recorded for it and
nobody waits. While it is on, everybody is recorded, whether limited or not. What is recorded counts first and is
checked afterwards; nothing is refused. Kafka: ClientQuotaManager, ClientRequestQuotaManager. See docs/quotas.md.
"""

from __future__ import annotations

import heapq
from typing import Final

from moldau.quota.entities import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    UNLIMITED,
    Entity,
    KeyTable,
    QuotaTable,
    Tags,
)
from moldau.quota.rates import Samples, WindowedRate

IDLE_MS_MAX: Final = 3_600_000
SWEEP_MS: Final = 60_000
BUDGETS_MAX: Final = 50_000
"""Client ids are whatever clients say: so many budgets of a kind are kept and not more."""
WAITS_MAX: Final = 100_000
THROTTLE_MS_MAX: Final = 0x7FFFFFFF
# The average of the metric throttle-time: of the last two half minutes.
AVERAGE_SAMPLES: Final = 2
AVERAGE_SAMPLE_MS: Final = 30_000
NS_PER_PERCENT: Final = 10_000_000
"""One percent of a second."""


class ThrottleAverage:
    """How long those were who had to wait lately."""

    def __init__(self) -> None:
        self._sum = Samples(AVERAGE_SAMPLES, AVERAGE_SAMPLE_MS)
        self._count = Samples(AVERAGE_SAMPLES, AVERAGE_SAMPLE_MS)

    def record(self, throttle_ms: int, now_ms: int) -> None:
        for samples, value in ((self._sum, throttle_ms), (self._count, 1)):
            samples.record(value, now_ms)
            samples.forget_old(now_ms)

    def average_ms(self, now_ms: int) -> float | None:
        self._sum.forget_old(now_ms)
        self._count.forget_old(now_ms)
        return self._sum.total / self._count.total if self._count.total > 0 else None


class Budget:
    """What all clients with the same tags may use together."""

    def __init__(self, tags: Tags, count: int, sample_ms: int) -> None:
        self.tags = tags
        self.bound = UNLIMITED
        self.level = 0
        self.rate = WindowedRate(count, sample_ms)
        self.last_ms = 0
        self.throttles: ThrottleAverage | None = None
        self.throttled_until_ms = 0
        self._free = UNLIMITED
        """A rate is never measured over less than all whole samples, so up to here nobody waits."""
        self._measure_ms = 0

    def limit(self, level: int, bound: float) -> None:
        self.level = level
        self.bound = bound
        self._free = bound * (self.rate.count - 1) * self.rate.sample_ms / 1000

    def record(self, value: int, now_ms: int) -> int:
        """Returns how long whoever used this has to wait now."""
        self.last_ms = now_ms
        rate = self.rate
        rate.record(value, now_ms)
        if rate.total <= self._free and now_ms < self._measure_ms:
            return 0
        self._measure_ms = now_ms + rate.sample_ms  # not later, or old samples would pile up
        return rate.excess_ms(self.bound, now_ms)


class QuotaKind:
    """One kind of quota: its budgets, and who waits for it now."""

    def __init__(self, name: str, key: str, count: int, sample_ms: int, scale: int, throttle_ms_max: int) -> None:
        self.name = name
        self.key = key
        self.is_on = False
        self.count = count
        self.sample_ms = sample_ms
        self.scale = scale
        """What is recorded is so many times finer than what the quota says."""
        self.throttle_ms_max = throttle_ms_max
        self.budgets: dict[Tags, Budget] = {}
        self.budgets_max = BUDGETS_MAX
        self.throttled_total = 0
        self.generation = 0
        """Of the budgets: one that was forgotten must not be used any more."""
        self._waits: list[int] = []

    def budget_of(self, table: KeyTable, user: str, client_id: str, now_ms: int) -> Budget:
        tags = table.tags_of(user, client_id)
        budget = self.budgets.get(tags)
        if budget is None:
            if len(self.budgets) >= self.budgets_max:
                self.make_room(now_ms)
            budget = self.budgets[tags] = Budget(tags, self.count, self.sample_ms)
            budget.last_ms = now_ms
        self.update_bound(budget, table)
        return budget

    def update_bound(self, budget: Budget, table: KeyTable) -> None:
        match = table.match(budget.tags)
        budget.limit(match.level, match.bound * self.scale if match.is_limited else UNLIMITED)

    def record(self, budget: Budget, value: int, now_ms: int) -> int:
        return min(budget.record(value, now_ms), self.throttle_ms_max)

    def note_throttle(self, budget: Budget, throttle_ms: int, now_ms: int) -> None:
        """A connection waits so long, because of this kind."""
        self.throttled_total += 1
        if budget.throttles is None:
            budget.throttles = ThrottleAverage()
        budget.throttles.record(throttle_ms, now_ms)
        budget.throttled_until_ms = max(budget.throttled_until_ms, now_ms + throttle_ms)
        self.queue_size(now_ms)
        if len(self._waits) < WAITS_MAX:
            heapq.heappush(self._waits, now_ms + throttle_ms)

    def queue_size(self, now_ms: int) -> int:
        """How many connections wait now; one that was closed meanwhile counts until its time is over."""
        waits = self._waits
        while waits and waits[0] <= now_ms:
            heapq.heappop(waits)
        return len(waits)

    def forget_idle(self, now_ms: int, idle_ms: int) -> None:
        old = [tags for tags, budget in self.budgets.items() if now_ms - budget.last_ms > idle_ms]
        self._forget(old)

    def make_room(self, now_ms: int) -> None:
        """First goes what has nothing left to remember; if that is not enough, a tenth of the others, the oldest."""
        self.forget_idle(now_ms, self.count * self.sample_ms)
        if len(self.budgets) >= self.budgets_max:
            by_age = sorted([(budget.last_ms, tags) for tags, budget in self.budgets.items()])
            self._forget([tags for _, tags in by_age[: self.budgets_max // 10]])

    def _forget(self, forgotten: list[Tags]) -> None:
        for tags in forgotten:
            del self.budgets[tags]
        if forgotten:
            self.generation += 1


class ClientBudgets:
    """The budgets of one connection, found once and kept until something changes."""

    def __init__(self, principal: str, client_id: str | None, generation: int) -> None:
        self.principal = principal
        self.client_id = client_id
        self.generation = generation
        self.produce: Budget | None = None
        self.fetch: Budget | None = None
        self.request: Budget | None = None


class ClientQuotas:
    """See the module. `is_on`: some kind is; who finds it False need not ask anything else."""

    def __init__(self, count: int = 11, sample_ms: int = 1000) -> None:
        self.table = QuotaTable()
        self.count = count
        self.sample_ms = sample_ms
        self.is_on = False
        self.measures_time = False
        """Whether those who handle requests are to measure what time they take."""
        self.produce = QuotaKind("Produce", PRODUCER_BYTE_RATE, count, sample_ms, 1, THROTTLE_MS_MAX)
        self.fetch = QuotaKind("Fetch", CONSUMER_BYTE_RATE, count, sample_ms, 1, THROTTLE_MS_MAX)
        self.request = QuotaKind("Request", REQUEST_PERCENTAGE, count, sample_ms, NS_PER_PERCENT, sample_ms)
        self.kinds = [self.produce, self.fetch, self.request]
        self.exempt = WindowedRate(count, sample_ms)
        self.turn_ms = 0
        """When this turn began, for what clients use: responses are often made in somebody else's turn, later than
        their request."""
        self._source: dict[Entity, dict[str, float]] = {}
        self.generation = 0
        """Goes up when budgets that were found before may not hold any more."""
        self._applied = 0
        self._sweep_ms = 0

    # Following the metadata

    def apply(
        self,
        quotas: dict[Entity, dict[str, float]],
        before: dict[Entity, dict[str, float]] | None = None,
        changed: list[Entity] | None = None,
    ) -> None:
        """The quotas of the newest image. With the image before and what changed since, only that is looked at."""
        if quotas is self._source:
            return
        if changed is not None and before is self._source:
            for entity in changed:
                self.table.change(entity, quotas.get(entity))
        else:
            self.table.replace(quotas)
        self._source = quotas
        for kind in self.kinds:
            kind.is_on = not self.table.keys[kind.key].is_empty
        self.measures_time = self.request.is_on
        self.is_on = self.produce.is_on or self.fetch.is_on or self.request.is_on
        self._applied += 1
        self._count_generation()

    def _count_generation(self) -> None:
        self.generation = self._applied + self.produce.generation + self.fetch.generation + self.request.generation

    def begin_turn(self, now_ms: int) -> None:
        self.turn_ms = now_ms

    def poll(self, now_ms: int) -> None:
        """Forgets from time to time who was not here for an hour."""
        if now_ms < self._sweep_ms:
            return
        self._sweep_ms = now_ms + SWEEP_MS
        for kind in self.kinds:
            kind.forget_idle(now_ms, IDLE_MS_MAX)
        self._count_generation()

    # What a request uses

    def budgets_of(self, known: ClientBudgets | None, principal: str, client_id: str | None) -> ClientBudgets:
        """The budgets of a client; those it had before, if they still hold."""
        if (
            known is not None
            and known.generation == self.generation
            and known.client_id == client_id
            and known.principal == principal
        ):
            return known
        user = principal.partition(":")[2]
        client = client_id or ""
        now_ms = self.turn_ms
        found = ClientBudgets(principal, client_id, 0)
        keys = self.table.keys
        if self.produce.is_on:
            found.produce = self.produce.budget_of(keys[PRODUCER_BYTE_RATE], user, client, now_ms)
        if self.fetch.is_on:
            found.fetch = self.fetch.budget_of(keys[CONSUMER_BYTE_RATE], user, client, now_ms)
        if self.request.is_on:
            found.request = self.request.budget_of(keys[REQUEST_PERCENTAGE], user, client, now_ms)
        self._count_generation()  # room may have been made for one of them
        found.generation = self.generation
        return found

    def record_produce(self, budgets: ClientBudgets, size: int, now_ms: int) -> int:
        """The bytes of a produce request; returns the throttle time."""
        budget = budgets.produce
        return 0 if budget is None else self.produce.record(budget, size, now_ms)

    def record_fetch(self, budgets: ClientBudgets, size: int, now_ms: int) -> int:
        """The bytes of a response to a consumer, less than 0 to take some back; returns the throttle time."""
        budget = budgets.fetch
        return 0 if budget is None else self.fetch.record(budget, size, now_ms)

    def record_request(self, budgets: ClientBudgets, nanoseconds: int, now_ms: int) -> int:
        """Time spent on a client's requests; returns the throttle time, never more than one sample's."""
        budget = budgets.request
        return 0 if budget is None else self.request.record(budget, nanoseconds, now_ms)

    def record_exempt(self, nanoseconds: int, now_ms: int) -> None:
        """Time spent on requests that nobody waits for."""
        if self.request.is_on:
            self.exempt.record(nanoseconds, now_ms)
            self.exempt.forget_old(now_ms)

    def fetch_bytes_max(self, budgets: ClientBudgets) -> int:
        """More than this does not fit into all whole samples; -1: anything does."""
        budget = budgets.fetch
        if budget is None or budget.bound >= UNLIMITED:
            return -1
        return int(min(budget.bound * (self.count - 1) * self.sample_ms / 1000, float(THROTTLE_MS_MAX)))

    def throttled(
        self, budgets: ClientBudgets, bandwidth: QuotaKind | None, bandwidth_ms: int, request_ms: int, now_ms: int
    ) -> int:
        """Decides which kind a connection waits for, the longer one; returns how long."""
        if bandwidth_ms <= 0 and request_ms <= 0:
            return 0
        budget = budgets.fetch if bandwidth is self.fetch else budgets.produce
        if bandwidth is not None and budget is not None and bandwidth_ms > request_ms:
            bandwidth.note_throttle(budget, bandwidth_ms, now_ms)
            return bandwidth_ms
        if request_ms > 0 and budgets.request is not None:
            self.request.note_throttle(budgets.request, request_ms, now_ms)
        return request_ms

    # What is seen of it

    def current(self, kind: QuotaKind) -> list[Budget]:
        """All budgets of a kind, with the limits that hold now."""
        table = self.table.keys[kind.key]
        budgets = list(kind.budgets.values())
        for budget in budgets:
            kind.update_bound(budget, table)
        return budgets
