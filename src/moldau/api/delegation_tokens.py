"""Create-, Renew-, Expire- and DescribeDelegationToken: what a user gives to others so that they log in as the user.

Versions 1-3, 1-2, 1-2 and 1-3. Brokers check who asks and pass on what changes tokens, and the controller checks again;
brokers describe from what they know. Nobody gets a token over a connection that nobody logged in on, or that was opened
with a token.
"""

from __future__ import annotations

from typing import TypeVar

from moldau.api.authorize import may
from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.controller.controller import Controller
from moldau.controller.delegation_tokens import SECRET_KEY, USER_TYPE, may_renew
from moldau.controller.result import Result
from moldau.node.context import ClientContext
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from moldau.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from moldau.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from moldau.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from moldau.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from moldau.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from moldau.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from moldau.protocol.stored.metadata_records import DelegationTokenRecord
from moldau.security.rights import CREATE_TOKENS, DELEGATION_TOKEN, DESCRIBE, DESCRIBE_TOKENS, USER
from moldau.security.token_keys import token_hmac

ANONYMOUS = "User:ANONYMOUS"
NO_TIME = -1
FIRST_REQUESTER_VERSION = 3

AnyToken = TypeVar("AnyToken", CreateDelegationTokenResponse, DescribedDelegationToken)


def may_ask_for_tokens(context: ClientContext) -> bool:
    """A token must not beget tokens, and without a login there is nobody to act for: that is the broker's to know."""
    return not context.token_authenticated and (context.is_forwarded or context.principal != ANONYMOUS)


def may_create_for(call: Call, owner: str) -> bool:
    """Whether the caller may have a token made for this owner."""
    return owner == call.context.principal or may(call, CREATE_TOKENS, USER, owner)


def may_describe(call: Call, token: DelegationTokenRecord) -> bool:
    """Owner and renewers see a token; others by a right to the token itself or to what its owner has."""
    return (
        may_renew(token, call.context.principal)
        or may(call, DESCRIBE, DELEGATION_TOKEN, token.token_id)
        or may(call, DESCRIBE_TOKENS, USER, token.owner)
    )


def handle_create_delegation_token(call: Call, request: CreateDelegationTokenRequest) -> None:
    context, requester = call.context, call.context.principal
    owner = requester
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"

    def failed(error: KafkaError) -> CreateDelegationTokenResponse:
        kind, _, name = owner.partition(":")
        requester_kind, _, requester_name = requester.partition(":")
        response = CreateDelegationTokenResponse(
            error.code, kind, name, requester_kind, requester_name, NO_TIME, NO_TIME, NO_TIME
        )
        return without_requester(response) if call.version < FIRST_REQUESTER_VERSION else response

    def decide(controller: Controller) -> Result:
        result = controller.create_delegation_token(request, requester, call.now_ms)
        if call.version < FIRST_REQUESTER_VERSION:
            without_requester(result.response)
        return result

    code = errors.NONE
    if not may_ask_for_tokens(context):
        code = errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif not may_create_for(call, owner):
        code = errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    elif any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
        code = errors.INVALID_PRINCIPAL_TYPE
    if code != errors.NONE:
        call.respond(failed(KafkaError(code)))
        return
    submit(call, decide, failed)


def without_requester(response: AnyToken) -> AnyToken:
    """Versions before KIP-373 do not say who had a token made."""
    response.token_requester_principal_type = response.token_requester_principal_name = ""
    return response


def handle_renew_delegation_token(call: Call, request: RenewDelegationTokenRequest) -> None:
    def failed(error: KafkaError) -> RenewDelegationTokenResponse:
        return RenewDelegationTokenResponse(error.code, NO_TIME)

    if not may_ask_for_tokens(call.context):
        call.respond(failed(KafkaError(errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)))
        return
    principal = call.context.principal
    submit(call, lambda controller: controller.renew_delegation_token(request, principal, call.now_ms), failed)


def handle_expire_delegation_token(call: Call, request: ExpireDelegationTokenRequest) -> None:
    def failed(error: KafkaError) -> ExpireDelegationTokenResponse:
        return ExpireDelegationTokenResponse(error.code, NO_TIME)

    if not may_ask_for_tokens(call.context):
        call.respond(failed(KafkaError(errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)))
        return
    principal = call.context.principal
    submit(call, lambda controller: controller.expire_delegation_token(request, principal, call.now_ms), failed)


def handle_describe_delegation_token(call: Call, request: DescribeDelegationTokenRequest) -> None:
    secret = call.node.config.get_str(SECRET_KEY)
    if not may_ask_for_tokens(call.context):
        call.respond(DescribeDelegationTokenResponse(errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))
    elif not secret:
        call.respond(DescribeDelegationTokenResponse(errors.DELEGATION_TOKEN_AUTH_DISABLED))
    else:
        found = [describe(token, secret) for token in visible_tokens(call, request)]
        if call.version < FIRST_REQUESTER_VERSION:
            found = [without_requester(token) for token in found]
        call.respond(DescribeDelegationTokenResponse(tokens=found))


def visible_tokens(call: Call, request: DescribeDelegationTokenRequest) -> list[DelegationTokenRecord]:
    """Those of the owners that are asked for, or all of them; without those that the caller may not see."""
    tokens = list(call.node.image.tokens.values())
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
        tokens = [token for token in tokens if token.owner in owners or owners & set(token.renewers)]
    return [token for token in tokens if may_describe(call, token)]


def describe(token: DelegationTokenRecord, secret: str) -> DescribedDelegationToken:
    described = DescribedDelegationToken(
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret, token.token_id),
    )
    described.principal_type, _, described.principal_name = token.owner.partition(":")
    kind, _, name = token.requester.partition(":")
    described.token_requester_principal_type, described.token_requester_principal_name = kind, name
    for renewer in token.renewers:
        renewer_kind, _, renewer_name = renewer.partition(":")
        described.renewers.append(DescribedDelegationTokenRenewer(renewer_kind, renewer_name))
    return described
