"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources.

DescribeConfigs 1-4 (type and documentation of a value from 3), AlterConfigs 0-2, IncrementalAlterConfigs 0-1,
ListConfigResources 0-1 (0 lists client metrics only). What concerns this node alone is answered here: levels of its
loggers, and objections to its own broker configs, which only it can check. The rest is decided by the controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.api.authorize import check_cluster, check_group, check_topic, may, may_cluster
from moldau.api.forward import submit_rest
from moldau.config.broker_config import find_broker_key
from moldau.config.definitions import LIST, split_list
from moldau.config.describe import (
    DescribedConfig,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.config.loggers import DELETE, SET, change_logger, check_logger_change, logger_levels
from moldau.config.resources import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DYNAMIC_BROKER_LOGGER_CONFIG,
    GROUP,
    RESOURCE_TYPES,
    TOPIC,
    check_topic_name,
)
from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.metadata.image import MetadataImage
from moldau.protocol.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_CONFIG,
    INVALID_REQUEST,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    KafkaError,
)
from moldau.protocol.messages import alter_configs_request as plain_request
from moldau.protocol.messages import alter_configs_response as plain_response
from moldau.protocol.messages import incremental_alter_configs_request as incremental_request
from moldau.protocol.messages import incremental_alter_configs_response as incremental_response
from moldau.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from moldau.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from moldau.protocol.messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse
from moldau.protocol.primitives import Message, Writer
from moldau.security.rights import ALTER_CONFIGS, CLUSTER, CLUSTER_ACTION, CLUSTER_NAME, DESCRIBE_CONFIGS

if TYPE_CHECKING:
    from moldau.api.call import Call

APPEND = 2
SUBTRACT = 3

Change = tuple[str, int, str | None]
"""Key, operation, value."""


class ConfigContext:
    """What configs are seen from: a node, the cluster as it sees it, its own effective configuration, and who asks."""

    def __init__(
        self,
        node_id: int,
        image: MetadataImage,
        broker: DynamicBrokerConfig,
        on_controller_listener: bool = False,
        call: Call | None = None,
    ) -> None:
        self.call = call
        self.node_id = node_id
        self.image = image
        self.broker = broker
        self.on_controller_listener = on_controller_listener


def _context(call: Call) -> ConfigContext:
    node = call.node
    return ConfigContext(node.node_id, node.image, node.dynamic, call.context.is_controller_listener, call)


# Whose configs belong to the cluster as a whole.
_OF_THE_CLUSTER = (BROKER, BROKER_LOGGER, CLIENT_METRICS)


def _check_rights(call: Call | None, operation: int, kind: int, name: str) -> None:
    """Raises what who asks is told when it may not do this to the configs of a resource."""
    if call is None or call.node.rights is None:
        return
    if kind in _OF_THE_CLUSTER:
        if not may(call, operation, CLUSTER, CLUSTER_NAME):
            raise KafkaError(CLUSTER_AUTHORIZATION_FAILED)
    elif kind == TOPIC:
        check_topic(call, operation, name)
    elif kind == GROUP:
        check_group(call, operation, name)
    elif operation == ALTER_CONFIGS:
        raise KafkaError(INVALID_REQUEST, f"Unexpected resource type {kind}")


# Describing


def handle_describe_configs(call: Call, request: DescribeConfigsRequest) -> None:
    call.respond(describe_configs(request, _context(call)))


