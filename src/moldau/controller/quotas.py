"""Client quotas by user, client id and ip."""

from __future__ import annotations

from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import alter_client_quotas_request as request_messages
from moldau.protocol.messages import alter_client_quotas_response as response_messages
from moldau.protocol.stored.metadata_records import ClientQuotaRecord, EntityData

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"

_RATES = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_IP_RATES = ("connection_creation_rate",)
# Those that are whole numbers, and the largest of them.
_WHOLE_NUMBERS = {
    "producer_byte_rate": 2**63 - 1,
    "consumer_byte_rate": 2**63 - 1,
    "connection_creation_rate": 2**31 - 1,
}

Entity = tuple[tuple[str, str | None], ...]


class Quotas:
    def __init__(self, state: ControllerState) -> None:
        self.state = state

    def alter(
        self, request: request_messages.AlterClientQuotasRequest, unknown_hosts: frozenset[str] = frozenset()
    ) -> Result:
        """One result for each entity. As in Kafka the first change of an entity that is named twice is made, although
        the result is an error. `unknown_hosts` are names of ip entities that nobody could resolve."""
        records: list[VersionedRecord] = []
        rows: dict[Entity, response_messages.EntryData] = {}
        for entry in request.entries:
            names = {part.entity_type: part.entity_name for part in entry.entity}
            entity = tuple(sorted(names.items()))
            row = rows.get(entity)
            if row is None:
                row = response_messages.EntryData(
                    entity=[response_messages.EntityData(kind, name) for kind, name in names.items()]
                )
                row.error_message = None
                rows[entity] = row
                try:
                    _check_entity(names, unknown_hosts)
                    records += self._alter_one(entity, names, entry.ops)
                except KafkaError as error:
                    row.error_code, row.error_message = error.code, error.message
            else:
                row.error_code = errors.INVALID_REQUEST
                row.error_message = f"Ignoring duplicate entity {names}"
        return Result(
            [] if request.validate_only else records,
            response_messages.AlterClientQuotasResponse(entries=list(rows.values())),
        )

    def _alter_one(
        self, entity: Entity, names: dict[str, str | None], ops: list[request_messages.OpData]
    ) -> list[VersionedRecord]:
        allowed = _IP_RATES if IP in names else _RATES
        current = self.state.image.client_quotas.get(entity, {})
        parts = [EntityData(kind, name) for kind, name in names.items()]
        records: list[VersionedRecord] = []
        seen: set[str] = set()
        for op in ops:
            if op.key in seen:
                raise KafkaError(errors.INVALID_REQUEST, f"Duplicate quota key {op.key} not allowed")
            seen.add(op.key)
            if op.remove:
                if op.key in current:
                    records.append((ClientQuotaRecord(parts, op.key, 0.0, True), 0))
                continue
            if op.key not in allowed:
                raise KafkaError(errors.INVALID_REQUEST, f"Invalid configuration key {op.key}")
            _check_value(op.key, op.value)
            if current.get(op.key) != op.value:
                records.append((ClientQuotaRecord(parts, op.key, op.value, False), 0))
        return records


def _check_entity(names: dict[str, str | None], unknown_hosts: frozenset[str]) -> None:
    if not names:
        raise KafkaError(errors.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in names.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(errors.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise KafkaError(errors.INVALID_REQUEST, f"Empty {kind} not supported")
    if IP in names and len(names) > 1:
        message = "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        raise KafkaError(errors.INVALID_REQUEST, message)
    if names.get(IP) in unknown_hosts:
        raise KafkaError(errors.INVALID_REQUEST, f"{names[IP]} is not a valid IP or resolvable host.")


def _check_value(key: str, value: float) -> None:
    if not value > 0:
        raise KafkaError(errors.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    largest = _WHOLE_NUMBERS.get(key)
    if largest is None:
        return
    if value > largest:
        raise KafkaError(errors.INVALID_REQUEST, f"Proposed value for {key} is too large.")
    if abs(value - round(value)) > 1e-6:
        raise KafkaError(errors.INVALID_REQUEST, f"{key} cannot be a fractional value.")
