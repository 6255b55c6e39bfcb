"""What the active controller counts of its clients' changes, under Kafka's names."""

from __future__ import annotations

import heapq
from urllib.parse import quote

from moldau.controller.controller import Controller
from moldau.server.metrics.metric import GAUGE, Metric

ENTITIES_SHOWN_MAX = 100
"""Those that have the fewest tokens left."""

PREFIX = "kafka_server_controllermutation"


def mutation_metrics(controller: Controller | None, now_ms: int) -> list[Metric]:
    tokens = Metric(f"{PREFIX}_tokens", GAUGE, "Partitions that a client may still change; less than 0 is owed")
    rate = Metric(f"{PREFIX}_mutation_rate", GAUGE, "Partitions a second that a client creates and deletes")
    throttle = Metric(f"{PREFIX}_throttle_time", GAUGE, "Average ms that a client was told to wait, if it was")
    if controller is not None:
        usages = controller.mutations.usages
        shown = heapq.nsmallest(ENTITIES_SHOWN_MAX, usages, key=lambda tags: usages[tags].bucket.tokens(now_ms))
        for tags in shown:
            usage = usages[tags]
            labels = (("user", quote(tags[0], safe="")), ("client_id", tags[1]))
            tokens.values[labels] = round(usage.bucket.tokens(now_ms), 3)
            rate.values[labels] = round(usage.rate.per_second(now_ms), 3)
            average_ms = usage.throttle_time.average_ms(now_ms)
            if average_ms == average_ms:
                throttle.values[labels] = round(average_ms, 3)
    return [tokens, rate, throttle]
