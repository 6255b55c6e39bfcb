"""ACLs: who may do what, searched and sorted; entries created and deleted."""

from __future__ import annotations

from typing import TypeVar

from moldau.actions.calls import Call, changing, reading
from moldau.actions.refusals import Refused
from moldau.client.admin import AclBinding, AclFilter, AclOperation, AclPermission, PatternType, ResourceType

Code = TypeVar("Code", ResourceType, AclOperation, AclPermission, PatternType)
NOT_OFFERED = ("UNKNOWN", "ANY", "MATCH")


async def list_acls(call: Call) -> object:
    found = await call.viewer.clients.ask(lambda admin: admin.describe_acls())
    page = call.page_of(
        found,
        name=lambda row: f"{row.principal} {row.resource_type.name} {row.resource_name} {row.operation.name}",
        key=(lambda row: row.resource_name) if call.text("sort", "principal") == "resource" else None,
    )
    return page.around([_row(row) for row in page.rows]) | {
        "resource_types": _names(ResourceType),
        "operations": _names(AclOperation),
        "permissions": _names(AclPermission),
        "pattern_types": _names(PatternType),
    }


def _names(kind: type[Code]) -> list[str]:
    return [item.name for item in kind if item.name not in NOT_OFFERED]


def _row(binding: AclBinding) -> dict[str, object]:
    return {
        "principal": binding.principal,
        "host": binding.host,
        "permission": binding.permission.name,
        "operation": binding.operation.name,
        "resource_type": binding.resource_type.name,
        "resource_name": binding.resource_name,
        "pattern_type": binding.pattern_type.name,
    }


def _binding(call: Call) -> AclBinding:
    return AclBinding(
        _code(ResourceType, call.text("resource_type")),
        call.text("resource_name"),
        call.text("principal"),
        _code(AclOperation, call.text("operation")),
        _code(AclPermission, call.text("permission", "ALLOW")),
        call.text("host", "*") or "*",
        _code(PatternType, call.text("pattern_type", "LITERAL")),
    )


def _code(kind: type[Code], name: str) -> Code:
    if name not in _names(kind):
        raise Refused(f"There is no {name!r}; there are {', '.join(_names(kind))}.")
    return kind[name]


def _note(call: Call, binding: AclBinding) -> None:
    call.target = binding.principal
    call.details = _row(binding)


async def create_acl(call: Call) -> object:
    binding = _binding(call)
    _note(call, binding)
    (await call.viewer.clients.ask(lambda admin: admin.create_acls([binding])))[binding].get()
    return {}


async def delete_acl(call: Call) -> object:
    """Exactly one entry."""
    binding = _binding(call)
    _note(call, binding)
    exact = AclFilter(
        binding.resource_type,
        binding.resource_name,
        binding.principal,
        binding.operation,
        binding.permission,
        binding.host,
        binding.pattern_type,
    )
    outcomes = await call.viewer.clients.ask(lambda admin: admin.delete_acls([exact]))
    deleted = outcomes[exact].get()
    for outcome in deleted.values():
        outcome.get()
    if not deleted:
        raise Refused("There is no such entry any more.", 404, "NOT_FOUND")
    return {}


ROUTES = [
    reading("/api/acls", list_acls),
    changing("/api/acls/create", "create ACL", create_acl),
    changing("/api/acls/delete", "delete ACL", delete_acl),
]
