"""What quotas count, under the names that Kafka's beans get: `kafka.server:type=Produce,user=…,client-id=…`.

Both labels are always there; a part that does not belong to the key of the budget is empty. User names are sanitised as
Kafka does it.
"""

from __future__ import annotations

from urllib.parse import quote

from moldau.quota.client_quotas import NS_PER_PERCENT, Budget, ClientQuotas, QuotaKind
from moldau.server.metrics.metric import COUNTER, GAUGE, Labels, Metric

ROWS_MAX = 1000
"""Client ids are whatever clients say: there are rows for those who use most, so many and no more."""


def quota_metrics(quotas: ClientQuotas, now_ms: int) -> list[Metric]:
    metrics: list[Metric] = []
    for kind, rate_name, about in (
        (quotas.produce, "byte_rate", "Bytes per second of produce requests, over the quota window"),
        (quotas.fetch, "byte_rate", "Bytes per second of responses to consumers, over the quota window"),
        (quotas.request, "request_time", "Percent of one thread, over the quota window"),
    ):
        metrics += kind_metrics(quotas, kind, rate_name, about, now_ms)
    exempt = quotas.exempt.per_second(now_ms) / NS_PER_PERCENT
    about = "Percent of one thread, for requests that no quota limits; counted while there is a quota of request time"
    metrics.append(Metric("kafka_server_request_exempt_request_time", GAUGE, about, round(exempt, 6)))
    return metrics


def kind_metrics(quotas: ClientQuotas, kind: QuotaKind, rate_name: str, about: str, now_ms: int) -> list[Metric]:
    prefix = f"kafka_server_{kind.name.lower()}"
    rates = Metric(f"{prefix}_{rate_name}", GAUGE, about)
    limits = Metric(f"moldau_quota_{kind.name.lower()}_limit", GAUGE, "The limit of those who have one, in its unit")
    waits = Metric(f"{prefix}_throttle_time", GAUGE, "Average wait in ms of those who had to wait in the last minute")
    waiting = Metric(
        f"moldau_quota_{kind.name.lower()}_wait_ms", GAUGE, "How long the last one who waits now still has to"
    )
    budgets = quotas.current(kind)
    for budget in sorted(budgets, key=lambda one: one.rate.per_second(now_ms), reverse=True)[:ROWS_MAX]:
        labels = labels_of(budget)
        rates.values[labels] = round(budget.rate.per_second(now_ms) / kind.scale, 6)
        if budget.level:
            limits.values[labels] = budget.bound / kind.scale
        average_ms = budget.throttles.average_ms(now_ms) if budget.throttles is not None else None
        if average_ms is not None:
            waits.values[labels] = round(average_ms, 3)
        if budget.throttled_until_ms > now_ms:
            waiting.values[labels] = budget.throttled_until_ms - now_ms
    size = Metric(f"{prefix}_queue_size", GAUGE, "Connections that wait now", kind.queue_size(now_ms))
    total = Metric(
        f"moldau_quota_{kind.name.lower()}_throttles_total",
        COUNTER,
        "Responses with a throttle time",
        kind.throttled_total,
    )
    count = Metric(f"moldau_quota_{kind.name.lower()}_budgets", GAUGE, "Clients and users counted apart", len(budgets))
    return [rates, waits, size, limits, waiting, total, count]


def labels_of(budget: Budget) -> Labels:
    return (("user", sanitised(budget.tags[0])), ("client_id", budget.tags[1]))


def sanitised(user: str) -> str:
    return quote(user, safe="").replace("~", "%7E")
