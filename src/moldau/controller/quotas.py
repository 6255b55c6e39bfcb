"""Client quotas by user, client id and ip."""

from __future__ import annotations

from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import alter_client_quotas_request as asked
from moldau.protocol.messages import alter_client_quotas_response as answered
from moldau.protocol.stored.metadata_records import ClientQuotaRecord, EntityData

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"

_RATES = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_IP_RATES = ("connection_creation_rate",)
_WHOLE_NUMBERS = ("producer_byte_rate", "consumer_byte_rate", "connection_creation_rate")


class Quotas:
    def __init__(self, state: ControllerState) -> None:
        self.state = state

    def alter(self, request: asked.AlterClientQuotasRequest) -> Result:
        records: list[VersionedRecord] = []
        response = answered.AlterClientQuotasResponse()
        seen: set[tuple[tuple[str, str | None], ...]] = set()
        for entry in request.entries:
            row = answered.EntryData(entity=[answered.EntityData(e.entity_type, e.entity_name) for e in entry.entity])
            row.error_message = None
            try:
                key = tuple(sorted((e.entity_type, e.entity_name) for e in entry.entity))
                if key in seen:
                    raise KafkaError(errors.INVALID_REQUEST, f"Duplicate entity {dict(key)} in the request.")
                seen.add(key)
                records += self._alter_one(entry)
            except KafkaError as error:
                row.error_code, row.error_message = error.code, error.message
            response.entries.append(row)
        return Result([] if request.validate_only else records, response)

    def _alter_one(self, entry: asked.EntryData) -> list[VersionedRecord]:
        kinds = _check_entity(entry.entity)
        allowed = _IP_RATES if IP in kinds else _RATES
        current = self.state.image.client_quotas.get(
            tuple(sorted((e.entity_type, e.entity_name) for e in entry.entity)), {}
        )
        records: list[VersionedRecord] = []
        for op in entry.ops:
            if op.key not in allowed:
                raise KafkaError(errors.INVALID_REQUEST, f"Invalid configuration key {op.key}")
            entity = [EntityData(e.entity_type, e.entity_name) for e in entry.entity]
            if op.remove:
                if op.key in current:
                    records.append((ClientQuotaRecord(entity, op.key, 0.0, True), 0))
                continue
            _check_value(op.key, op.value)
            if current.get(op.key) != op.value:
                records.append((ClientQuotaRecord(entity, op.key, op.value, False), 0))
        return records


def _check_entity(entity: list[asked.EntityData]) -> set[str]:
    if not entity:
        raise KafkaError(errors.INVALID_REQUEST, "Invalid empty client quota entity")
    kinds = {e.entity_type for e in entity}
    for e in entity:
        if e.entity_type not in (USER, CLIENT_ID, IP):
            raise KafkaError(errors.INVALID_REQUEST, f"Unhandled client quota entity type: {e.entity_type}")
        if e.entity_name == "":
            raise KafkaError(errors.INVALID_REQUEST, f"Empty {e.entity_type} not supported")
    if IP in kinds and len(kinds) > 1:
        message = "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        raise KafkaError(errors.INVALID_REQUEST, message)
    return kinds


def _check_value(key: str, value: float) -> None:
    if not value > 0 and not (key == "connection_creation_rate" and value == 0):
        raise KafkaError(errors.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    if key in _WHOLE_NUMBERS and abs(value - round(value)) > 1e-6:
        raise KafkaError(errors.INVALID_REQUEST, f"{key} cannot be a fractional value.")
