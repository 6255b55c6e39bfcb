"""How an admin request finds its way: to any broker, the controller, leaders, coordinators or given brokers.

Requests to several brokers are on their way at the same time. What a broker says against one item becomes that item's
outcome, and so does a broker that cannot be reached; items with an error that passes are asked again, after a pause
and after finding out anew whom to ask, until the timeout. A method raises when nobody can be asked at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from moldau.client import config as settings
from moldau.client.admin.checks import checked_int
from moldau.client.admin.controllers import ControllerCluster
from moldau.client.admin.routing import (
    GROUP_COORDINATOR,
    RETRY_COORDINATOR,
    Deadline,
    Key,
    Question,
    Response,
    Route,
    Routes,
    Target,
    Value,
    outcome,
)
from moldau.client.connection.cluster import UNKNOWN_TOPIC_TRIES, Broker, Cluster
from moldau.client.connection.wire import Call
from moldau.client.errors import (
    ClosedError,
    ConfigError,
    NetworkError,
    RequestTimeoutError,
    ThrottlingQuotaExceededError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.results import Outcome, TopicPartition
from moldau.client.telemetry.watch import Telemetry
from moldau.client.wiring import wiring_of
from moldau.protocol import errors as codes
from moldau.protocol.primitives import Message

if TYPE_CHECKING:
    from typing import Unpack

    from moldau.client.metrics.names import Metrics
    from moldau.client.setting_types import AdminSettings
    from moldau.protocol.messages.find_coordinator_response import FindCoordinatorResponse


class AdminCalls:
    """What all admin methods stand on: requests that find their way, and close()."""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        config: Mapping[str, object] | None = None,
        **more: Unpack[AdminSettings],
    ) -> None:
        gathered = settings.gather(bootstrap_servers, config, more)
        given = {settings.dotted(name): value for name, value in gathered.items()}
        controllers = given.pop("bootstrap.controllers", None)
        self._to_controllers = controllers is not None
        if self._to_controllers:
            if "bootstrap.servers" in given:
                raise ConfigError("Give bootstrap.servers or bootstrap.controllers, not both.")
            given["bootstrap.servers"] = controllers
        read = settings.ClientConfig(settings.ADMIN, given)
        self._timeout_ms = read.get_int("default.api.timeout.ms")
        self._request_timeout_ms = read.get_int("request.timeout.ms")
        kind = ControllerCluster if self._to_controllers else Cluster
        wiring = wiring_of(config)
        self._cluster = kind(read, wiring.network, first_contact_ms=wiring.first_contact_ms)
        self._client_id = read.get_text("client.id")
        self._started_wall_ms = time.time_ns() // 1_000_000
        self._telemetry = Telemetry(read, self._cluster, self.metrics)
        self._closed = False

    def metrics(self) -> Metrics:
        """What the client measures of itself, under the names of Kafka's metrics, as of now: connections and requests.

        A mapping of MetricName to numbers, and `metrics()["request-total"]` for what the client has of it in all.
        """
        from moldau.client.metrics.admin import admin_metrics

        return admin_metrics(self._client_id, self._cluster, self._started_wall_ms)

    def close(self) -> None:
        """Ends all connections; any other method raises ClosedError from now on."""
        self._closed = True
        self._telemetry.close()
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, timeout_ms: int | None) -> Deadline:
        """The beginning of each method."""
        if self._closed:
            raise ClosedError("The admin client is closed.")
        given = self._timeout_ms if timeout_ms is None else checked_int(timeout_ms, "timeout_ms")
        return Deadline(self._cluster.network, given)

    def _server_timeout_ms(self, deadline: Deadline) -> int:
        """How long the broker may work on a request before it responds that this took too long."""
        return min(self._request_timeout_ms, deadline.remaining_ms)

    # One response

    def _call_any(
        self,
        request: Message,
        response_class: type[Response],
        deadline: Deadline,
        codes_of: Callable[[Response], Iterable[int]] | None = None,
        highest_version: int | None = None,
    ) -> Response:
        """The response of any broker, or of the active controller where the client was given controllers.

        codes_of: the error codes in a response; it is asked for again while one of them says that there is no
        controller at the moment, for brokers pass many requests on to it.
        """
        failures = 0
        while True:
            if self._to_controllers:
                response = self._once_to_controller(request, response_class, deadline, highest_version)
            else:
                response = self._cluster.call(
                    request, response_class, deadline.remaining_ms, highest_version=highest_version
                )
            failures += 1
            waits = codes_of is not None and codes.NOT_CONTROLLER in codes_of(response)
            if not waits or not self._pause(failures, deadline):
                return response

    def _call_controller(
        self,
        request: Message,
        response_class: type[Response],
        deadline: Deadline,
        codes_of: Callable[[Response], Iterable[int]],
    ) -> Response:
        """The response of the controller as Metadata names it: with KRaft a broker that passes requests on."""
        failures = 0
        while True:
            response = self._once_to_controller(request, response_class, deadline)
            failures += 1
            if codes.NOT_CONTROLLER not in codes_of(response) or not self._pause(failures, deadline):
                return response
            self._cluster.refresh([], deadline.remaining_ms)

    def _once_to_controller(
        self,
        request: Message,
        response_class: type[Response],
        deadline: Deadline,
        highest_version: int | None = None,
    ) -> Response:
        """Asks the controller; one that cannot be reached is looked up again."""
        cluster = self._cluster
        failures = 0
        if not cluster.brokers:
            cluster.refresh([], deadline.remaining_ms)
        while True:
            known = cluster.controller_id if cluster.controller_id in cluster.brokers else None
            try:
                if known is None:
                    return cluster.call(request, response_class, deadline.remaining_ms, highest_version=highest_version)
                return cluster.ask_broker(request, response_class, deadline.remaining_ms, known, highest_version)
            except (NetworkError, RequestTimeoutError) as error:
                failures += 1
                if not error.retriable or not self._pause(failures, deadline):
                    raise
            cluster.refresh([], deadline.remaining_ms)

    def _pause(self, failures: int, deadline: Deadline, throttle_ms: int = 0) -> bool:
        """Waits before the next try, as long as the quota says if there is one; False when there is no time for it."""
        delay_ms = throttle_ms or self._cluster.backoff.delay_ms(failures)
        if not deadline.allows(delay_ms):
            return False
        self._cluster.sleep(delay_ms)
        return True

    # One outcome per item

    def _ask_controller(
        self,
        items: Sequence[Key],
        question: Question[Key, Response, Value],
        deadline: Deadline,
    ) -> dict[Key, Outcome[Value]]:
        """Asks the controller for all items; those that it puts off are asked again."""
        outcomes: dict[Key, Outcome[Value]] = {}
        missing = list(items)
        failures = 0
        while missing:
            try:
                response = self._once_to_controller(
                    question.request(missing), question.response_class, deadline, question.highest_version
                )
            except (NetworkError, RequestTimeoutError) as error:
                if not outcomes:
                    raise
                # What was done before stays told; of an item that was put off it is known why.
                outcomes.update({item: Outcome(error=error) for item in missing if not _is_throttled(outcomes[item])})
                break
            broker = self._cluster.brokers.get(self._cluster.controller_id, Broker(-1, "", 0, None))
            outcomes.update(_complete(question.read(response, Target(broker, missing)), missing))
            throttle_ms = _note_throttle(response, [outcomes[item] for item in missing])
            missing = [item for item in missing if _passes(outcomes[item], question.retry)]
            failures += 1
            if missing and not self._pause(failures, deadline, throttle_ms):
                break
            if any(_has_code(outcomes[item], codes.NOT_CONTROLLER) for item in missing):
                self._cluster.refresh([], deadline.remaining_ms)
        return {item: outcomes[item] for item in items}

    def _ask_each(
        self,
        items: Sequence[Key],
        route: Route[Key],
        question: Question[Key, Response, Value],
        deadline: Deadline,
    ) -> dict[Key, Outcome[Value]]:
        """Asks whom route names for each item, all at the same time."""
        outcomes: dict[Key, Outcome[Value]] = {}
        missing = list(items)
        failures = 0
        while missing:
            routes = route(missing, deadline)
            outcomes.update((item, Outcome(error=error)) for item, error in routes.refused.items())
            outcomes.update(self._ask_targets(list(routes.targets.values()), question, deadline))
            failures += 1
            # A topic that was just created may not be known everywhere; its absence is believed the third time.
            retry = question.retry
            if failures >= UNKNOWN_TOPIC_TRIES:
                retry = retry - {codes.UNKNOWN_TOPIC_OR_PARTITION}
            missing = [item for item in missing if _passes(outcomes[item], retry)]
            if missing and not self._pause(failures, deadline):
                break
        return {item: outcomes[item] for item in items}

    def _ask_targets(
        self, targets: list[Target[Key]], question: Question[Key, Response, Value], deadline: Deadline
    ) -> dict[Key, Outcome[Value]]:
        if question.one_by_one:
            targets = [Target(target.broker, [item]) for target in targets for item in target.items]
        requests = [(target.broker, question.request(target.items)) for target in targets]
        responses = self._send_all(requests, question.response_class, deadline, question.highest_version)
        outcomes: dict[Key, Outcome[Value]] = {}
        for target, response in zip(targets, responses, strict=True):
            if response.error is not None:
                outcomes.update(target.all(Outcome(error=response.error)))
            else:
                outcomes.update(_complete(question.read(response.get(), target), target.items))
        return outcomes

    def _send_all(
        self,
        requests: list[tuple[Broker, Message]],
        response_class: type[Response],
        deadline: Deadline,
        highest_version: int | None = None,
    ) -> list[Outcome[Response]]:
        """Sends each request to its broker and waits until each has a response or an error."""
        network = self._cluster.network
        calls: list[Call[Response]] = []
        for broker, request in requests:
            call = Call(request, response_class, self._server_timeout_ms(deadline), highest_version)
            self._cluster.submit(broker.address, call)
            calls.append(call)
        while not all(call.done for call in calls):
            network.poll(self._server_timeout_ms(deadline))
        return [Outcome(error=call.error) if call.error is not None else Outcome(call.response()) for call in calls]

    def _ask_all_brokers(
        self,
        request: Callable[[], Message],
        response_class: type[Response],
        code_of: Callable[[Response], int],
        deadline: Deadline,
    ) -> dict[Broker, Outcome[Response]]:
        """What each broker of the cluster responds.

        While one of them fails in a way that passes, all are asked again: what a broker that is gone was responsible
        for has gone over to others, which may have responded before that.
        """
        failures = 0
        while True:
            self._cluster.refresh([], deadline.remaining_ms)
            brokers = sorted(self._cluster.brokers.values())
            responses = self._send_all([(broker, request()) for broker in brokers], response_class, deadline)
            outcomes = {
                broker: found if found.error is not None else outcome(code_of(found.get()), None, found.get())
                for broker, found in zip(brokers, responses, strict=True)
            }
            failures += 1
            again = any(_passes(found, RETRY_COORDINATOR) for found in outcomes.values())
            if not again or not self._pause(failures, deadline):
                return outcomes

    # Whom to ask

    def _route_to_leaders(self, items: list[TopicPartition], deadline: Deadline) -> Routes[TopicPartition]:
        cluster = self._cluster
        cluster.refresh(sorted({item.topic for item in items}), deadline.remaining_ms)
        routes: Routes[TopicPartition] = Routes()
        for item in items:
            leader = cluster.leader(item)
            if leader is not None:
                routes.add(cluster.brokers[leader.leader], item)
                continue
            topic = cluster.topics.get(item.topic)
            error = cluster.topic_error(item.topic)
            if error is None and topic is not None and item.partition not in topic.partitions:
                sentence = f"Topic {item.topic} has {len(topic.partitions)} partitions, there is no {item.partition}."
                error = error_for(codes.UNKNOWN_TOPIC_OR_PARTITION, sentence)
            sentence = f"Partition {item} has no leader at the moment."
            routes.refused[item] = error or error_for(codes.LEADER_NOT_AVAILABLE, sentence)
        return routes

    def _route_to_brokers(self, items: Mapping[Key, int]) -> Route[Key]:
        """items: the broker id of each item."""

        def route(wanted: list[Key], deadline: Deadline) -> Routes[Key]:
            cluster = self._cluster
            cluster.refresh([], deadline.remaining_ms)
            routes: Routes[Key] = Routes()
            for item in wanted:
                broker = cluster.brokers.get(items[item])
                if broker is None:
                    sentence = f"There is no broker {items[item]} in the cluster at the moment."
                    routes.refused[item] = error_for(codes.BROKER_NOT_AVAILABLE, sentence)
                else:
                    routes.add(broker, item)
            return routes

        return route

    def _route_to_coordinators(self, kind: int) -> Route[str]:
        """Items are group ids or transactional ids."""

        def route(keys: list[str], deadline: Deadline) -> Routes[str]:
            return self._find_coordinators(keys, kind, deadline)

        return route

    def _route_to_coordinator_of(self, group_id: str) -> Route[Key]:
        """Items of one group, such as its partitions."""

        def route(items: list[Key], deadline: Deadline) -> Routes[Key]:
            found = self._find_coordinators([group_id], GROUP_COORDINATOR, deadline)
            routes: Routes[Key] = Routes()
            for target in found.targets.values():
                routes.targets[target.broker.id] = Target(target.broker, items)
            for error in found.refused.values():
                routes.refused.update(dict.fromkeys(items, error))
            return routes

        return route

    def _find_coordinators(self, keys: list[str], kind: int, deadline: Deadline) -> Routes[str]:
        from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
        from moldau.protocol.messages.find_coordinator_response import FindCoordinatorResponse

        routes: Routes[str] = Routes()
        try:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
            response = self._cluster.call(
                request, FindCoordinatorResponse, deadline.remaining_ms, refuses=_knows_none_now
            )
            rows = [
                (row.key, row.node_id, row.host, row.port, row.error_code, row.error_message)
                for row in response.coordinators
            ]
        except UnsupportedVersionError:
            # Before version 4 a request names one key.
            rows = []
            for key in keys:
                request = FindCoordinatorRequest(key=key, key_type=kind)
                one = self._cluster.call(request, FindCoordinatorResponse, deadline.remaining_ms, highest_version=3)
                rows.append((key, one.node_id, one.host, one.port, one.error_code, one.error_message))
        if all(row[4] != codes.NONE for row in rows) and not self._cluster.brokers:
            # The next try asks brokers that were not named as bootstrap servers as well.
            self._cluster.refresh((), deadline.remaining_ms)
        for key, node_id, host, port, code, message in rows:
            if code != codes.NONE:
                routes.refused[key] = error_for(code, message)
            else:
                routes.add(Broker(node_id, host, port, None), key)
        for key in keys:
            if key not in routes.refused and not any(key in target.items for target in routes.targets.values()):
                routes.refused[key] = error_for(codes.COORDINATOR_NOT_AVAILABLE, f"No broker coordinates {key}.")
        return routes


def _knows_none_now(response: FindCoordinatorResponse) -> bool:
    """Another broker may know more, one that is not cut off from the controller."""
    return all(row.error_code != codes.NONE and error_for(row.error_code).retriable for row in response.coordinators)


def _complete(outcomes: dict[Key, Outcome[Value]], items: list[Key]) -> dict[Key, Outcome[Value]]:
    for item in items:
        if item not in outcomes:
            sentence = f"The broker's response leaves out {item}."
            outcomes[item] = Outcome(error=error_for(codes.UNKNOWN_SERVER_ERROR, sentence))
    return outcomes


def _is_throttled(found: Outcome[Value]) -> bool:
    return isinstance(found.error, ThrottlingQuotaExceededError)


def _note_throttle(response: Message, outcomes: list[Outcome[Value]]) -> int:
    """KIP-599: after this time the items that a quota put off may be asked for again; 0 without such items."""
    throttled = [found.error for found in outcomes if isinstance(found.error, ThrottlingQuotaExceededError)]
    throttle_ms = int(getattr(response, "throttle_time_ms", 0)) if throttled else 0
    for error in throttled:
        error.throttle_time_ms = throttle_ms
    return throttle_ms


def _passes(found: Outcome[Value], retry: frozenset[int]) -> bool:
    if isinstance(found.error, NetworkError) and not found.error.retriable:
        return False
    return found.error is not None and found.error.code in retry


def _has_code(found: Outcome[Value], code: int) -> bool:
    return found.error is not None and found.error.code == code
