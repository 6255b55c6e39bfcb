"""The metadata quorum as an admin client sees it that was given bootstrap.controllers instead of brokers (KIP-919)."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.client.connection.cluster import Broker, Cluster
from moldau.client.errors import error_for
from moldau.protocol.errors import NONE, UNSUPPORTED_ENDPOINT_TYPE

BROKERS = 1
CONTROLLERS = 2


class ControllerCluster(Cluster):
    """Its brokers are the controllers: they have no Metadata, but DescribeCluster tells who they are and who leads."""

    def refresh(
        self,
        topics: Iterable[str] | None,
        timeout_ms: int,
        auto_create: bool | None = None,
        tries: int | None = None,
    ) -> None:
        from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
        from moldau.protocol.messages.describe_cluster_response import DescribeClusterResponse

        if topics is None or list(topics):
            raise error_for(UNSUPPORTED_ENDPOINT_TYPE, "Controllers do not know topics: ask with bootstrap.servers.")
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
        response = self.call(request, DescribeClusterResponse, timeout_ms, tries=tries)
        if response.error_code != NONE:
            raise error_for(response.error_code, response.error_message)
        self.brokers = {row.broker_id: Broker(row.broker_id, row.host, row.port, row.rack) for row in response.brokers}
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
