"""`moldau token`: what is asked of the broker, and when a secret is shown."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from moldau.cli import token
from moldau.cli.root import root
from moldau.client.admin import DelegationToken, Principal
from moldau.client.errors import ClientError, error_for
from moldau.protocol.errors import DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
from tests.unit.cli.kafka.fakes import FakeAdmin

ANNA, BERT = Principal("anna"), Principal("bert")
SECRET = "c2VjcmV0"
HOUR_MS = 3_600_000
TOKEN = DelegationToken("token-id", b"secret", ANNA, BERT, [BERT], 0, HOUR_MS, 24 * HOUR_MS)


def run(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, *arguments: str, text: str = "") -> Result:
    monkeypatch.setattr(token, "open_admin", lambda connection: admin)
    return CliRunner().invoke(root, ["token", *arguments, "-b", "h:1"], input=text)


def test_a_secret_is_shown_at_creation_with_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin(create_delegation_token=TOKEN)
    words = ["--owner", "User:anna", "--renewer", "User:bert", "--max-life", "7d"]
    result = run(monkeypatch, admin, "create", *words, "-X", "security.protocol=SASL_PLAINTEXT")
    assert result.exit_code == 0, result.output
    assert admin.calls == [("create_delegation_token", ([BERT], ANNA, 7 * 24 * HOUR_MS), {})]
    assert "security.protocol=SASL_PLAINTEXT" in result.output
    assert f'username="token-id" password="{SECRET}" tokenauth="true";' in result.output
    made = json.loads(run(monkeypatch, admin, "create", "--format", "json").output)
    assert made["hmac"] == SECRET
    assert admin.calls[1] == ("create_delegation_token", ([], None, -1), {})


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (["security.protocol=SSL"], ["security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-256"]),
        (["security.protocol=PLAINTEXT"], ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256"]),
        (
            ["security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512"],
            ["security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512"],
        ),
        (
            ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN"],
            ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256"],
        ),
        ([], ["security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-256"]),
    ],
)
def test_a_token_logs_in_by_scram(monkeypatch: pytest.MonkeyPatch, given: list[str], lines: list[str]) -> None:
    """However its maker got in, by a certificate or by another mechanism."""
    flags = [word for pair in given for word in ("-X", pair)]
    result = run(monkeypatch, FakeAdmin(create_delegation_token=TOKEN), "create", *flags)
    assert result.exit_code == 0, result.output
    found = [line.strip() for line in result.stdout.splitlines()]
    assert [line for line in found if line.startswith(("security.protocol", "sasl.mechanism"))] == lines


def test_a_description_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin(describe_delegation_token=[TOKEN])
    for output in (
        run(monkeypatch, admin, "describe").output,
        run(monkeypatch, admin, "describe", "--owner", "User:anna", "--format", "json").output,
    ):
        assert "token-id" in output
        assert "User:anna" in output
        assert SECRET not in output
    assert [arguments for _, arguments, _ in admin.calls] == [(None,), ([ANNA],)]


def test_no_tokens_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, FakeAdmin(describe_delegation_token=[]), "describe")
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.parametrize(("verb", "option"), [("renew", "--for"), ("expire", "--in")])
def test_an_end_is_moved(monkeypatch: pytest.MonkeyPatch, verb: str, option: str) -> None:
    admin = FakeAdmin(renew_delegation_token=HOUR_MS, expire_delegation_token=HOUR_MS)
    shown = run(monkeypatch, admin, verb, SECRET)
    assert (shown.exit_code, "can be seen by others (`ps`)" in shown.stderr, SECRET in shown.output) == (0, True, False)
    result = run(monkeypatch, admin, verb, "-", option, "90s", "--format", "json", text=f"{SECRET}\n")
    assert result.stderr == ""
    assert json.loads(result.output) == {"expiry_timestamp": HOUR_MS}
    assert [arguments for _, arguments, _ in admin.calls] == [(b"secret", -1), (b"secret", 90_000)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["renew", "***"], "no HMAC of a token"),
        (["renew", ""], "no HMAC of a token"),
        (["renew", SECRET, "--for", "soon"], "not a duration"),
        (["renew", SECRET, "--for", "10"], "not a duration"),
        (["create", "--max-life", "-1d"], "not a duration"),
        (["create", "--owner", "anna"], "Did you mean User:anna?"),
        (["create", "--max-life", "99999999999999999999d"], "longer than can be counted"),
    ],
)
def test_what_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str) -> None:
    admin = FakeAdmin()
    result = run(monkeypatch, admin, *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert admin.calls == []


def test_a_connection_without_login_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin(create_delegation_token=error_for(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))
    result = run(monkeypatch, admin, "create")
    assert result.exit_code == 1
    assert not isinstance(result.exception, ClientError)
    assert "Log in with a password or a certificate" in result.stderr
