"""The dialogue of OAUTHBEARER."""

from __future__ import annotations

import pytest

from moldau.security.bearer_tokens import BearerToken, TokenRefused
from moldau.security.exchange import LoginRefused
from moldau.security.oauth_bearer import OAuthBearerClient, OAuthBearerServer, status_of

SHOWN: list[str] = []


def validate(token: str, wall_ms: int) -> BearerToken:
    SHOWN.append(token)
    if token != "good.one":
        raise TokenRefused("not good")
    return BearerToken("carol", wall_ms + 500, frozenset())


def server() -> OAuthBearerServer:
    return OAuthBearerServer(validate)


def test_a_good_token() -> None:
    side, client = server(), OAuthBearerClient("good.one", {"logicalCluster": "l 1"})
    assert client.next(side.evaluate(client.first(), 1_000)) is None
    assert (side.principal, side.expires_wall_ms) == ("User:carol", 1_500)
    assert server().evaluate(b"n,a=carol,\x01auth=bEARER  good.one\x01\x01", 0) == b""


def test_a_bad_token_is_explained_and_acknowledged() -> None:
    side, client = server(), OAuthBearerClient("bad")
    told = side.evaluate(client.first(), 0)
    assert told == b'{"status":"invalid_token"}' and not side.is_complete
    acknowledged = client.next(told)
    assert acknowledged == b"\x01"
    with pytest.raises(LoginRefused) as caught:
        side.evaluate(acknowledged, 0)
    assert caught.value.told == '{"status":"invalid_token"}'


def test_after_a_bad_token_there_is_no_second_try() -> None:
    side = server()
    side.evaluate(OAuthBearerClient("bad").first(), 0)
    with pytest.raises(LoginRefused) as caught:
        side.evaluate(OAuthBearerClient("good.one").first(), 0)
    assert caught.value.told is None and not side.is_complete


def test_nobody_acts_for_another_user() -> None:
    side = server()
    with pytest.raises(LoginRefused, match="different from the token's principal name"):
        side.evaluate(b"n,a=admin,\x01auth=Bearer good.one\x01\x01", 0)
    assert not side.is_complete


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer good.one\x01",
        b"n,,auth=Bearer good.one\x01\x01",
        b"y,,\x01auth=Bearer good.one\x01\x01",
        b"n,,\x01auth=Basic good.one\x01\x01",
        b"n,,\x01auth=good.one\x01\x01",
        b"n,,\x01auth=Bearer go od\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01key=value\x01\x01",
        b"n,,\x01auth=Bearer good.one\x01\x01\x01",
        b"n,,\x01auth=Bearer good.one\x01k1=x\x01\x01",
        b"n,,\x01auth=Bearer g\xff\x01\x01",
    ],
)
def test_a_first_message_that_is_none(first: bytes) -> None:
    SHOWN.clear()
    with pytest.raises(LoginRefused) as caught:
        server().evaluate(first, 0)
    assert caught.value.told is None and SHOWN == []


def test_names_of_extensions() -> None:
    for name in ("auth", "a1", "a-b", ""):
        with pytest.raises(LoginRefused):
            OAuthBearerClient("t", {name: "x"})


def test_the_status_of_a_refusal() -> None:
    assert status_of('{"status":"invalid_token"}') == "invalid_token"
    assert status_of("text") == "text" and status_of("[]") == "[]"
