"""`moldau acl` and `moldau token` against a Moldau with an authorizer: what they say is what the broker does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli.root import root
from moldau.client import Admin, NewTopic
from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.security.rights import OPERATION_NAMES, OPERATIONS_OF, TOPIC
from tests.interop.conftest import running
from tests.interop.sasl_moldau import SECOND_USER, SaslMoldau
from tests.interop.secured import PLAIN_USER, User

SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
ALICE = f"User:{PLAIN_USER.name}"
ENTRIES = [
    [ALICE, "read", "topic", "orders"],
    ["User:*", "write", "topic", "ord", "--prefix"],
    [ALICE, "write", "topic", "orders-private", "--deny"],
    [ALICE, "all", "topic", "*", "--host", "10.9.9.9"],
    [ALICE, "alter-configs", "topic", "*"],
    [ALICE, "delete", "topic", "payments", "--host", "127.0.0.1"],
    [ALICE, "describe", "topic", "payments", "--deny", "--host", "127.0.0.1"],
]
TOPICS = ("orders", "orders-private", "payments", "other")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslMoldau]:
    yield from running(SaslMoldau(tmp_path_factory.mktemp("guarded"), SETTINGS))


def run(address: str, *arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(root, [*arguments, "-b", address], input=text)


def login(user: User) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user.name,
        "sasl.password": user.password,
    }


def flags(user: User) -> list[str]:
    return [word for name, value in login(user).items() for word in ("-X", f"{name}={value}")]


def test_the_answer_is_the_brokers(node: SaslMoldau) -> None:
    """The broker tells everybody what it lets them do with a topic that they may describe."""
    for words in ENTRIES:
        created = run(node.bootstrap, "acl", "create", *words)
        assert created.exit_code == 0, created.output
    with Admin(node.bootstrap) as admin:
        assert all(
            outcome.error is None for outcome in admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS]).values()
        )
    with Admin(node.sasl_plaintext, config=login(PLAIN_USER)) as admin:
        outcomes = admin.describe_topics(list(TOPICS))
    seen = 0
    for name in TOPICS:
        told = outcomes[name]
        bits = 0 if told.error is not None else told.get().authorized_operations or 0
        allowed = {word for number, word in enumerate(OPERATION_NAMES) if bits >> number & 1}
        for operation in OPERATIONS_OF[TOPIC]:
            word = OPERATION_NAMES[operation]
            if told.error is not None and word != "DESCRIBE":
                continue
            answer = run(node.bootstrap, "acl", "test", ALICE, word, "topic", name, "--host", "127.0.0.1")
            assert (answer.exit_code == 0) == (word in allowed), (name, word, answer.output, allowed)
            seen += 1
    assert seen >= 2 * len(OPERATIONS_OF[TOPIC])


def test_entries_go_as_they_came(node: SaslMoldau) -> None:
    who = ["--principal", "User:passing"]
    for name in ("a", "b"):
        assert run(node.bootstrap, "acl", "create", "User:passing", "read,delete", "group", name).exit_code == 0
    listed = json.loads(run(node.bootstrap, "acl", "list", *who, "--format", "json").output)
    assert len(listed) == 4
    assert run(node.bootstrap, "acl", "delete", *who, text="n\n").exit_code == 1
    deleted = run(node.bootstrap, "acl", "delete", "group", "a", *who, "--yes", "--format", "json")
    assert [row["deleted"] for row in json.loads(deleted.output)] == [True, True]
    listed = json.loads(run(node.bootstrap, "acl", "list", *who, "--format", "json").output)
    assert {row["resource_name"] for row in listed} == {"b"}


def test_who_may_not_describe_the_cluster_is_told_so(node: SaslMoldau) -> None:
    refused = run(node.sasl_plaintext, "acl", "list", *flags(SECOND_USER))
    assert refused.exit_code == 1
    assert "moldau acl create" in refused.stderr


def test_a_token_is_a_login_until_it_ends(node: SaslMoldau) -> None:
    made = json.loads(run(node.sasl_plaintext, "token", "create", *flags(PLAIN_USER), "--format", "json").output)
    secret = made["hmac"]
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    jaas = f'{module} username="{made["token_id"]}" password="{secret}" tokenauth="true";'
    by_token = ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=SCRAM-SHA-256"]
    by_token += ["-X", f"sasl.jaas.config={jaas}"]
    assert run(node.sasl_plaintext, "topic", "list", *by_token).exit_code == 0
    described = run(node.sasl_plaintext, "token", "describe", *flags(PLAIN_USER))
    assert made["token_id"] in described.output
    assert secret not in described.output
    renewed = run(node.sasl_plaintext, "token", "renew", "-", "--for", "1h", *flags(PLAIN_USER), text=secret)
    assert renewed.exit_code == 0, renewed.output
    again = run(node.sasl_plaintext, "token", "create", *by_token)
    assert "nor by another token" in again.stderr
    assert run(node.sasl_plaintext, "token", "expire", secret, *flags(PLAIN_USER)).exit_code == 0
    assert run(node.sasl_plaintext, "topic", "list", *by_token).exit_code == 1
