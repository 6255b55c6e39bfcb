"""Delegation tokens as clients ask for them: who may ask, for whom, and what is seen."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.node.context import ClientContext
from moldau.protocol import errors
from moldau.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from moldau.protocol.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from moldau.protocol.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from moldau.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from moldau.security.rights import ALLOW, CREATE_TOKENS, DELEGATION_TOKEN, DESCRIBE, DESCRIBE_TOKENS, LITERAL, USER
from tests.unit.node.world import NodeWorld

SETTINGS = {
    "delegation_token_secret_key": "secret",
    "authorizer_class_name": STANDARD_AUTHORIZER,
    "super_users": "User:admin",
}


def as_user(world: NodeWorld, name: str, by_token: bool = False) -> None:
    world.context = ClientContext("SASL", "127.0.0.1:5000")
    world.context.principal = f"User:{name}"
    world.context.token_authenticated = by_token


@pytest.fixture
def world() -> NodeWorld:
    made = NodeWorld(**SETTINGS).start()
    as_user(made, "alice")
    return made


def create(world: NodeWorld, *renewers: str, owner: str = "", kind: str = "User") -> Any:
    rows = [CreatableRenewers(kind, name) for name in renewers]
    return world.ask(CreateDelegationTokenRequest("User" if owner else "", owner, rows, -1), 3)


def describe(world: NodeWorld, *owners: str, everybody: bool = False) -> Any:
    rows = [DescribeDelegationTokenOwner("User", name) for name in owners]
    return world.ask(DescribeDelegationTokenRequest(None if everybody else rows), 3)


def test_a_token_is_made_shown_renewed_and_ended(world: NodeWorld) -> None:
    made = create(world, "bob")
    assert made.error_code == 0 and (made.principal_type, made.principal_name) == ("User", "alice")
    (shown,) = describe(world, "alice").tokens
    assert (shown.token_id, shown.hmac) == (made.token_id, made.hmac)
    assert [(row.principal_type, row.principal_name) for row in shown.renewers] == [("User", "bob")]
    renewed = world.ask(RenewDelegationTokenRequest(made.hmac, 5000), 2)
    assert renewed.error_code == 0 and renewed.expiry_timestamp_ms < made.expiry_timestamp_ms
    as_user(world, "bob")
    assert world.ask(ExpireDelegationTokenRequest(made.hmac, -1), 2).error_code == 0
    assert describe(world, everybody=True).tokens == []


def test_everybody_sees_only_what_is_theirs(world: NodeWorld) -> None:
    own = create(world, "bob").token_id
    assert [token.token_id for token in describe(world, everybody=True).tokens] == [own]
    assert describe(world).tokens == [], "of no owner"
    as_user(world, "bob")
    assert [token.token_id for token in describe(world, "alice").tokens] == [own]
    assert [token.token_id for token in describe(world, "bob").tokens] == [own]
    as_user(world, "carol")
    for answer in (describe(world, "alice"), describe(world, everybody=True)):
        assert (answer.error_code, answer.tokens) == (0, [])


@pytest.mark.parametrize("who", ["nobody", "by token"])
def test_who_may_not_ask(world: NodeWorld, who: str) -> None:
    hmac = create(world).hmac
    as_user(world, "ANONYMOUS" if who == "nobody" else "alice", by_token=who == "by token")
    refused = errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    made = create(world)
    assert (made.error_code, made.expiry_timestamp_ms, made.hmac) == (refused, -1, b"")
    for answer in (
        world.ask(RenewDelegationTokenRequest(hmac, -1), 2),
        world.ask(ExpireDelegationTokenRequest(hmac, -1), 2),
    ):
        assert (answer.error_code, answer.expiry_timestamp_ms) == (refused, -1)
    assert describe(world, everybody=True).error_code == refused


def test_nobody_gets_a_token_of_another_user(world: NodeWorld) -> None:
    answer = create(world, owner="carol")
    assert answer.error_code == errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED and answer.hmac == b""
    assert create(world, owner="alice").error_code == 0
    assert create(world, "g", kind="Group").error_code == errors.INVALID_PRINCIPAL_TYPE


def allow(world: NodeWorld, user: str, operation: int, resource_type: int, name: str) -> None:
    before, world.context = world.context, ClientContext("SASL", "127.0.0.1:5001")
    world.context.principal = "User:admin"
    row = AclCreation(resource_type, name, LITERAL, f"User:{user}", "*", operation, ALLOW)
    assert world.ask(CreateAclsRequest([row]), 3).results[0].error_code == 0
    world.context = before


def test_who_has_the_right_makes_tokens_for_others(world: NodeWorld) -> None:
    allow(world, "alice", CREATE_TOKENS, USER, "User:carol")
    made = create(world, owner="carol")
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "carol", "alice")
    assert create(world, owner="dave").error_code == errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    renewed = world.ask(RenewDelegationTokenRequest(made.hmac, -1), 2)
    assert renewed.error_code == errors.DELEGATION_TOKEN_OWNER_MISMATCH, "who made it for another may not renew it"


@pytest.mark.parametrize("of_the_owner", [False, True])
def test_who_has_the_right_sees_tokens_of_others(world: NodeWorld, of_the_owner: bool) -> None:
    own = create(world).token_id
    as_user(world, "carol")
    assert describe(world, everybody=True).tokens == []
    if of_the_owner:
        allow(world, "carol", DESCRIBE_TOKENS, USER, "User:alice")
    else:
        allow(world, "carol", DESCRIBE, DELEGATION_TOKEN, own)
    assert [token.token_id for token in describe(world, everybody=True).tokens] == [own]


def test_without_an_authorizer_nobody_asks_for_rights() -> None:
    world = NodeWorld(delegation_token_secret_key="secret").start()
    as_user(world, "alice")
    assert create(world, owner="carol").error_code == 0
    assert len(describe(world, everybody=True).tokens) == 1


def test_without_the_secret_there_are_none() -> None:
    world = NodeWorld().start()
    as_user(world, "alice")
    disabled = errors.DELEGATION_TOKEN_AUTH_DISABLED
    assert create(world).error_code == disabled
    assert describe(world, everybody=True).error_code == disabled
    assert world.ask(RenewDelegationTokenRequest(b"x", -1), 2).error_code == disabled
    assert world.ask(ExpireDelegationTokenRequest(b"x", -1), 2).error_code == disabled


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_is_answered(world: NodeWorld, version: int) -> None:
    """Only the last one says who had a token made."""
    made = world.ask(
        CreateDelegationTokenRequest(renewers=[CreatableRenewers("User", "bob")], max_lifetime_ms=-1), version
    )
    assert made.error_code == 0 and len(made.hmac) == 64
    assert made.token_requester_principal_name == ("alice" if version == 3 else "")
    (shown,) = world.ask(DescribeDelegationTokenRequest(None), version).tokens
    assert shown.token_requester_principal_name == ("alice" if version == 3 else "")
    as_user(world, "ANONYMOUS")
    refused = world.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), version)
    assert refused.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def forwarded(world: NodeWorld, name: str, by_token: bool = False) -> None:
    """As the controller sees a client of a broker."""
    world.context = ClientContext("CONTROLLER", "127.0.0.1:5000", True)
    world.context.principal = f"User:{name}"
    world.context.token_authenticated = by_token
    world.context.is_forwarded = True


def test_the_controller_checks_again_what_a_broker_has_passed_on(world: NodeWorld) -> None:
    """The right to make tokens for another user, and that no token begets another one; as Kafka's ControllerApis."""
    forwarded(world, "alice")
    assert create(world).error_code == 0
    refused = create(world, owner="carol")
    assert (refused.error_code, refused.hmac) == (errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED, b"")
    assert (refused.principal_name, refused.token_requester_principal_name) == ("carol", "alice")
    as_user(world, "admin")
    allow(world, "alice", CREATE_TOKENS, USER, "User:carol")
    forwarded(world, "alice")
    made = create(world, owner="carol")
    assert (made.error_code, made.principal_name) == (0, "carol")
    forwarded(world, "alice", by_token=True)
    assert create(world).error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    for request in (RenewDelegationTokenRequest(made.hmac, -1), ExpireDelegationTokenRequest(made.hmac, -1)):
        assert world.ask(request, 2).error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_broker_that_passes_on_a_request_without_a_login_has_checked_that_itself(world: NodeWorld) -> None:
    """The controller is asked over a listener of its own, so it cannot know how the client came."""
    forwarded(world, "ANONYMOUS")
    assert create(world).error_code == 0
