"""`kafka-delegation-tokens`: what is asked of the broker, and what is printed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from moldau.cli.kafka.delegation_tokens import decode_base64, main
from moldau.cli.kafka.frame import guard
from moldau.cli.kafka.options import JavaFailure
from moldau.client.admin import DelegationToken, Principal
from moldau.client.errors import error_for
from moldau.protocol.errors import DELEGATION_TOKEN_NOT_FOUND
from tests.unit.cli.kafka.fakes import FakeAdmin

ANNA, BERT = Principal("anna"), Principal("bert")
MINUTE_MS = 60_000
TOKEN = DelegationToken("token-id", b"secret", ANNA, BERT, [BERT], 0, MINUTE_MS, 2 * MINUTE_MS)


@pytest.fixture(autouse=True)
def in_utc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def run(admin: FakeAdmin, *arguments: str) -> int:
    where = ["--bootstrap-server", "h:1", "--command-config", "c"]
    return guard(lambda: main([*where, *arguments], admin.connect))


def test_a_token_is_created(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(create_delegation_token=TOKEN)
    renewer = ["--renewer-principal", "User:bert"]
    assert run(admin, "--create", "--max-life-time-period", "-1", *renewer, "--owner-principal", "User:anna") == 0
    assert admin.calls == [("create_delegation_token", ([BERT], ANNA, -1), {})]
    assert capsys.readouterr().out.splitlines() == [
        "Calling create token operation with renewers :[User:bert] , max-life-time-period :-1",
        "Created delegation token with tokenId : token-id",
        "",
        (
            "TOKENID         HMAC                           OWNER           REQUESTER       RENEWERS                  "
            "ISSUEDATE       EXPIRYDATE      MAXDATE        "
        ),
        "",
        (
            "token-id        c2VjcmV0                       User:anna       User:bert       [User:bert]               "
            "1970-01-01T00:00 1970-01-01T00:01 1970-01-01T00:02"
        ),
    ]


@pytest.mark.parametrize("word", ["--renew", "--expire"])
def test_a_token_is_renewed_and_expired(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(renew_delegation_token=MINUTE_MS, expire_delegation_token=MINUTE_MS)
    period = "--renew-time-period" if word == "--renew" else "--expiry-time-period"
    assert run(admin, word, "--hmac", "c2VjcmV0", period, "-7") == 0
    assert [arguments for _, arguments, _ in admin.calls] == [(b"secret", -1)]
    verb = word.removeprefix("--")
    assert capsys.readouterr().out == (
        f"Calling {verb} token operation with hmac :c2VjcmV0 , {verb}-time-period :-7\n"
        f"Completed {verb} operation. New expiry date : 1970-01-01T00:01"
    )


def test_tokens_of_owners_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(describe_delegation_token=lambda owners: [TOKEN] if owners else [])
    assert run(admin, "--describe", "--owner-principal", "User:anna", "--owner-principal", "User:bert") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "Calling describe token operation for owners: [User:anna, User:bert]",
        "Total number of tokens : 1",
    ]
    assert run(admin, "--describe") == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "Calling describe token operation for current user.",
        "Total number of tokens : 0",
    ]


def test_a_token_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(renew_delegation_token=error_for(DELEGATION_TOKEN_NOT_FOUND, None))
    assert run(admin, "--renew", "--hmac", "abcd", "--renew-time-period", "5") == 1
    cause = "org.apache.kafka.common.errors.DelegationTokenNotFoundException: Delegation Token is not found on server."
    assert capsys.readouterr().err == (
        f"{cause}\njava.util.concurrent.ExecutionException: {cause}\nCaused by: {cause}\n\n"
    )


@pytest.mark.parametrize("words", [["--max-life-time-period"], ["--max-life-time-period", "x"]])
def test_a_period_that_is_no_number_is_none(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeAdmin(), "--create", *words) == 1
    assert 'Cannot invoke "java.lang.Long.longValue()"' in capsys.readouterr().err


def test_base64_is_read_with_javas_complaints() -> None:
    assert decode_base64("abc") == decode_base64("abc=")
    complaints = {
        "x": "Input byte[] should at least have 2 bytes for base64 bytes",
        "***": "Illegal base64 character 2a",
        "abcde": "Last unit does not have enough valid bits",
        "ab=c": "Input byte array has wrong 4-byte ending unit",
        "abc==": "Input byte array has incorrect ending byte at 4",
    }
    for text, complaint in complaints.items():
        with pytest.raises(JavaFailure) as raised:
            decode_base64(text)
        assert raised.value.message == complaint
