"""DescribeClientQuotas and AlterClientQuotas: limits by user, client id and ip (KIP-546).

Versions 0-1 of both. What is described comes from this node's image; changes are the active controller's.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.api.authorize import check_cluster, may_cluster_now
from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.metadata.image import MetadataImage, QuotaEntity
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import alter_client_quotas_response as altered
from moldau.protocol.messages import describe_client_quotas_response as described
from moldau.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from moldau.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from moldau.quota.connection_quotas import address_key
from moldau.security.rights import ALTER_CONFIGS, DESCRIBE_CONFIGS

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"

EXACT = 0
DEFAULT = 1
SPECIFIED = 2


def handle_alter_client_quotas(call: Call, request: AlterClientQuotasRequest) -> None:
    def failed(error: KafkaError) -> altered.AlterClientQuotasResponse:
        rows = []
        for entry in request.entries:
            entity = [altered.EntityData(e.entity_type, e.entity_name) for e in entry.entity]
            rows.append(altered.EntryData(error.code, error.message, entity))
        return altered.AlterClientQuotasResponse(entries=rows)

    def alter(unknown_hosts: frozenset[str]) -> None:
        submit(
            call,
            lambda controller: controller.alter_client_quotas(request, call.now_ms, unknown_hosts),
            failed,
            ALTER_CONFIGS,
        )

    hosts = {e.entity_name for entry in request.entries for e in entry.entity if e.entity_type == IP and e.entity_name}
    if not may_cluster_now(call, ALTER_CONFIGS):
        hosts.clear()  # nobody looks up names for who may not change anything; what it is told is up to the controller
    find_unknown_hosts(call, {host for host in hosts if address_key(host) is None}, alter)


def find_unknown_hosts(call: Call, hosts: set[str], done: Callable[[frozenset[str]], None]) -> None:
    """`done` is called with the names that have no address, at once when there are none to look up."""
    resolve = call.node.resolve_host
    if not hosts or resolve is None:
        done(frozenset())
        return
    waiting, unknown = set(hosts), set[str]()

    def on_found(host: str, is_known: bool) -> None:
        waiting.discard(host)
        if not is_known:
            unknown.add(host)
        if not waiting:
            done(frozenset(unknown))

    for host in hosts:
        resolve(host, on_found)


def handle_describe_client_quotas(call: Call, request: DescribeClientQuotasRequest) -> None:
    try:
        check_cluster(call, DESCRIBE_CONFIGS)
        response = describe_client_quotas(call.node.image, request)
    except KafkaError as error:
        message = None if error.code == errors.CLUSTER_AUTHORIZATION_FAILED else error.message
        response = described.DescribeClientQuotasResponse(0, error.code, message, None)
    call.respond(response)


def describe_client_quotas(
    image: MetadataImage, request: DescribeClientQuotasRequest
) -> described.DescribeClientQuotasResponse:
    """The quotas of all entities that every component of the filter fits; a strict filter names all their parts."""
    components: dict[str, ComponentData] = {}
    for component in request.components:
        _check_component(component, components)
        components[component.entity_type] = component
    if IP in components and (USER in components or CLIENT_ID in components):
        message = (
            "Invalid entity filter component combination: IP filter component should not be used with user or clientId "
            "filter component."
        )
        raise KafkaError(errors.INVALID_REQUEST, message)
    response = described.DescribeClientQuotasResponse(error_message=None, entries=[])
    assert response.entries is not None
    for entity, quotas in image.client_quotas.items():
        if _fits(entity, components, request.strict):
            parts = [described.EntityData(kind, name) for kind, name in entity]
            values = [described.ValueData(key, value) for key, value in quotas.items()]
            response.entries.append(described.EntryData(parts, values))
    return response


def _check_component(component: ComponentData, before: dict[str, ComponentData]) -> None:
    kind = component.entity_type
    if not kind:
        raise KafkaError(errors.INVALID_REQUEST, "Invalid empty entity type.")
    if kind in before:
        message = f"Entity type {kind} cannot appear more than once in the filter."
        raise KafkaError(errors.INVALID_REQUEST, message)
    if kind not in (USER, CLIENT_ID, IP):
        raise KafkaError(errors.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if component.match_type == EXACT and component.match is None:
        message = "Request specified MATCH_TYPE_EXACT, but set match string to null."
        raise KafkaError(errors.INVALID_REQUEST, message)
    if component.match_type in (DEFAULT, SPECIFIED) and component.match is not None:
        name = "MATCH_TYPE_DEFAULT" if component.match_type == DEFAULT else "MATCH_TYPE_SPECIFIED"
        message = f"Request specified {name}, but also specified a match string."
        raise KafkaError(errors.INVALID_REQUEST, message)
    if component.match_type not in (EXACT, DEFAULT, SPECIFIED):
        raise KafkaError(errors.INVALID_REQUEST, f"Unknown match type {component.match_type}")


def _fits(entity: QuotaEntity, components: dict[str, ComponentData], is_strict: bool) -> bool:
    if is_strict and len(entity) != len(components):
        return False
    parts = dict(entity)
    for kind, component in components.items():
        if kind not in parts:
            return False
        if component.match_type != SPECIFIED and parts[kind] != component.match:
            return False
    return True
