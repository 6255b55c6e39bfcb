"""Admin methods for delegation tokens (KIP-48)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import checked_int, checked_name
from moldau.client.admin.routing import check
from moldau.protocol.integers import LONG_MAX


class Principal(NamedTuple):
    """Who: usually of the type User."""

    name: str
    type: str = "User"

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


class DelegationToken(NamedTuple):
    """A token; its hmac is as good as a password. Times are in milliseconds since 1970."""

    token_id: str
    hmac: bytes
    owner: Principal
    requester: Principal
    renewers: list[Principal]
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int

    def __repr__(self) -> str:
        return f"DelegationToken({self.token_id!r}, hmac hidden, owner={self.owner}, expires={self.expiry_timestamp})"


class TokenAdmin(AdminCalls):
    """Delegation tokens."""

    def create_delegation_token(
        self,
        renewers: Iterable[Principal] = (),
        owner: Principal | None = None,
        max_lifetime_ms: int = -1,
        timeout_ms: int | None = None,
    ) -> DelegationToken:
        """A token for the user of this connection, or for another owner (KIP-373); -1: the broker's longest time."""
        from moldau.protocol.messages.create_delegation_token_request import (
            CreatableRenewers,
            CreateDelegationTokenRequest,
        )
        from moldau.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse

        deadline = self._start(timeout_ms)
        allowed = [_checked(item) for item in renewers]
        request = CreateDelegationTokenRequest(
            owner_principal_type=None if owner is None else _checked(owner).type,
            owner_principal_name=None if owner is None else owner.name,
            renewers=[CreatableRenewers(principal_type=item.type, principal_name=item.name) for item in allowed],
            max_lifetime_ms=checked_int(max_lifetime_ms, "max_lifetime_ms", -1, LONG_MAX),
        )
        response = self._call_any(request, CreateDelegationTokenResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code)
        made_for = Principal(response.principal_name, response.principal_type)
        requester = Principal(response.token_requester_principal_name, response.token_requester_principal_type)
        return DelegationToken(
            response.token_id,
            response.hmac,
            made_for,
            # Before version 3 the owner alone can have asked.
            requester if requester.name else made_for,
            allowed,
            response.issue_timestamp_ms,
            response.expiry_timestamp_ms,
            response.max_timestamp_ms,
        )

    def renew_delegation_token(self, hmac: bytes, renew_period_ms: int = -1, timeout_ms: int | None = None) -> int:
        """Puts off a token's end; returns when it ends now."""
        from moldau.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
        from moldau.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse

        deadline = self._start(timeout_ms)
        request = RenewDelegationTokenRequest(
            hmac=_checked_hmac(hmac),
            renew_period_ms=checked_int(renew_period_ms, "renew_period_ms", -1, LONG_MAX),
        )
        response = self._call_any(request, RenewDelegationTokenResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code)
        return response.expiry_timestamp_ms

    def expire_delegation_token(self, hmac: bytes, expiry_period_ms: int = -1, timeout_ms: int | None = None) -> int:
        """Brings a token's end forward (-1: it ends at once); returns when it ends now."""
        from moldau.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
        from moldau.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse

        deadline = self._start(timeout_ms)
        request = ExpireDelegationTokenRequest(
            hmac=_checked_hmac(hmac),
            expiry_time_period_ms=checked_int(expiry_period_ms, "expiry_period_ms", -1, LONG_MAX),
        )
        response = self._call_any(request, ExpireDelegationTokenResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code)
        return response.expiry_timestamp_ms

    def describe_delegation_token(
        self, owners: Iterable[Principal] | None = None, timeout_ms: int | None = None
    ) -> list[DelegationToken]:
        """The tokens of these owners that the user may see; None: of all owners."""
        from moldau.protocol.messages.describe_delegation_token_request import (
            DescribeDelegationTokenOwner,
            DescribeDelegationTokenRequest,
        )
        from moldau.protocol.messages.describe_delegation_token_response import DescribeDelegationTokenResponse

        deadline = self._start(timeout_ms)
        rows = None
        if owners is not None:
            rows = [
                DescribeDelegationTokenOwner(principal_type=item.type, principal_name=item.name)
                for item in map(_checked, owners)
            ]
        request = DescribeDelegationTokenRequest(owners=rows)
        response = self._call_any(request, DescribeDelegationTokenResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code)
        return [
            DelegationToken(
                row.token_id,
                row.hmac,
                Principal(row.principal_name, row.principal_type),
                Principal(row.token_requester_principal_name, row.token_requester_principal_type),
                [Principal(item.principal_name, item.principal_type) for item in row.renewers],
                row.issue_timestamp,
                row.expiry_timestamp,
                row.max_timestamp,
            )
            for row in response.tokens
        ]


def _checked(item: Principal) -> Principal:
    checked_name(item.name, "principals")
    checked_name(item.type, "types of principals")
    return item


def _checked_hmac(hmac: bytes) -> bytes:
    if not isinstance(hmac, bytes) or not hmac:
        raise ValueError("A token is named by its hmac, which is not empty.")
    return hmac
