"""Admin methods for configs: of topics, brokers, loggers, groups and client metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import checked_int, checked_name
from moldau.client.admin.routing import RETRY_CONTROLLER, Deadline, Question, Response, Target, Value, check, outcome
from moldau.client.connection.cluster import Broker
from moldau.client.errors import UnsupportedVersionError
from moldau.client.results import Outcome

if TYPE_CHECKING:
    from moldau.protocol.messages.describe_configs_response import DescribeConfigsResponse

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32
RESOURCE_TYPES = {
    TOPIC: "topic",
    BROKER: "broker",
    BROKER_LOGGER: "broker logger",
    CLIENT_METRICS: "client metrics",
    GROUP: "group",
}

# Where a config value comes from, by the number in DescribeConfigs.
CONFIG_SOURCES = {
    0: "unknown",
    1: "topic",
    2: "broker",
    3: "cluster default",
    4: "file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
DEFAULT_CONFIG = 5

# The type of a config value, by the number in DescribeConfigs.
CONFIG_TYPES = {
    0: "unknown",
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}

SET = 0
DELETE = 1
APPEND = 2
SUBTRACT = 3


class ConfigResource(NamedTuple):
    """Whose configs: a resource type (TOPIC, BROKER, ...) and a name; an empty broker name is the cluster default."""

    type: int
    name: str


class ConfigEntry(NamedTuple):
    """One config value and where it comes from; the value of a sensitive one is None."""

    name: str
    value: str | None
    source: int
    is_read_only: bool
    is_sensitive: bool
    synonyms: list[tuple[str, str | None, int]]
    documentation: str | None
    type: int = 0

    @property
    def is_default(self) -> bool:
        """Whether nobody set it: the value is the one that the broker begins with."""
        return self.source == DEFAULT_CONFIG


class ConfigChange(NamedTuple):
    """One change: operation SET, DELETE, APPEND or SUBTRACT."""

    name: str
    value: str | None
    operation: int = SET


class ConfigAdmin(AdminCalls):
    """Configs of all kinds of resources."""

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        include_synonyms: bool = False,
        include_documentation: bool = False,
        names: Iterable[str] | None = None,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, Outcome[list[ConfigEntry]]]:
        """All configs of each resource, or only those with these names."""
        from moldau.protocol.messages import describe_configs_request as request_messages
        from moldau.protocol.messages.describe_configs_response import DescribeConfigsResponse

        deadline = self._start(timeout_ms)
        keys = None if names is None else [checked_name(name, "configs") for name in names]

        def request(items: list[ConfigResource]) -> request_messages.DescribeConfigsRequest:
            rows = [
                request_messages.DescribeConfigsResource(
                    resource_type=item.type, resource_name=item.name, configuration_keys=keys
                )
                for item in items
            ]
            return request_messages.DescribeConfigsRequest(
                resources=rows, include_synonyms=include_synonyms, include_documentation=include_documentation
            )

        question = Question(request, DescribeConfigsResponse, _read_configs, RETRY_CONTROLLER)
        return self._ask_for_resources(_checked(resources), question, deadline)

    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, Outcome[None]]:
        """Changes single configs and leaves the others as they are."""
        from moldau.protocol.messages import incremental_alter_configs_request as request_messages
        from moldau.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse

        deadline = self._start(timeout_ms)
        for rows in changes.values():
            for change in rows:
                checked_name(change.name, "configs")
                checked_int(change.operation, f"the operation on {change.name}", SET, SUBTRACT)

        def request(items: list[ConfigResource]) -> request_messages.IncrementalAlterConfigsRequest:
            resources = [
                request_messages.AlterConfigsResource(
                    resource_type=item.type,
                    resource_name=item.name,
                    configs=[
                        request_messages.AlterableConfig(
                            name=change.name, config_operation=change.operation, value=change.value
                        )
                        for change in changes[item]
                    ],
                )
                for item in items
            ]
            return request_messages.IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)

        def read(
            response: IncrementalAlterConfigsResponse, target: Target[ConfigResource]
        ) -> dict[ConfigResource, Outcome[None]]:
            return {
                ConfigResource(row.resource_type, row.resource_name): outcome(row.error_code, row.error_message, None)
                for row in response.responses
            }

        question = Question(request, IncrementalAlterConfigsResponse, read, RETRY_CONTROLLER)
        return self._ask_for_resources(_checked(changes), question, deadline)

    def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str | None]],
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, Outcome[None]]:
        """Replaces all configs of each resource: what is not given goes back to its default.

        The older api, which Java's client has given up; incremental_alter_configs() is what one usually wants.
        """
        from moldau.protocol.messages import alter_configs_request as request_messages
        from moldau.protocol.messages.alter_configs_response import AlterConfigsResponse

        deadline = self._start(timeout_ms)

        def request(items: list[ConfigResource]) -> request_messages.AlterConfigsRequest:
            resources = [
                request_messages.AlterConfigsResource(
                    resource_type=item.type,
                    resource_name=item.name,
                    configs=[
                        request_messages.AlterableConfig(name=name, value=value)
                        for name, value in configs[item].items()
                    ],
                )
                for item in items
            ]
            return request_messages.AlterConfigsRequest(resources=resources, validate_only=validate_only)

        def read(response: AlterConfigsResponse, target: Target[ConfigResource]) -> dict[ConfigResource, Outcome[None]]:
            return {
                ConfigResource(row.resource_type, row.resource_name): outcome(row.error_code, row.error_message, None)
                for row in response.responses
            }

        question = Question(request, AlterConfigsResponse, read, RETRY_CONTROLLER)
        return self._ask_for_resources(_checked(configs), question, deadline)

    def list_config_resources(
        self, types: Iterable[int] | None = None, timeout_ms: int | None = None
    ) -> list[ConfigResource]:
        """The resources of these types that have or can have configs; None: of all types."""
        from moldau.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
        from moldau.protocol.messages.list_config_resources_response import ListConfigResourcesResponse

        deadline = self._start(timeout_ms)
        wanted = [] if types is None else [checked_int(item, "a resource type", 0, 127) for item in types]
        try:
            request = ListConfigResourcesRequest(resource_types=wanted)
            response = self._call_any(request, ListConfigResourcesResponse, deadline)
        except UnsupportedVersionError:
            # The first version knows client metrics alone.
            if wanted != [CLIENT_METRICS]:
                raise
            response = self._call_any(ListConfigResourcesRequest(), ListConfigResourcesResponse, deadline)
        check(response.error_code)
        return sorted(ConfigResource(row.resource_type, row.resource_name) for row in response.config_resources)

    def list_client_metrics_resources(self, timeout_ms: int | None = None) -> list[str]:
        """The names of the client metrics subscriptions (KIP-714)."""
        return [item.name for item in self.list_config_resources([CLIENT_METRICS], timeout_ms)]

    def _ask_for_resources(
        self,
        resources: list[ConfigResource],
        question: Question[ConfigResource, Response, Value],
        deadline: Deadline,
    ) -> dict[ConfigResource, Outcome[Value]]:
        """Configs of a broker are asked of that broker, all others of any; a missing broker lets any broker say so."""
        of_broker = {
            item: int(item.name)
            for item in resources
            if item.type in (BROKER, BROKER_LOGGER) and item.name.isdecimal() and not self._to_controllers
        }
        if of_broker:
            self._cluster.refresh([], deadline.remaining_ms)
            of_broker = {item: where for item, where in of_broker.items() if where in self._cluster.brokers}
        outcomes = {}
        rest = [item for item in resources if item not in of_broker]
        if rest:
            nobody = Broker(-1, "", 0, None)
            outcomes = self._ask_any_for(rest, question, Target(nobody, rest), deadline)
        if of_broker:
            routed = self._ask_each(list(of_broker), self._route_to_brokers(of_broker), question, deadline)
            outcomes.update(routed)
        return {item: outcomes[item] for item in resources}

    def _ask_any_for(
        self,
        items: list[ConfigResource],
        question: Question[ConfigResource, Response, Value],
        target: Target[ConfigResource],
        deadline: Deadline,
    ) -> dict[ConfigResource, Outcome[Value]]:
        def codes_of(response: Response) -> list[int]:
            found = question.read(response, target).values()
            return [item.error.code for item in found if item.error is not None]

        response = self._call_any(question.request(items), question.response_class, deadline, codes_of)
        return question.read(response, target)


def _checked(resources: Iterable[ConfigResource]) -> list[ConfigResource]:
    found = [ConfigResource(kind, name) for kind, name in dict.fromkeys(resources)]
    for item in found:
        checked_int(item.type, "a resource type", 1, 127)
        if item.type != BROKER:
            checked_name(item.name, f"resources of type {RESOURCE_TYPES.get(item.type, item.type)}")
    return found


def _read_configs(
    response: DescribeConfigsResponse, target: Target[ConfigResource]
) -> dict[ConfigResource, Outcome[list[ConfigEntry]]]:
    outcomes: dict[ConfigResource, Outcome[list[ConfigEntry]]] = {}
    for row in response.results:
        entries = [
            ConfigEntry(
                item.name,
                item.value,
                item.config_source,
                item.read_only,
                item.is_sensitive,
                [(synonym.name, synonym.value, synonym.source) for synonym in item.synonyms],
                item.documentation,
                item.config_type,
            )
            for item in row.configs
        ]
        outcomes[ConfigResource(row.resource_type, row.resource_name)] = outcome(
            row.error_code, row.error_message, entries
        )
    return outcomes
