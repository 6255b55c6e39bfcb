"""A quota holds on every broker: on the one that takes over from a killed leader, and on the one that comes back."""

from __future__ import annotations

from moldau.client import Producer
from moldau.client.admin import QuotaEntity
from tests.cluster.cluster_nodes import Cluster, wait_for
from tests.cluster.conftest import TOPIC
from tests.pace import patience_ms

CLIENT_ID = "limited"
BYTES_PER_SECOND = 50_000
RECORD = b"x" * 10_000
# Ten seconds' worth may come at once, on each broker.
BURST_RECORDS = 10 * BYTES_PER_SECOND // len(RECORD)


def set_quota(cluster: Cluster, value: float | None) -> None:
    entity = QuotaEntity.of({"client-id": CLIENT_ID})
    for outcome in cluster.admin.alter_client_quotas({entity: {"producer_byte_rate": value}}).values():
        outcome.get()


def throttled_ms(cluster: Cluster, records: int) -> float:
    """The longest wait that a producer was told of that sends so many to partition 0."""
    with Producer(
        bootstrap_servers=cluster.bootstrap, client_id=CLIENT_ID, batch_size=1, delivery_timeout_ms=patience_ms(120_000)
    ) as producer:
        for _ in range(records):
            producer.send(TOPIC, RECORD, partition=0)
        producer.flush()
        return producer.metrics()["produce-throttle-time-max"]


def test_who_takes_over_from_a_leader_enforces_its_limits(cluster: Cluster) -> None:
    set_quota(cluster, BYTES_PER_SECOND)
    first = cluster.leaders(TOPIC)[0]
    assert throttled_ms(cluster, BURST_RECORDS * 5 // 4) > 0
    cluster.kill(first)
    wait_for(lambda: cluster.leaders(TOPIC)[0] not in (first, -1), 60, "somebody else leads")
    assert throttled_ms(cluster, BURST_RECORDS * 5 // 4) > 0, "it has not counted before, and has the same limit"
    cluster.start(first)
    cluster.await_full_isr(TOPIC)
    set_quota(cluster, None)
    wait_for(lambda: throttled_ms(cluster, 5) == 0, 60, "the removed quota is felt")
    assert throttled_ms(cluster, 3 * BURST_RECORDS) == 0
