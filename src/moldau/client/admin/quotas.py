"""Admin methods for client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import checked_name
from moldau.client.admin.routing import Key, check, outcome
from moldau.client.errors import error_for
from moldau.client.results import Outcome
from moldau.protocol.errors import UNKNOWN_SERVER_ERROR

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)

# What a part of a filter matches: one name, the default, or any name and the default.
EXACT = 0
DEFAULT = 1
ANY = 2


class QuotaEntity(NamedTuple):
    """Whom a quota is for: (type, name) pairs in the order of their types; the name None is the default."""

    parts: tuple[tuple[str, str | None], ...]

    @staticmethod
    def of(parts: Mapping[str, str | None]) -> QuotaEntity:
        """QuotaEntity.of({USER: "alice", CLIENT_ID: None})"""
        return QuotaEntity(tuple(sorted(parts.items())))


class QuotaFilter(NamedTuple):
    """One part of a filter: a type of entity, and EXACT with a name, DEFAULT or ANY."""

    entity_type: str
    match: int = ANY
    name: str | None = None


class QuotaAdmin(AdminCalls):
    """Client quotas."""

    def describe_client_quotas(
        self, filters: Iterable[QuotaFilter] = (), strict: bool = False, timeout_ms: int | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The quotas of all entities that match each filter; strict: that have no other types either."""
        from moldau.protocol.messages.describe_client_quotas_request import (
            ComponentData,
            DescribeClientQuotasRequest,
        )
        from moldau.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse

        deadline = self._start(timeout_ms)
        rows = []
        for item in filters:
            checked_name(item.entity_type, "types of entities")
            if item.match not in (EXACT, DEFAULT, ANY) or (item.match == EXACT) != (item.name is not None):
                raise ValueError(f"A filter has a name exactly when it is EXACT: {item}.")
            rows.append(ComponentData(entity_type=item.entity_type, match_type=item.match, match=item.name))
        request = DescribeClientQuotasRequest(components=rows, strict=strict)
        response = self._call_any(request, DescribeClientQuotasResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code, response.error_message)
        return {
            QuotaEntity.of({part.entity_type: part.entity_name for part in row.entity}): {
                value.key: value.value for value in row.values
            }
            for row in response.entries or []
        }

    def alter_client_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[QuotaEntity, Outcome[None]]:
        """Sets quotas, and (None) takes them away."""
        from moldau.protocol.messages import alter_client_quotas_request as request_messages
        from moldau.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse

        deadline = self._start(timeout_ms)
        if not changes:
            return {}
        rows = [
            request_messages.EntryData(
                entity=[request_messages.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts],
                ops=[
                    request_messages.OpData(
                        key=checked_name(key, "quotas"), value=_checked_value(key, value), remove=value is None
                    )
                    for key, value in quotas.items()
                ],
            )
            for entity, quotas in changes.items()
            if _checked_entity(entity)
        ]
        response = self._call_any(
            request_messages.AlterClientQuotasRequest(entries=rows, validate_only=validate_only),
            AlterClientQuotasResponse,
            deadline,
            lambda reply: [row.error_code for row in reply.entries],
        )
        outcomes = {
            QuotaEntity.of({part.entity_type: part.entity_name for part in row.entity}): outcome(
                row.error_code, row.error_message, None
            )
            for row in response.entries
        }
        return {entity: outcomes.get(QuotaEntity.of(dict(entity.parts)), _left_out(entity)) for entity in changes}


def _left_out(item: Key) -> Outcome[None]:
    return Outcome(error=error_for(UNKNOWN_SERVER_ERROR, f"The broker's response leaves out {item}."))


def _checked_entity(entity: QuotaEntity) -> QuotaEntity:
    if not entity.parts:
        raise ValueError("A quota is for somebody: the entity has no parts.")
    for kind, name in entity.parts:
        if kind not in ENTITY_TYPES:
            raise ValueError(f"There are quotas for {', '.join(ENTITY_TYPES)}, not for {kind!r}.")
        if name is not None:
            checked_name(name, "entities")
    return entity


def _checked_value(key: str, value: float | None) -> float:
    checked_name(key, "quotas")
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise ValueError(f"The quota {key} must be a number, not {value!r}.")
    return float(value)
