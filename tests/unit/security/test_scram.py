"""SCRAM: both sides of the dialogue, and who does not get through."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable

import pytest

from moldau.security import scram
from moldau.security.exchange import NO_EXPIRY_MS, Derivation, LoginRefused
from moldau.security.scram import (
    HASHES,
    TOKENS_KEPT_MIN,
    Keys,
    ScramClient,
    ScramServer,
    ScramUsers,
    TokenOwner,
    keys_of,
)

SALT = b"0123456789abcdef0123"
PASSWORDS = {"alice": "secret", "a,b=c": "p,w=d", "": "x"}
TOKENS = {"token-1": TokenOwner("User:alice", 9_000, lambda: "hmac text")}


def find_user(mechanism: str, name: str) -> Keys | None:
    if name not in PASSWORDS or not name:
        return None
    salted = scram.salted_password(mechanism, PASSWORDS[name].encode(), SALT, 4096)
    return keys_of(mechanism, salted, SALT, 4096)


def users() -> ScramUsers:
    return ScramUsers(find_user, TOKENS.get, b"seed of a cluster")


def server(mechanism: str = "SCRAM-SHA-256", known: ScramUsers | None = None, nonce: str = "server") -> ScramServer:
    return ScramServer(mechanism, known or users(), nonce)


def evaluate(side: ScramServer, token: bytes) -> bytes:
    said = side.evaluate(token, 0)
    return said.resume(said.compute()) if isinstance(said, Derivation) else said


def talk(side: ScramServer, client: ScramClient, spoil: Callable[[str], str] = str) -> bytes | None:
    final = client.next(evaluate(side, client.first()))
    assert final is not None
    return client.next(evaluate(side, spoil(final.decode()).encode()))


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("user", ["alice", "a,b=c"])
def test_both_sides_prove_that_they_know_the_password(mechanism: str, user: str) -> None:
    side = server(mechanism)
    assert talk(side, ScramClient(mechanism, user, PASSWORDS[user], "nonce")) is None
    assert side.principal == f"User:{user}" and not side.token_authenticated
    assert side.expires_wall_ms == NO_EXPIRY_MS


def test_the_example_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    keys = keys_of("SCRAM-SHA-256", scram.salted_password("SCRAM-SHA-256", b"pencil", salt, 4096), salt, 4096)
    known = ScramUsers(lambda mechanism, name: keys if name == "user" else None, TOKENS.get, b"")
    side = server(known=known, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first = evaluate(side, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert evaluate(side, final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_wrong_password_and_an_unknown_user_are_answered_alike() -> None:
    """The answers have the same form and length, and an unknown name always has the same salt, on every node."""
    answers = []
    for name in ("alice", "alicf"):
        side = server()
        client = ScramClient("SCRAM-SHA-256", name, "wrong", "nonce")
        first = evaluate(side, client.first())
        answers.append(first)
        final = client.next(first)
        assert final is not None
        with pytest.raises(LoginRefused) as caught:
            side.evaluate(final, 0)
        assert (caught.value.told, caught.value.reason) == (None, "unknown user or wrong password")
        assert not side.is_complete
    shape = [re.sub(rb"s=[^,]*", b"s=", item) for item in answers]
    assert shape[0] == shape[1] and len(answers[0]) == len(answers[1])
    again, other = users().salt_for("SCRAM-SHA-256", "alicf"), users().salt_for("SCRAM-SHA-256", "alicg")
    assert base64.b64encode(again) in answers[1] and again != other
    assert users().salt_for("SCRAM-SHA-512", "alicf") != again


def test_whoever_knows_how_the_answer_for_nobody_is_made_still_does_not_get_in() -> None:
    known = users()
    keys = known.nobody("SCRAM-SHA-256", "ghost")
    side = server(known=known)
    first = evaluate(side, b"n,,n=ghost,r=n").decode()
    # Even with a client key that hashes to the stored key, which nobody has, the user would have to exist.
    side._keys = keys_of("SCRAM-SHA-256", b"salted", keys.salt, 4096)
    client_key = hmac.digest(b"salted", b"Client Key", "sha256")
    nonce = first[2:].partition(",")[0]
    message = f"n=ghost,r=n,{first},c=biws,r={nonce}".encode()
    signature = hmac.digest(side._keys.stored_key, message, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    with pytest.raises(LoginRefused, match="unknown user"):
        side.evaluate(f"c=biws,r={nonce},p={proof}".encode(), 0)


def test_nobody_acts_for_another_user() -> None:
    """CVE-2017-12610."""
    with pytest.raises(LoginRefused) as caught:
        server().evaluate(b"n,a=admin,n=alice,r=n", 0)
    assert caught.value.told is not None and "different from username" in caught.value.told
    assert evaluate(server(), b"n,a=alice,n=alice,r=n").startswith(b"r=nserver,")


def test_what_was_said_in_another_exchange_does_not_count() -> None:
    """CVE-2024-56128: replayed with the nonce of then, and with that of now."""
    client = ScramClient("SCRAM-SHA-256", "alice", "secret", "nonce")
    heard = client.next(evaluate(server(nonce="then"), client.first()))
    assert heard is not None
    for final in (heard, heard.replace(b"noncethen", b"noncenow")):
        side = server(nonce="now")
        evaluate(side, client.first())
        with pytest.raises(LoginRefused):
            side.evaluate(final, 0)
        assert not side.is_complete


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n",
        b"n,,",
        b"n,,n=alice",
        b"n,,r=nonce",
        b"n,,n=,r=nonce",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=a b",
        b"n,,n=a=b,r=nonce",
        b"n,,n=a=2Gb,r=nonce",
        b"n,,n=alice,r=nonce,",
        b"n,,n=alice,r=nonce,x",
        b"n,,m=ext,n=alice,r=nonce",
        b"y,,n=alice,r=nonce",
        b"p=tls-unique,,n=alice,r=nonce",
        b"n,alice,n=alice,r=nonce",
        b"n,,n=\xc3\xa4,r=nonce",
        b"n,,n=al\0ice,r=nonce",
        b"\xff\0\1",
    ],
)
def test_a_first_message_that_is_none(first: bytes) -> None:
    with pytest.raises(LoginRefused) as caught:
        server().evaluate(first, 0)
    assert caught.value.told is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.partition(",p=")[0],
        lambda text: text.partition(",p=")[0] + ",p=AAAA",
        lambda text: text.partition(",p=")[0] + ",p=",
        lambda text: text.partition(",p=")[0] + ",p=A",
        lambda text: text.replace("c=biws", "c=eSws"),
        lambda text: text.replace("c=biws,", ""),
        lambda text: text.replace("r=nonce", "r=nonc"),
        lambda text: text + ",x=y",
        lambda text: "",
    ],
)
def test_a_final_message_that_does_not_fit(spoil: Callable[[str], str]) -> None:
    side = server()
    with pytest.raises(LoginRefused) as caught:
        talk(side, ScramClient("SCRAM-SHA-256", "alice", "secret", "nonce"), spoil)
    assert caught.value.told is None and not side.is_complete


def test_too_few_stored_iterations_are_not_used() -> None:
    weak = ScramUsers(lambda mechanism, name: Keys(SALT, b"k" * 32, b"s" * 32, 4095), TOKENS.get, b"")
    with pytest.raises(LoginRefused, match="iterations"):
        server(known=weak).evaluate(b"n,,n=alice,r=n", 0)


def test_keys_and_nonces_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    really = hmac.compare_digest

    def compare(a: bytes, b: bytes) -> bool:
        compared.append(len(b))
        return really(a, b)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    talk(server(), ScramClient("SCRAM-SHA-256", "alice", "secret", "nonce"))
    assert compared == [32, len("nonceserver"), 32], "the proof, the nonce, and the server's signature"


# Delegation tokens


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_token_logs_in_its_owner(mechanism: str) -> None:
    known = users()
    side = server(mechanism, known)
    client = ScramClient(mechanism, "token-1", "hmac text", "nonce", is_token=True)
    assert client.first().endswith(b",tokenauth=true")
    assert talk(side, client) is None
    assert (side.principal, side.token_authenticated, side.expires_wall_ms) == ("User:alice", True, 9_000)
    # The second time nothing has to be derived, until the token is gone.
    assert isinstance(server(mechanism, known).evaluate(client.first(), 0), bytes)
    for number in range(TOKENS_KEPT_MIN):
        known.keep_token_keys(mechanism, f"gone-{number}", Keys(b"", b"", b"", 4096))
    known.forget_tokens({"token-1"})
    assert isinstance(server(mechanism, known).evaluate(client.first(), 0), bytes)
    for number in range(TOKENS_KEPT_MIN):
        known.keep_token_keys(mechanism, f"gone-{number}", Keys(b"", b"", b"", 4096))
    known.forget_tokens(())
    assert isinstance(server(mechanism, known).evaluate(client.first(), 0), Derivation)


def test_a_token_is_no_user_and_a_user_no_token() -> None:
    for name, is_token, password in (("token-1", False, "hmac text"), ("alice", True, "secret"), ("t", True, "x")):
        side = server()
        with pytest.raises(LoginRefused):
            talk(side, ScramClient("SCRAM-SHA-256", name, password, "nonce", is_token))
        assert not side.is_complete


def test_other_extensions_count_for_nothing() -> None:
    for extension in ("x=y", "tokenauth=false"):
        assert evaluate(server(), f"n,,n=alice,r=n,{extension}".encode()).startswith(b"r=nserver,")


# The client's side


def test_a_client_does_not_trust_a_broker_that_does_not_know_the_password() -> None:
    client = ScramClient("SCRAM-SHA-256", "alice", "secret", "nonce")
    client.next(evaluate(server(), client.first()))
    with pytest.raises(LoginRefused, match="does not know the password"):
        client.next(b"v=" + base64.b64encode(bytes(32)))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"e=other-error", "the broker says other-error"),
        (b"r=nonce,s=YWJj,i=4096", "does not begin with ours"),
        (b"r=other,s=YWJj,i=4096", "does not begin with ours"),
        (b"r=nonceX,s=YWJj,i=1", "iterations"),
        (b"r=nonceX,s=YWJj,i=99999999", "iterations"),
        (b"r=nonceX,s=***,i=4096", "not a SCRAM message"),
        (b"\xff", "not a SCRAM message"),
        (b"", "not a SCRAM message"),
    ],
)
def test_a_client_checks_what_the_broker_says(answer: bytes, sentence: str) -> None:
    with pytest.raises(LoginRefused, match=sentence):
        ScramClient("SCRAM-SHA-256", "alice", "secret", "nonce").next(answer)
