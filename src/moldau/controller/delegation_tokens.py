"""Delegation tokens: who has them made, how long they live, and their end (KIP-48, KIP-373).

Times are the calendar's, because tokens outlive every process. The secret of a token is not stored: each node derives
it from the token's id and `delegation.token.secret.key`. Kafka: DelegationTokenControlManager.
"""

from __future__ import annotations

from typing import Final

from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.metadata.features import supports_delegation_tokens
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from moldau.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from moldau.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from moldau.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from moldau.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from moldau.protocol.stored.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord
from moldau.protocol.uuids import random_uuid, uuid_to_text
from moldau.security.token_keys import TokenKeys

REMOVALS_PER_BATCH_MAX: Final = 1000
SECRET_KEY: Final = "delegation.token.secret.key"
USER_TYPE: Final = "User"


class DelegationTokens:
    def __init__(self, state: ControllerState) -> None:
        self.state = state
        self._keys = TokenKeys(state.config.get_str(SECRET_KEY))

    def create(self, request: CreateDelegationTokenRequest, requester: str, now_ms: int) -> Result:
        wall_ms = self.state.wall.at(now_ms)
        owner = requester
        if request.owner_principal_name:
            owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
        response = CreateDelegationTokenResponse()
        response.principal_type, _, response.principal_name = owner.partition(":")
        kind, _, name = requester.partition(":")
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
        try:
            self._check_enabled()
        except KafkaError as error:
            response.error_code = error.code
            return Result([], response)
        if any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
            response.error_code = errors.INVALID_PRINCIPAL_TYPE
            return Result([], response)
        record = self._new_token(request, owner, requester, wall_ms)
        response.issue_timestamp_ms = record.issue_timestamp
        response.expiry_timestamp_ms = record.expiration_timestamp
        response.max_timestamp_ms = record.max_timestamp
        response.token_id = record.token_id
        response.hmac = self._keys.of(record.token_id)
        return Result([(record, 0)], response)

    def _new_token(
        self, request: CreateDelegationTokenRequest, owner: str, requester: str, wall_ms: int
    ) -> DelegationTokenRecord:
        config = self.state.config
        lifetime_ms = config.get_int("delegation.token.max.lifetime.ms")
        if request.max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
        max_ms = wall_ms + lifetime_ms
        expiry_ms = min(max_ms, wall_ms + config.get_int("delegation.token.expiry.time.ms"))
        renewers = [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in request.renewers]
        token_id = uuid_to_text(random_uuid(self.state.rng.randbytes))
        return DelegationTokenRecord(owner, requester, renewers, wall_ms, max_ms, expiry_ms, token_id)

    def renew(self, request: RenewDelegationTokenRequest, principal: str, now_ms: int) -> Result:
        wall_ms = self.state.wall.at(now_ms)
        try:
            token = self._find(request.hmac)
            _check_not_expired(token, wall_ms)
            _check_may_renew(token, principal)
        except KafkaError as error:
            return Result([], RenewDelegationTokenResponse(error.code))
        period_ms = self.state.config.get_int("delegation.token.expiry.time.ms")
        if request.renew_period_ms > 0:
            period_ms = min(period_ms, request.renew_period_ms)
        renewed = _until(token, min(token.max_timestamp, wall_ms + period_ms))
        return Result([(renewed, 0)], RenewDelegationTokenResponse(0, renewed.expiration_timestamp))

    def expire(self, request: ExpireDelegationTokenRequest, principal: str, now_ms: int) -> Result:
        """At once where the period is negative."""
        wall_ms = self.state.wall.at(now_ms)
        at_once = request.expiry_time_period_ms < 0
        try:
            token = self._find(request.hmac)
            if not at_once:
                _check_not_expired(token, wall_ms)
            _check_may_renew(token, principal)
        except KafkaError as error:
            return Result([], ExpireDelegationTokenResponse(error.code))
        if at_once:
            removal = RemoveDelegationTokenRecord(token.token_id)
            return Result([(removal, 0)], ExpireDelegationTokenResponse(0, wall_ms))
        expired = _until(token, min(token.max_timestamp, wall_ms + request.expiry_time_period_ms))
        return Result([(expired, 0)], ExpireDelegationTokenResponse(0, expired.expiration_timestamp))

    def remove_expired(self, now_ms: int) -> tuple[list[VersionedRecord], bool]:
        """Removes what is over, some at a time, and tells whether there is more."""
        wall_ms = self.state.wall.at(now_ms)
        records: list[VersionedRecord] = []
        for token in self.state.image.tokens.values():
            if is_expired(token, wall_ms):
                if len(records) == REMOVALS_PER_BATCH_MAX:
                    return records, True
                records.append((RemoveDelegationTokenRecord(token.token_id), 0))
        return records, False

    def _check_enabled(self) -> None:
        if not self.state.config.get_str(SECRET_KEY):
            raise KafkaError(errors.DELEGATION_TOKEN_AUTH_DISABLED)
        if not supports_delegation_tokens(self.state.image.metadata_version):
            raise KafkaError(errors.UNSUPPORTED_VERSION)

    def _find(self, token: bytes) -> DelegationTokenRecord:
        self._check_enabled()
        tokens = self.state.image.tokens
        token_id = self._keys.find(bytes(token), set(tokens))
        if token_id is None:
            raise KafkaError(errors.DELEGATION_TOKEN_NOT_FOUND)
        return tokens[token_id]


def is_expired(token: DelegationTokenRecord, wall_ms: int) -> bool:
    return token.max_timestamp < wall_ms or token.expiration_timestamp < wall_ms


def may_renew(token: DelegationTokenRecord, principal: str) -> bool:
    """Who had it made for another owner may not."""
    return principal == token.owner or principal in token.renewers


def _check_not_expired(token: DelegationTokenRecord, wall_ms: int) -> None:
    if is_expired(token, wall_ms):
        raise KafkaError(errors.DELEGATION_TOKEN_EXPIRED)


def _check_may_renew(token: DelegationTokenRecord, principal: str) -> None:
    if not may_renew(token, principal):
        raise KafkaError(errors.DELEGATION_TOKEN_OWNER_MISMATCH)


def _until(token: DelegationTokenRecord, expiry_ms: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        token.owner,
        token.requester,
        token.renewers,
        token.issue_timestamp,
        token.max_timestamp,
        expiry_ms,
        token.token_id,
    )
