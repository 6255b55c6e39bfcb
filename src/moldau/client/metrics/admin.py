"""An admin client's metrics under Kafka's names: those of its connections and requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.metrics.names import Metrics
from moldau.client.metrics.network import add_app_info, add_network
from moldau.client.metrics.table import Table

if TYPE_CHECKING:
    from moldau.client.connection.cluster import Cluster


def admin_metrics(client_id: str, cluster: Cluster, started_wall_ms: int) -> Metrics:
    table = Table(cluster.window, client_id, cluster.network.now_ms())
    add_app_info(table, started_wall_ms)
    add_network(table, cluster, "admin-client-metrics", "admin-client-node-metrics")
    return table.finish()
