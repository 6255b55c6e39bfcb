"""Delegation tokens on the controller: who may do what with them, and for how long they live."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.metadata.features import METADATA_VERSION
from moldau.protocol import errors
from moldau.protocol.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from moldau.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from moldau.protocol.stored.metadata_records import FeatureLevelRecord
from moldau.security.token_keys import token_hmac
from tests.unit.controller.world import World

DAY_MS = 86_400_000
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"


def new_world(**settings: str) -> World:
    return World(**{"delegation_token_secret_key": "secret", **settings})


@pytest.fixture
def w() -> World:
    return new_world()


def create(w: World, requester: str = ALICE, owner: str = "", lifetime_ms: int = -1, now_ms: int = 0) -> Any:
    kind, _, name = owner.partition(":")
    renewers = [CreatableRenewers("User", "bob")]
    request = CreateDelegationTokenRequest(kind, name, renewers, lifetime_ms)
    return w.run(w.controller.create_delegation_token(request, requester, now_ms))


def renew(w: World, hmac: bytes, period_ms: int = -1, by: str = ALICE, now_ms: int = 0) -> tuple[int, int]:
    request = RenewDelegationTokenRequest(hmac, period_ms)
    answer = w.run(w.controller.renew_delegation_token(request, by, now_ms))
    return answer.error_code, answer.expiry_timestamp_ms


def expire(w: World, hmac: bytes, period_ms: int = -1, by: str = ALICE, now_ms: int = 0) -> tuple[int, int]:
    request = ExpireDelegationTokenRequest(hmac, period_ms)
    answer = w.run(w.controller.expire_delegation_token(request, by, now_ms))
    return answer.error_code, answer.expiry_timestamp_ms


def test_a_new_token(w: World) -> None:
    answer = create(w, now_ms=1000)
    assert answer.error_code == 0 and len(answer.token_id) == 22
    assert answer.hmac == token_hmac("secret", answer.token_id)
    times = (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms)
    assert times == (1000, 1000 + DAY_MS, 1000 + 7 * DAY_MS)
    record = w.image.tokens[answer.token_id]
    assert (record.owner, record.requester, record.renewers) == (ALICE, ALICE, [BOB])
    assert (answer.principal_type, answer.principal_name) == ("User", "alice")


def test_a_shorter_life_and_another_owner(w: World) -> None:
    answer = create(w, ALICE, CAROL, 5000)
    assert (answer.expiry_timestamp_ms, answer.max_timestamp_ms) == (5000, 5000)
    assert (answer.principal_name, answer.token_requester_principal_name) == ("carol", "alice")
    assert create(w, lifetime_ms=30 * DAY_MS).max_timestamp_ms == 7 * DAY_MS
    # Who had it made for another may not renew it.
    assert renew(w, answer.hmac, by=ALICE)[0] == errors.DELEGATION_TOKEN_OWNER_MISMATCH
    assert renew(w, answer.hmac, by=CAROL) == (0, 5000)


def test_renewal(w: World) -> None:
    token = create(w).hmac
    assert renew(w, token, now_ms=DAY_MS // 2) == (0, DAY_MS // 2 + DAY_MS)
    assert renew(w, token, 1000, BOB, 5) == (0, 1005), "a renewal may shorten"
    assert renew(w, token, 100 * DAY_MS, BOB, 6) == (0, 6 + DAY_MS)
    assert renew(w, token, by=CAROL)[0] == errors.DELEGATION_TOKEN_OWNER_MISMATCH
    assert renew(w, b"none")[0] == errors.DELEGATION_TOKEN_NOT_FOUND
    assert renew(w, token, now_ms=2 * DAY_MS)[0] == errors.DELEGATION_TOKEN_EXPIRED
    assert renew(w, token, by=CAROL, now_ms=2 * DAY_MS)[0] == errors.DELEGATION_TOKEN_EXPIRED


def test_the_end_of_a_token(w: World) -> None:
    token = create(w)
    assert expire(w, token.hmac, 300, BOB, 10) == (0, 310)
    assert expire(w, token.hmac, 30 * DAY_MS, now_ms=10) == (0, 7 * DAY_MS)
    assert expire(w, token.hmac, -1, CAROL)[0] == errors.DELEGATION_TOKEN_OWNER_MISMATCH
    assert expire(w, token.hmac, 5, now_ms=8 * DAY_MS)[0] == errors.DELEGATION_TOKEN_EXPIRED
    assert expire(w, token.hmac, -1, now_ms=8 * DAY_MS) == (0, 8 * DAY_MS), "at once, also when it was over already"
    assert w.image.tokens == {}
    assert expire(w, token.hmac, -1)[0] == errors.DELEGATION_TOKEN_NOT_FOUND


def test_what_has_to_be_there() -> None:
    without = World()
    assert create(without).error_code == errors.DELEGATION_TOKEN_AUTH_DISABLED
    assert renew(without, b"x")[0] == expire(without, b"x")[0] == errors.DELEGATION_TOKEN_AUTH_DISABLED
    old = new_world()
    old.commit([(FeatureLevelRecord(METADATA_VERSION, 13), 0)])
    assert create(old).error_code == errors.UNSUPPORTED_VERSION
    assert renew(old, b"x")[0] == errors.UNSUPPORTED_VERSION


def test_only_users_renew(w: World) -> None:
    request = CreateDelegationTokenRequest("", "", [CreatableRenewers("Group", "g")], -1)
    answer = w.run(w.controller.create_delegation_token(request, ALICE, 0))
    assert answer.error_code == errors.INVALID_PRINCIPAL_TYPE and w.image.tokens == {}


def test_expired_tokens_are_removed_some_at_a_time() -> None:
    w = new_world(delegation_token_expiry_check_interval_ms="1000", metadata_max_idle_interval_ms="0")
    for _ in range(1003):
        create(w, lifetime_ms=50)
    kept = create(w).token_id
    duties = w.controller.duties
    duties.activate(0)
    w.controller.duties._unclean_ms = w.controller.duties._balance_ms = 1 << 62
    removed = []
    for now_ms in (1000, 1001, 1002, 1003):
        result = duties.take(now_ms)
        if result is not None:
            removed.append(len(result.records))
            w.run(result)
    assert removed == [1000, 3]
    assert list(w.image.tokens) == [kept]
    assert duties.next_ms(1003) == 2001
