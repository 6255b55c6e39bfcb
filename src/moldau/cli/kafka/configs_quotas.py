"""The quotas and SCRAM users that `kafka-configs` shows and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import ask, java_failure
from moldau.cli.kafka.java_order import hash_map_order, hash_order, string_hash
from moldau.cli.kafka.options import JavaFailure

if TYPE_CHECKING:
    from moldau.client.admin import Admin, QuotaEntity

ENTITY_TYPES = {"users": "user", "clients": "client-id", "ips": "ip"}
SHOWN_TYPES = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
EXACT, DEFAULT, ANY = range(3)
# Java's client does not even ask controllers.
ENDPOINT_TYPE = "org.apache.kafka.common.errors.UnsupportedEndpointTypeException"
ENDPOINT_SENTENCE = "This Admin API is not yet supported when communicating directly with the controller quorum."


def describe_quotas(admin: Admin, types: list[str], names: list[str]) -> None:
    for entity, quotas in find_quotas(admin, types, names).items():
        print(quota_line(entity, quotas))
    if types[0] == "users" and "clients" not in types and "" not in names:
        _describe_users(admin, names)


def find_quotas(admin: Admin, types: list[str], names: list[str]) -> dict[QuotaEntity, dict[str, float]]:
    """The quotas of the entities that are meant, in the order of Java's maps."""
    from moldau.client.admin import QuotaFilter

    if len(names) > len(types):
        raise JavaFailure("java.lang.IllegalArgumentException", "More entity names specified than entity types")
    filters = []
    for index, kind in enumerate(types):
        entity_type = ENTITY_TYPES[kind]
        if index >= len(names):
            filters.append(QuotaFilter(entity_type, ANY))
        elif names[index]:
            filters.append(QuotaFilter(entity_type, EXACT, names[index]))
        else:
            filters.append(QuotaFilter(entity_type, DEFAULT))
    try:
        found = ask("describeClientQuotas", lambda: admin.describe_client_quotas(filters, strict=True))
    except JavaFailure as failure:
        if getattr(admin, "_to_controllers", False) and failure.class_name.endswith(".UnsupportedVersionException"):
            raise JavaFailure(ENDPOINT_TYPE, ENDPOINT_SENTENCE) from None
        raise
    return {entity: found[entity] for entity in hash_order(found, _entity_hash, len(found))}


def _entity_hash(entity: QuotaEntity) -> int:
    return 31 + sum(string_hash(kind) ^ (0 if name is None else string_hash(name)) for kind, name in entity.parts)


def quota_line(entity: QuotaEntity, quotas: dict[str, float]) -> str:
    parts = dict(entity.parts)
    whom = ", ".join(
        f"the default {shown}" if parts[kind] is None else f"{shown} '{parts[kind]}'"
        for kind, shown in SHOWN_TYPES.items()
        if kind in parts
    )
    values = ", ".join(f"{key}={java_double(quotas[key])}" for key in hash_map_order(quotas, len(quotas)))
    return f"Quota configs for {whom} are {values}"


def java_double(value: float) -> str:
    """A number as Java's Double.toString writes it: with an exponent from ten millions on."""
    size = abs(value)
    if value == 0 or 1e-3 <= size < 1e7:
        return repr(float(value))
    digits, _, exponent = f"{value:.16e}".partition("e")
    for precision in range(17):
        digits, _, exponent = f"{value:.{precision}e}".partition("e")
        if float(f"{digits}e{exponent}") == value:
            break
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _describe_users(admin: Admin, names: list[str]) -> None:
    outcomes = ask("describeUserScramCredentials", lambda: admin.describe_user_scram_credentials(names or None))
    for user, outcome in outcomes.items():
        if outcome.error is not None:
            if outcome.error.name != "RESOURCE_NOT_FOUND":
                failure = java_failure(outcome.error)
                kind = failure.class_name.rpartition(".")[2]
                sentence = f"Error retrieving SCRAM credential configs for user-principal '{user}'"
                print(f"{sentence}: {kind}: {failure.message}")
            continue
        # The newest mechanism comes first where a user has several.
        shown = ", ".join(
            f"{item.mechanism.name.replace('_', '-')}=iterations={item.iterations}" for item in outcome.get()
        )
        print(f"SCRAM credential configs for user-principal '{user}' are {shown}")