def describe_configs(request: DescribeConfigsRequest, context: ConfigContext) -> DescribeConfigsResponse:
    response = DescribeConfigsResponse()
    # A resource that is asked for twice is answered once: a response is a thousand times as long as the question.
    by_resource = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    topic_lines: dict[tuple[object, ...], list[DescribeConfigsResourceResult]] = {}
    for resource in by_resource.values():
        result = DescribeConfigsResult(
            error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            _check_rights(context.call, DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
            wanted = set(resource.configuration_keys or ())
            alike = _alike(resource, wanted, context)
            lines = topic_lines.get(alike) if alike else None
            if lines is None:
                lines = [
                    _described_line(config, request.include_synonyms, request.include_documentation)
                    for config in _describe_resource(resource, context)
                    if not wanted or config.name in wanted
                ]
                if alike:
                    topic_lines[alike] = lines
            result.configs = lines
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        response.results.append(result)
    return response


def _alike(resource: DescribeConfigsResource, wanted: set[str], context: ConfigContext) -> tuple[object, ...]:
    """What the lines of an existing topic depend on within one response; empty for any other resource. Whoever asks for
    all topics gets few different ones."""
    if resource.resource_type != TOPIC or context.image.topic(resource.resource_name) is None:
        return ()
    overrides = context.image.config(TOPIC, resource.resource_name)
    return tuple(overrides.items()), frozenset(wanted)


class SharedLine(DescribeConfigsResourceResult):
    """A line of one response that several resources may have: encoded when the first of them is."""

    encoded: bytes | None = None

    def encode(self, writer: Writer, version: int) -> None:
        if self.encoded is None:
            own = Writer()
            super().encode(own, version)
            self.encoded = own.to_bytes()
        writer.raw(self.encoded)


def _describe_resource(resource: DescribeConfigsResource, context: ConfigContext) -> list[DescribedConfig]:
    kind, name = resource.resource_type, resource.resource_name
    if kind == TOPIC:
        check_topic_name(name)
        if context.image.topic(name) is None:
            raise KafkaError(UNKNOWN_TOPIC_OR_PARTITION, "")
        return describe_topic(context.image.config(TOPIC, name), context.broker)
    if kind == BROKER:
        if name == "":
            return describe_broker_default(context.broker)
        _check_own_id(name, context, "Unexpected broker id, expected {} or empty string, but received {}")
        return describe_broker(context.broker)
    if kind == BROKER_LOGGER:
        if name == "":
            raise KafkaError(INVALID_REQUEST, "Broker id must not be empty")
        _check_own_id(name, context, "Unexpected broker id, expected {} but received {}")
        return [
            DescribedConfig(logger, level, [], source=DYNAMIC_BROKER_LOGGER_CONFIG)
            for logger, level in logger_levels().items()
        ]
    if kind == CLIENT_METRICS:
        if name == "":
            raise KafkaError(INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return describe_client_metrics(context.image.config(CLIENT_METRICS, name))
    if kind == GROUP:
        if name == "":
            raise KafkaError(INVALID_REQUEST, "Group name must not be empty")
        return describe_group(context.image.config(GROUP, name), context.broker)
    raise KafkaError(INVALID_REQUEST, f"Unknown resource type {kind}")


def _check_own_id(name: str, context: ConfigContext, objection: str, noun: str = "Broker") -> None:
    """Only a node itself knows its properties file, so it describes nobody else."""
    try:
        number = int(name)
    except ValueError:
        raise KafkaError(INVALID_REQUEST, f"{noun} id must be an integer, but it is: {name}") from None
    if number != context.node_id:
        raise KafkaError(INVALID_REQUEST, objection.format(context.node_id, number))


def _described_line(
    config: DescribedConfig, include_synonyms: bool, include_documentation: bool
) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in (config.synonyms if include_synonyms else ())
    ]
    return SharedLine(
        name=config.name,
        value=config.value,
        read_only=config.read_only,
        config_source=config.source,
        is_sensitive=config.sensitive,
        synonyms=synonyms,
        config_type=config.type,
        documentation=config.documentation if include_documentation else None,
    )


# Listing


def handle_list_config_resources(call: Call, request: ListConfigResourcesRequest) -> None:
    try:
        check_cluster(call, DESCRIBE_CONFIGS)
    except KafkaError as error:
        call.respond(ListConfigResourcesResponse(error_code=error.code))
        return
    if call.version == 0:
        request.resource_types = [CLIENT_METRICS]
    call.respond(list_config_resources(request, _context(call)))


def list_config_resources(request: ListConfigResourcesRequest, context: ConfigContext) -> ListConfigResourcesResponse:
    """No types means all of them."""
    wanted = request.resource_types or RESOURCE_TYPES
    if any(kind not in RESOURCE_TYPES for kind in wanted):
        return ListConfigResourcesResponse(error_code=UNSUPPORTED_VERSION)
    image = context.image
    brokers = [str(broker_id) for broker_id in image.active_brokers()]
    names = {
        GROUP: sorted(name for kind, name in image.configs if kind == GROUP),
        CLIENT_METRICS: sorted(name for kind, name in image.configs if kind == CLIENT_METRICS),
        BROKER_LOGGER: brokers,
        BROKER: brokers,
        TOPIC: sorted(image.topics_by_name),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, listed in names.items()
            if kind in wanted
            for name in listed
        ]
    )


# Altering


def handle_incremental_alter_configs(call: Call, request: incremental_request.IncrementalAlterConfigsRequest) -> None:
    context = _context(call)
    outcomes = ConfigOutcomes([(each.resource_type, each.resource_name) for each in request.resources])
    forwarded = incremental_request.IncrementalAlterConfigsRequest(validate_only=request.validate_only)
    for resource in request.resources:
        changes = [(config.name, config.config_operation, config.value) for config in resource.configs]
        if not outcomes.settle(resource.resource_type, resource.resource_name, changes, context, request.validate_only):
            forwarded.resources.append(resource)

    def done(result: Message | KafkaError) -> None:
        outcomes.add(forwarded.resources, result)
        rows = [incremental_response.AlterConfigsResourceResponse(*row) for row in outcomes.rows()]
        if not call.reply.done:
            call.respond(incremental_response.IncrementalAlterConfigsResponse(responses=rows))

    if forwarded.resources:
        submit_rest(call, forwarded, lambda controller: _alter_incrementally(call, controller, forwarded), done)
    else:
        done(incremental_response.IncrementalAlterConfigsResponse())


def handle_alter_configs(call: Call, request: plain_request.AlterConfigsRequest) -> None:
    """The older way: what a request does not name is deleted."""
    context = _context(call)
    outcomes = ConfigOutcomes([(each.resource_type, each.resource_name) for each in request.resources])
    forwarded = plain_request.AlterConfigsRequest(validate_only=request.validate_only)
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        changes: list[Change] = [(config.name, SET, config.value) for config in resource.configs]
        if kind == BROKER_LOGGER:
            outcomes.refuse(kind, name, KafkaError(INVALID_REQUEST, f"Unknown resource type {kind}"))
        elif not outcomes.settle(kind, name, changes, context, request.validate_only, replaces_all=True):
            forwarded.resources.append(resource)

    def done(result: Message | KafkaError) -> None:
        outcomes.add(forwarded.resources, result)
        rows = [plain_response.AlterConfigsResourceResponse(*row) for row in outcomes.rows()]
        if not call.reply.done:
            call.respond(plain_response.AlterConfigsResponse(responses=rows))

    if forwarded.resources:
        submit_rest(call, forwarded, lambda controller: _alter_plainly(call, controller, forwarded), done)
    else:
        done(plain_response.AlterConfigsResponse())


def _alter_incrementally(
    call: Call, controller: Controller, request: incremental_request.IncrementalAlterConfigsRequest
) -> Result:
    if call.node.rights is None:
        return controller.incremental_alter_configs(request, call.now_ms)
    refused = _refused(call, [(each.resource_type, each.resource_name) for each in request.resources])
    allowed = [each for each in request.resources if (each.resource_type, each.resource_name) not in refused]
    rest = incremental_request.IncrementalAlterConfigsRequest(allowed, request.validate_only)
    result = controller.incremental_alter_configs(rest, call.now_ms)
    rows = [incremental_response.AlterConfigsResourceResponse(*row) for row in refused.values()]
    result.response.responses += rows
    return result


def _alter_plainly(call: Call, controller: Controller, request: plain_request.AlterConfigsRequest) -> Result:
    if call.node.rights is None:
        return controller.alter_configs(request, call.now_ms)
    refused = _refused(call, [(each.resource_type, each.resource_name) for each in request.resources])
    allowed = [each for each in request.resources if (each.resource_type, each.resource_name) not in refused]
    rest = plain_request.AlterConfigsRequest(allowed, request.validate_only)
    result = controller.alter_configs(rest, call.now_ms)
    rows = [plain_response.AlterConfigsResourceResponse(*row) for row in refused.values()]
    result.response.responses += rows
    return result


def _refused(call: Call, resources: list[tuple[int, str]]) -> dict[tuple[int, str], Row]:
    """Those whose configs who asks may not change, with what it is told. Checked on the controller."""
    refused: dict[tuple[int, str], Row] = {}
    for kind, name in resources:
        try:
            _check_rights(call, ALTER_CONFIGS, kind, name)
        except KafkaError as error:
            refused[kind, name] = (error.code, error.message, kind, name)
    return refused


Row = tuple[int, str | None, int, str]
"""Error code, message, resource type, resource name."""


class ConfigOutcomes:
    """The response to an alter request, gathered from this node and from the controller, in the order of the
    request."""

    def __init__(self, resources: list[tuple[int, str]]) -> None:
        self.resources = resources
        self._counts = Counter(resources)
        self._found: dict[tuple[int, str], Row] = {}

    def settle(
        self,
        kind: int,
        name: str,
        changes: list[Change],
        context: ConfigContext,
        validate_only: bool,
        replaces_all: bool = False,
    ) -> bool:
        """Responds for a resource here if that can be done; False leaves it to the controller."""
        try:
            if self._counts[kind, name] > 1:
                raise KafkaError(INVALID_REQUEST, "Each resource must appear at most once.")
            _check_changes(changes)
            if kind == BROKER_LOGGER:
                operation = CLUSTER_ACTION if context.on_controller_listener else ALTER_CONFIGS
                _check_rights(context.call, operation, kind, name)
                _alter_loggers(name, changes, context, validate_only)
                self._found[kind, name] = (0, None, kind, name)
                return True
            if kind == BROKER and not context.on_controller_listener and may_be_looked_at(context.call, changes):
                _check_broker_change(name, changes, context, replaces_all)
        except KafkaError as error:
            self.refuse(kind, name, error)
            if error.code == CLUSTER_AUTHORIZATION_FAILED and not context.on_controller_listener:
                self._found[kind, name] = (error.code, None, kind, name)  # a broker tells only the code
            return True
        return False

    def refuse(self, kind: int, name: str, error: KafkaError) -> None:
        self._found[kind, name] = (error.code, error.message, kind, name)

    def add(
        self,
        forwarded: Sequence[plain_request.AlterConfigsResource | incremental_request.AlterConfigsResource],
        result: Message | KafkaError,
    ) -> None:
        """Takes the controller's response, or its failure as the response to everything that was forwarded."""
        if isinstance(result, KafkaError):
            for resource in forwarded:
                self.refuse(resource.resource_type, resource.resource_name, result)
        elif isinstance(
            result, (plain_response.AlterConfigsResponse, incremental_response.IncrementalAlterConfigsResponse)
        ):
            for row in result.responses:
                key = (row.resource_type, row.resource_name)
                self._found[key] = (row.error_code, row.error_message, *key)

    def rows(self) -> list[Row]:
        return [self._found[resource] for resource in self.resources if resource in self._found]


def _check_changes(changes: list[Change]) -> None:
    nulls = [key for key, operation, value in changes if value is None and operation != DELETE]
    if nulls:
        raise KafkaError(INVALID_REQUEST, "Null value not supported for : " + ",".join(nulls))
    if len({key for key, _, _ in changes}) < len(changes):
        raise KafkaError(INVALID_REQUEST, "Error due to duplicate config keys")


def _alter_loggers(name: str, changes: list[Change], context: ConfigContext, validate_only: bool) -> None:
    """All changes of one request are checked before the first is made."""
    _check_own_id(name, context, "Unexpected node id. Expected {}, but received {}", noun="Node")
    for logger, operation, level in changes:
        check_logger_change(logger, operation, level)
    if not validate_only:
        for logger, operation, level in changes:
            change_logger(logger, operation, level)


def may_be_looked_at(call: Call | None, changes: list[Change]) -> bool:
    """A new key or trust store is read to see whether it is good: not for who may not change it anyway, as the
    controller will say."""
    if call is None or not any(".ssl." in key for key, _, _ in changes):
        return True
    return may_cluster(call, ALTER_CONFIGS, is_filter=True)


def _check_broker_change(name: str, changes: list[Change], context: ConfigContext, replaces_all: bool) -> None:
    """The configs this broker (or all brokers) would have must be ones this broker can work with."""
    if name != "":
        _check_own_id(name, context, "Unexpected broker id, expected {}, but received {}", noun="Node")
    values: dict[str, str | None] = {} if replaces_all else dict(context.image.config(BROKER, name))
    for key, operation, value in changes:
        if operation == DELETE:
            values.pop(key, None)
        elif operation in (APPEND, SUBTRACT):
            values[key] = _changed_list(key, operation, value or "", values.get(key))
        else:
            values[key] = value
    context.broker.validate(values, per_broker=name != "")


def _changed_list(key: str, operation: int, value: str, before: str | None) -> str:
    definition = find_broker_key(key)
    if definition is None:
        raise KafkaError(INVALID_CONFIG, f"Unknown config name: {key}")
    if definition.type != LIST:
        verb = "append" if operation == APPEND else "subtract"
        raise KafkaError(INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {key}")
    items = split_list(definition.default or "" if before is None else before)
    wanted = split_list(value)
    if operation == APPEND:
        return ",".join(items + [item for item in wanted if item not in items])
    return ",".join(item for item in items if item not in wanted)
