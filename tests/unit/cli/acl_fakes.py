"""A scripted admin client that keeps ACLs, and finds and removes them as a broker does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.client.admin import AclBinding, AclFilter, PatternType
from moldau.client.results import Outcome
from tests.unit.cli.kafka.fakes import FakeAdmin


def matches(wanted: AclFilter, binding: AclBinding) -> bool:
    return (
        wanted.resource_type in (1, binding.resource_type)
        and _fits_name(wanted, binding)
        and wanted.principal in (None, binding.principal)
        and wanted.host in (None, binding.host)
        and wanted.operation in (1, binding.operation)
        and wanted.permission in (1, binding.permission)
    )


def _fits_name(wanted: AclFilter, binding: AclBinding) -> bool:
    name = wanted.resource_name
    if wanted.pattern_type == PatternType.MATCH and name is not None:
        if binding.pattern_type == PatternType.PREFIXED:
            return name.startswith(binding.resource_name)
        return binding.resource_name in (name, "*")
    return name in (None, binding.resource_name) and wanted.pattern_type in (1, 2, binding.pattern_type)


class AclAdmin(FakeAdmin):
    """Keeps what was created; other keywords are methods as with FakeAdmin."""

    def __init__(self, bindings: Iterable[AclBinding] = (), **answers: Any) -> None:
        self.bindings = list(bindings)
        own = {"describe_acls": self._describe, "create_acls": self._create, "delete_acls": self._delete}
        super().__init__(**(own | answers))

    def _describe(self, wanted: AclFilter | None = None) -> list[AclBinding]:
        return sorted(binding for binding in self.bindings if wanted is None or matches(wanted, binding))

    def _create(self, bindings: list[AclBinding]) -> dict[AclBinding, Outcome[None]]:
        self.bindings += [binding for binding in bindings if binding not in self.bindings]
        return {binding: Outcome(None) for binding in bindings}

    def _delete(self, filters: list[AclFilter]) -> dict[AclFilter, Outcome[dict[AclBinding, Outcome[None]]]]:
        found: dict[AclFilter, Outcome[dict[AclBinding, Outcome[None]]]] = {}
        for wanted in filters:
            removed = [binding for binding in self.bindings if matches(wanted, binding)]
            self.bindings = [binding for binding in self.bindings if binding not in removed]
            found[wanted] = Outcome({binding: Outcome(None) for binding in removed})
        return found
