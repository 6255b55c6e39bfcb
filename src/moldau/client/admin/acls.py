"""Admin methods for access control lists."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.routing import Key, Value, check, outcome
from moldau.client.errors import error_for
from moldau.client.results import Outcome
from moldau.protocol.errors import UNKNOWN_SERVER_ERROR

if TYPE_CHECKING:
    from moldau.protocol.messages.delete_acls_response import DeleteAclsFilterResult

NOT_ASKED = -0x80000000


class _Code(IntEnum):
    """A number of the protocol; one that is not known is UNKNOWN, for brokers may be newer than this client."""

    @classmethod
    def _missing_(cls, value: object) -> _Code:
        return cls(0)


class ResourceType(_Code):
    """What a rule is about: topics, groups, the cluster, and so on."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Code):
    """MATCH and ANY are for filters: MATCH finds all that applies to a name, also by prefix and wildcard."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Code):
    """What a rule is about doing: reading, writing, describing, and so on."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(_Code):
    """Whether a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(NamedTuple):
    """One rule: who may or may not do what, from where, to which resource."""

    resource_type: ResourceType
    resource_name: str
    principal: str
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    host: str = "*"
    pattern_type: PatternType = PatternType.LITERAL


class AclFilter(NamedTuple):
    """Which rules; None and ANY stand for all values."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY
    host: str | None = None
    pattern_type: PatternType = PatternType.ANY


def authorized(bits: int) -> set[AclOperation] | None:
    """What the user may do, from a bit for each operation; None where that was not asked."""
    if bits == NOT_ASKED:
        return None
    return {operation for operation in AclOperation if bits >> operation & 1}


class AclAdmin(AdminCalls):
    """Access control lists."""

    def describe_acls(self, wanted: AclFilter | None = None, timeout_ms: int | None = None) -> list[AclBinding]:
        """The rules that match the filter; None: all."""
        from moldau.protocol.messages.describe_acls_request import DescribeAclsRequest
        from moldau.protocol.messages.describe_acls_response import DescribeAclsResponse

        deadline = self._start(timeout_ms)
        found = _checked_filter(AclFilter() if wanted is None else wanted)
        request = DescribeAclsRequest(
            resource_type_filter=found.resource_type,
            resource_name_filter=found.resource_name,
            pattern_type_filter=found.pattern_type,
            principal_filter=found.principal,
            host_filter=found.host,
            operation=found.operation,
            permission_type=found.permission,
        )
        response = self._call_any(request, DescribeAclsResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code, response.error_message)
        return sorted(
            AclBinding(
                ResourceType(row.resource_type),
                row.resource_name,
                item.principal,
                AclOperation(item.operation),
                AclPermission(item.permission_type),
                item.host,
                PatternType(row.pattern_type),
            )
            for row in response.resources
            for item in row.acls
        )

    def create_acls(
        self, bindings: Iterable[AclBinding], timeout_ms: int | None = None
    ) -> dict[AclBinding, Outcome[None]]:
        """Adds rules."""
        from moldau.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
        from moldau.protocol.messages.create_acls_response import CreateAclsResponse

        deadline = self._start(timeout_ms)
        wanted = [_checked_binding(item) for item in dict.fromkeys(bindings)]
        if not wanted:
            return {}
        rows = [
            AclCreation(
                resource_type=item.resource_type,
                resource_name=item.resource_name,
                resource_pattern_type=item.pattern_type,
                principal=item.principal,
                host=item.host,
                operation=item.operation,
                permission_type=item.permission,
            )
            for item in wanted
        ]
        response = self._call_any(
            CreateAclsRequest(creations=rows),
            CreateAclsResponse,
            deadline,
            lambda reply: [row.error_code for row in reply.results],
        )
        return _in_order(wanted, [outcome(row.error_code, row.error_message, None) for row in response.results])

    def delete_acls(
        self, filters: Iterable[AclFilter], timeout_ms: int | None = None
    ) -> dict[AclFilter, Outcome[dict[AclBinding, Outcome[None]]]]:
        """Removes the rules that match each filter, and tells what became of each of them."""
        from moldau.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
        from moldau.protocol.messages.delete_acls_response import DeleteAclsResponse

        deadline = self._start(timeout_ms)
        wanted = [_checked_filter(item) for item in dict.fromkeys(filters)]
        if not wanted:
            return {}
        rows = [
            DeleteAclsFilter(
                resource_type_filter=item.resource_type,
                resource_name_filter=item.resource_name,
                pattern_type_filter=item.pattern_type,
                principal_filter=item.principal,
                host_filter=item.host,
                operation=item.operation,
                permission_type=item.permission,
            )
            for item in wanted
        ]
        response = self._call_any(
            DeleteAclsRequest(filters=rows),
            DeleteAclsResponse,
            deadline,
            lambda reply: [row.error_code for row in reply.filter_results],
        )
        results = [outcome(row.error_code, row.error_message, _removed(row)) for row in response.filter_results]
        return _in_order(wanted, results)


def _in_order(items: list[Key], results: list[Outcome[Value]]) -> dict[Key, Outcome[Value]]:
    """The response has a row for each item, in the order of the request."""
    if len(items) != len(results):
        sentence = f"The response has {len(results)} of {len(items)} items; which ones is not known."
        raise error_for(UNKNOWN_SERVER_ERROR, sentence)
    return dict(zip(items, results, strict=True))


def _removed(row: DeleteAclsFilterResult) -> dict[AclBinding, Outcome[None]]:
    return {
        AclBinding(
            ResourceType(item.resource_type),
            item.resource_name,
            item.principal,
            AclOperation(item.operation),
            AclPermission(item.permission_type),
            item.host,
            PatternType(item.pattern_type),
        ): outcome(item.error_code, item.error_message, None)
        for item in row.matching_acls
    }


def _checked_binding(item: AclBinding) -> AclBinding:
    """A rule must be definite; the broker would only say that the request is invalid."""
    codes: list[_Code] = [item.resource_type, item.operation, item.permission, item.pattern_type]
    if any(code in (0, 1) for code in codes) or item.pattern_type == PatternType.MATCH:
        raise ValueError(f"A rule must be definite, without ANY, MATCH or UNKNOWN: {item}.")
    if not item.resource_name or not item.host or ":" not in item.principal:
        raise ValueError(f"A rule needs a resource, a host, and a principal such as User:alice: {item}.")
    return item


def _checked_filter(item: AclFilter) -> AclFilter:
    codes: list[_Code] = [item.resource_type, item.operation, item.permission, item.pattern_type]
    if any(code == 0 for code in codes):
        raise ValueError(f"A filter must not ask for UNKNOWN: {item}.")
    return item
