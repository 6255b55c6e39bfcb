"""What the authorizer counts, under the names that the beans of Kafka's authorizer get."""

from __future__ import annotations

from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.node.authorization import AUTHORIZER_KEY
from moldau.node.node import Node
from moldau.server.metrics.metric import COUNTER, GAUGE, Labels, Metric

PREFIX = "kafka_server_plugins_authorization"


def authorizer_metrics(node: Node, now_ms: int) -> list[Metric]:
    """Nothing where there is no authorizer, as in Kafka."""
    rights = node.rights
    if rights is None:
        return []
    labels: Labels = (
        ("config", AUTHORIZER_KEY),
        ("class", STANDARD_AUTHORIZER.rpartition(".")[2]),
        ("role", "broker" if node.is_broker else "controller"),
    )
    metrics = []
    allowed, denied = (60 * rate.per_second(now_ms) for rate in (rights.allowed, rights.denied))
    for name, per_minute, about in (
        ("request", allowed + denied, "Decisions about rights per minute"),
        ("allowed", allowed, "Decisions per minute that allowed something"),
        ("denied", denied, "Decisions per minute that refused something"),
    ):
        metric = Metric(f"{PREFIX}_{name}_rate_per_minute", GAUGE, about)
        metric.values[labels] = round(per_minute, 3)
        metrics.append(metric)
    count = Metric("kafka_server_plugins_acls_total_count", GAUGE, "ACLs that this node has in memory")
    count.values[labels] = rights.authorizer.acl_count
    left_out = Metric(
        "moldau_audit_left_out_total",
        COUNTER,
        "Decisions that are not in the audit log because there were too many in a second",
        rights.audit.left_out_total,
    )
    return [*metrics, count, left_out]
