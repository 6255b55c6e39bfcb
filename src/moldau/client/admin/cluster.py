"""Admin methods for the cluster itself: its brokers, features, and this client's telemetry id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.admin.acls import AclOperation, authorized
from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import checked_int, checked_name
from moldau.client.admin.controllers import BROKERS, CONTROLLERS
from moldau.client.admin.routing import RETRY_CONTROLLER, Question, Target, check, outcome
from moldau.client.connection.cluster import Broker
from moldau.client.results import Outcome

# How a feature level may change: only up; down without loss; down with loss of metadata.
UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3


class ClusterDescription(NamedTuple):
    """The cluster: its id, who leads it, its brokers; fenced brokers by id; what the user may do (None: not asked)."""

    cluster_id: str
    controller_id: int
    brokers: list[Broker]
    fenced: set[int]
    authorized_operations: set[AclOperation] | None = None


class VersionRange(NamedTuple):
    """The lowest and highest level of a feature."""

    lowest: int
    highest: int


class FeatureMetadata(NamedTuple):
    """What is in force (finalized, since an epoch) and what the broker asked could do (supported)."""

    finalized: dict[str, VersionRange]
    finalized_epoch: int | None
    supported: dict[str, VersionRange]


class FeatureUpdate(NamedTuple):
    """A feature's new level; 0 takes the feature out of force."""

    level: int
    upgrade_type: int = UPGRADE


class ClusterAdmin(AdminCalls):
    """The cluster itself."""

    def describe_cluster(
        self,
        include_fenced_brokers: bool = False,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> ClusterDescription:
        """The brokers of the cluster; its controllers where the client was given bootstrap.controllers."""
        from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
        from moldau.protocol.messages.describe_cluster_response import DescribeClusterResponse

        deadline = self._start(timeout_ms)
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=include_authorized_operations,
            endpoint_type=CONTROLLERS if self._to_controllers else BROKERS,
            include_fenced_brokers=include_fenced_brokers,
        )
        response = self._cluster.call(request, DescribeClusterResponse, deadline.remaining_ms)
        check(response.error_code, response.error_message)
        return ClusterDescription(
            response.cluster_id,
            response.controller_id,
            sorted(Broker(row.broker_id, row.host, row.port, row.rack) for row in response.brokers),
            {row.broker_id for row in response.brokers if row.is_fenced},
            authorized(response.cluster_authorized_operations),
        )

    def describe_features(self, broker_id: int | None = None, timeout_ms: int | None = None) -> FeatureMetadata:
        """The features as one broker knows them; None: any broker."""
        from moldau import __version__
        from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
        from moldau.protocol.messages.api_versions_response import ApiVersionsResponse

        deadline = self._start(timeout_ms)
        request = ApiVersionsRequest(client_software_name="moldau", client_software_version=__version__)
        if broker_id is None:
            response = self._call_any(request, ApiVersionsResponse, deadline)
        else:
            checked_int(broker_id, "a broker id")
            self._cluster.refresh([], deadline.remaining_ms)
            response = self._cluster.call(request, ApiVersionsResponse, deadline.remaining_ms, broker_id)
        check(response.error_code)
        return FeatureMetadata(
            {
                row.name: VersionRange(row.min_version_level, row.max_version_level)
                for row in response.finalized_features
            },
            None if response.finalized_features_epoch < 0 else response.finalized_features_epoch,
            {row.name: VersionRange(row.min_version, row.max_version) for row in response.supported_features},
        )

    def update_features(
        self, updates: Mapping[str, FeatureUpdate], validate_only: bool = False, timeout_ms: int | None = None
    ) -> dict[str, Outcome[None]]:
        """Changes levels of features, all of them or none."""
        from moldau.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
        from moldau.protocol.messages.update_features_response import UpdateFeaturesResponse

        deadline = self._start(timeout_ms)
        for name, update in updates.items():
            checked_int(update.level, f"the level of {checked_name(name, 'features')}", 0, 0x7FFF)
            checked_int(update.upgrade_type, f"the upgrade type of {name}", UPGRADE, UNSAFE_DOWNGRADE)
            if update.level == 0 and update.upgrade_type == UPGRADE:
                raise ValueError(f"Feature {name}: level 0 is a downgrade and must be asked for as one.")

        def request(names: list[str]) -> UpdateFeaturesRequest:
            rows = [
                FeatureUpdateKey(
                    feature=name,
                    max_version_level=updates[name].level,
                    upgrade_type=updates[name].upgrade_type,
                )
                for name in names
            ]
            return UpdateFeaturesRequest(
                timeout_ms=self._server_timeout_ms(deadline), feature_updates=rows, validate_only=validate_only
            )

        def read(response: UpdateFeaturesResponse, target: Target[str]) -> dict[str, Outcome[None]]:
            # Newer versions have no rows: all went well, or one error stands for all.
            outcomes = target.all(outcome(response.error_code, response.error_message, None))
            if response.error_code == 0:
                outcomes.update(
                    (row.feature, outcome(row.error_code, row.error_message, None)) for row in response.results
                )
            return outcomes

        question = Question(request, UpdateFeaturesResponse, read, RETRY_CONTROLLER)
        return self._ask_controller(list(updates), question, deadline)

    def unregister_broker(self, broker_id: int, timeout_ms: int | None = None) -> None:
        """Removes a broker that will not come back. One that still runs is cut off, so stop it first."""
        from moldau.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
        from moldau.protocol.messages.unregister_broker_response import UnregisterBrokerResponse

        deadline = self._start(timeout_ms)
        request = UnregisterBrokerRequest(broker_id=checked_int(broker_id, "a broker id"))
        response = self._call_any(request, UnregisterBrokerResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code, response.error_message)

    def client_instance_id(self, timeout_ms: int | None = None) -> bytes:
        """The id that brokers give to this client for its telemetry (KIP-714).

        With enable.metrics.push it is the one by which they know the metrics that this client pushes.
        """
        from moldau.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
        from moldau.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse

        deadline = self._start(timeout_ms)
        if self._telemetry.is_on:
            self._cluster.refresh([], deadline.remaining_ms)
            return self._telemetry.instance_id(deadline.remaining_ms)
        response = self._call_any(GetTelemetrySubscriptionsRequest(), GetTelemetrySubscriptionsResponse, deadline)
        check(response.error_code)
        return response.client_instance_id
