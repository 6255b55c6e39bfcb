"""kafka-acls and kafka-delegation-tokens, the real ones and ours, against the same Moldau: same output, same codes.

`%` stands for a prefix that both tools have of their own, so that neither sees what the other one made. Entries and
resources are compared as sets: the real tool walks them in an order that changes from run to run, as does which one of
several options it complains about.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.config.unserved import STANDARD_AUTHORIZER
from tests.interop.conftest import running
from tests.interop.kafka_oracle import TOOL_CLASSES
from tests.interop.sasl_moldau import SaslMoldau
from tests.interop.test_kafka_tools_same import CLASSES, OURS, REAL, Done, RealTools, masked, run_ours

CLASSES |= {name: TOOL_CLASSES[name] for name in ("acls", "delegation-tokens")}
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = (REAL, OURS, f"{REAL}-other", f"{OURS}-other", "root", "nobody")
SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS;User:root",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": " ".join(
        [PLAIN_MODULE, *(f'user_{user}="{user}-secret"' for user in USERS)]
    )
    + ";",
}

ADDING = """
--add --allow-principal User:%a --topic %t
--add --allow-principal User:%a --topic %t --topic %u --group %g --operation Read
--add --allow-principal User:%a --topic %t --topic %u --operation Read --operation Write
--add --allow-principal User:%a --topic %t --topic %u --operation Read --operation Write
--add --allow-principal User:%a --allow-principal User:%b --allow-host 1.1.1.1 --allow-host 2.2.2.2 --topic %h
--add --allow-principal User:%a --deny-principal User:%b --deny-host 3.3.3.3 --topic %d --operation Describe
--add --deny-principal User:%b --allow-host 1.1.1.1 --topic %d --operation Describe
--add --deny-principal User:%b --deny-host 10.0.0.1 --operation All --topic %p --resource-pattern-type prefixed
--add --allow-principal User:%c --consumer --topic %t --group %g
--add --allow-principal User:%c --producer --topic %t --transactional-id %x --idempotent
--add --allow-principal User:%c --producer --topic %t --group %g
--add --allow-principal User:%c --producer --consumer --topic %v --group %v --transactional-id %v --cluster --idempotent
--add --allow-principal User:%c --producer --topic %w --cluster
--add --allow-principal User:%e --producer --idempotent --topic %w --resource-pattern-type prefixed --allow-host 1.2.3.4
--add --allow-principal User:%e --consumer --topic %w --group %w --resource-pattern-type PREFIXED --allow-host 1.2.3.4
--add --allow-principal User:%e --operation Describe --cluster --topic %w
--add --allow-principal User:%e --user-principal User:%q --operation CreateTokens --operation describetokens
--add --allow-principal User:%e --delegation-token %tok --operation DESCRIBE
--add --allow-principal User:%e --transactional-id %tx --operation TwoPhaseCommit
--add --allow-principal User:%e --topic ' %sp ' --operation Read --allow-host ' 1.1.1.1 '
--add --allow-principal ' User:%e ' --topic %e --operation Read
--add --allow-principal User:%e:f --topic %e --operation Read
--add --allow-principal Robot:%e --topic %e --operation Read
--add --allow-principal User:%e --topic '' --operation Read
--add --allow-principal User:%e --topic '%bad name!' --operation Read --allow-host not-an-address
--add --allow-principal User:%e --topic %any --resource-pattern-type Literal
--list --topic %t
--list --topic %t --topic %u --group %g
--list --topic %p
--list --topic %p --resource-pattern-type prefixed
--list --topic %pqrs --resource-pattern-type match
--list --topic %w --resource-pattern-type any
--list --topic ' %t '
--list --topic %t --principal User:%c
--list --principal User:%a
--list --principal User:%a --principal User:%c --principal User:%none --principal User:%b
--list --principal ' User:%a ' --principal User:%a
--list --cluster --principal User:%c
--list --cluster --resource-pattern-type any --principal User:%c
--list --user-principal User:%q
--list --delegation-token %tok
--list --transactional-id %x --operation Read --force
--list --topic nothing
--list --topic ''
--list extra --topic %t
--list --topic %t --command-config
--list --topic %t --command-config empty.properties
--list --bootstrap-controller --topic %t
--add --bootstrap-controller --topic %ctl --allow-principal User:%a --operation Read
--list --bootstrap-controller --topic %ctl
--remove --bootstrap-controller --topic %ctl --force
--list --topic %ctl
"""

REMOVING = """
--remove --topic %t
--remove --topic %t --resource-pattern-type match
--remove --topic %t --resource-pattern-type any --allow-principal User:%a --operation Read --operation Write
--remove --topic %t --producer --allow-principal User:%c
--remove --topic %t --producer
--list --topic %t
--remove --topic %t --allow-principal User:%a --operation Read --force
--list --topic %t
--remove --topic %t --allow-principal User:%c --producer --transactional-id %x --idempotent --force
--list --topic %t --transactional-id %x
--list --cluster --principal User:%c
--remove --topic %t --operation Read --force
--list --topic %t
--remove --topic %d --deny-principal User:%b --operation Describe --force
--list --topic %d
--remove --topic %d --allow-host 1.1.1.1 --operation Bogus --force
--list --topic %d
--remove --topic %pqrs --resource-pattern-type match --force
--list --topic %p --resource-pattern-type prefixed
--remove --consumer --topic %v --group %v --force
--list --topic %v --group %v --transactional-id %v
--remove --topic nothing --force
--remove --allow-principal User:%a --topic %u --operation Any --force
--remove --allow-principal User:%a --topic %u --operation Bogus --force
--remove --allow-principal a --topic %u --force
--remove --operation Bogus --topic %u
"""

USAGE = """
alone --list
alone --add --list
alone --list --producer
alone --version
--list --bootstrap-controller --bootstrap-server 127.0.0.1:1

--list --add
--list --add --remove --producer
--add
--add --topic t
--add --allow-principal User:a
--add --allow-host 1.1.1.1 --topic t
--add --producer --topic t
--add --producer
--add --consumer
--add --idempotent
--add --producer --allow-principal User:x
--add --consumer --allow-principal User:x --topic t
--add --consumer --allow-principal User:x --group t
--add --consumer --allow-principal User:x --group t --topic a --transactional-id i
--add --consumer --allow-principal User:x --group t --topic a --cluster
--add --producer --deny-principal User:x --topic a
--add --producer --deny-host x --topic a --allow-principal User:b
--add --idempotent --allow-principal User:x --topic a --consumer --group g
--add --allow-principal User:x --topic b --resource-pattern-type any
--add --allow-principal User:x --topic b --resource-pattern-type match
--add --allow-principal User:x --topic b --resource-pattern-type bogus
--add --allow-principal User:x --topic b --resource-pattern-type unknown
--add --allow-principal User:x --topic b --resource-pattern-type literal --resource-pattern-type prefixed
--add --resource-pattern-type any
--add --allow-principal User:x --cluster --resource-pattern-type prefixed
--add --allow-principal x --topic t --operation Bogus
--add --allow-principal '' --topic t
--add --allow-principal User:x --topic t --operation Bogus
--add --allow-principal User:x --topic t --operation Any
--add --allow-principal User:x --topic t --operation describe_configs
--add --allow-principal User:x --cluster --operation Write
--add --allow-principal User:x --group g --operation Write
--add --allow-principal User:x --transactional-id g --operation Read
--add --allow-principal User:x --delegation-token g --operation Read
--add --allow-principal User:x --user-principal g --operation Read
--add --principal User:x --topic t --allow-principal User:z
--remove
--remove --force
--remove --principal User:x --topic t
--remove --producer
--remove --idempotent --force
--remove --consumer --topic x --force
--list --principal x
--list --principal x --resource-pattern-type bogus
--list --allow-principal User:x
--list --allow-host x
--list --deny-host a
--list --deny-principal a
--list --consumer
--list --idempotent
--bogus
-z
--list --topic
--list --command-config nope.properties
--list --bootstrap-server 127.0.0.1:1
alone --bootstrap-server nonsense --list
alone --bootstrap-server nonsense --add
alone --bootstrap-server nonsense --remove --topic t --allow-principal x
alone --bootstrap-controller nonsense --list
alone --bootstrap-server 127.0.0.1:1x --list --command-config
"""

REFUSED = """
--list --command-config nobody.properties
--add --topic %a --allow-principal User:z --operation Read --command-config nobody.properties
--remove --topic %a --allow-principal User:z --operation Read --command-config nobody.properties --force
--list --topic %t --command-config root.properties
--list --command-config wrong.properties
"""

TOKENS_USAGE = """
alone --version
alone --create
alone --hmac x
alone --bogus
alone --bootstrap-server
--create
--command-config %.properties
--command-config %.properties --create --renew
--command-config %.properties --create
--command-config %.properties --create --max-life-time-period
--command-config %.properties --create --max-life-time-period x
--command-config %.properties --create --max-life-time-period=x
--command-config %.properties --create --max-life-time-period 1 --max-life-time-period 2
--command-config %.properties --create --max-life-time-period 1000 --renew-time-period 1
--command-config %.properties --create --max-life-time-period 1000 --expiry-time-period 1
--command-config %.properties --create --max-life-time-period 1000 --renewer-principal bogus
--command-config %.properties --describe --owner-principal bogus
--command-config %.properties --describe --hmac x
--command-config %.properties --describe --max-life-time-period 1
--command-config %.properties --describe --expiry-time-period 1
--command-config %.properties --renew
--command-config %.properties --renew --hmac x
--command-config %.properties --renew --renew-time-period 5
--command-config %.properties --renew --hmac abc --renew-time-period 5 --owner-principal User:a
--command-config %.properties --renew --hmac abc --renew-time-period 5 --renewer-principal User:a
--command-config %.properties --renew --hmac abc --renew-time-period 5 --expiry-time-period 5
--command-config %.properties --renew --hmac abcd --renew-time-period
--command-config %.properties --renew --hmac abcd --renew-time-period x
--command-config %.properties --expire
--command-config %.properties --expire --hmac abcd
--command-config %.properties --expire --hmac abcd --expiry-time-period
--command-config %.properties --expire --hmac abcd --expiry-time-period 7 --renew-time-period 8
--command-config %.properties --create --max-life-time-period 1000 --hmac x
--command-config %.properties --renew --hmac abc --renew-time-period 5 --max-life-time-period 1
--command-config %.properties --expire --hmac abcd --expiry-time-period 7 --max-life-time-period 8
--command-config %.properties --expire --hmac abcd --expiry-time-period 7 --owner-principal User:a
--command-config nope.properties --describe
--command-config wrong.properties --describe
alone --bootstrap-server nonsense --command-config %.properties --describe
--bootstrap-server 127.0.0.1:1 --command-config %.properties --describe
"""

TOKENS = """
--create --max-life-time-period 3600000
--create --max-life-time-period -1
--create --max-life-time-period=-1
--create --max-life-time-period -5
--create --max-life-time-period 0
--create --max-life-time-period 3600000 --renewer-principal User:bob --renewer-principal User:carol
--create --max-life-time-period 3600000 --renewer-principal
--create --max-life-time-period 3600000 --owner-principal User:% --owner-principal User:other
--create --max-life-time-period 3600000 --owner-principal User:other
--describe
--describe extra
--describe --owner-principal
--describe --renewer-principal User:a
--describe --owner-principal User:%
--describe --owner-principal User:% --owner-principal User:nobody
--describe --owner-principal User:nobody
--renew --renew-time-period -1 --hmac bm9wZQ==
--renew --renew-time-period 5 --hmac ***
--renew --renew-time-period 5 --hmac abc
--renew --renew-time-period 5 --hmac x
--renew --hmac --renew-time-period 5
--expire --expiry-time-period -1 --hmac bm9wZQ==
--expire --expiry-time-period -7 --hmac abcd
--expire --expiry-time-period 1 --hmac abcde
--expire --expiry-time-period 1 --hmac ab=c
--expire --expiry-time-period 1 --hmac a-_b
--expire --expiry-time-period 1 --hmac abc==
--expire --expiry-time-period 1 --hmac ''
--expire --expiry-time-period 1 --hmac abcd --hmac x
--expire --expiry-time-period 1 --hmac abcd --renewer-principal User:b
"""

SCRAM = """
--alter --user %s --add-config SCRAM-SHA-256=[iterations=8192,password=x],SCRAM-SHA-512=[password=y]
--describe --user %s
--describe --entity-type users --entity-name %s
--alter --user %s --delete-config SCRAM-SHA-256
--describe --user %s
--alter --user %s --delete-config SCRAM-SHA-256
--alter --user %s --add-config SCRAM-SHA-256=[iterations=4095,password=x]
--alter --user %s --add-config SCRAM-SHA-256=[iterations=16385,password=x]
--alter --user %s --add-config SCRAM-SHA-256=[iterations=,password=x]
--alter --user %s --add-config SCRAM-SHA-256=[iterations=-,password=x]
--alter --user %s --add-config SCRAM-SHA-256=[iterations=-1,password=x]
--alter --user %s --add-config SCRAM-SHA-256=[iterations=99999999999,password=x]
--alter --user %s --add-config SCRAM-SHA-256=[iterations=x,password=x]
--alter --user %s --add-config SCRAM-SHA-256=[password=x,iterations=8192]
--alter --user %s --add-config SCRAM-SHA-256=[password=]
--alter --user %s --add-config SCRAM-SHA-256=password=x
--alter --user %s --add-config SCRAM-SHA-1=[password=x]
--alter --user %s --add-config SCRAM-SHA-512=[password=y] --delete-config SCRAM-SHA-512
--alter --entity-type users --entity-name %s --add-config 'SCRAM-SHA-512=[password=a b=c]'
--alter --user %s --client c --add-config SCRAM-SHA-256=[password=x]
--describe --user %s --client c
--describe --user %none
--alter --user %s --bootstrap-controller --add-config SCRAM-SHA-256=[password=z]
--describe --user %s --bootstrap-controller
--describe --user %s
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslMoldau]:
    yield from running(SaslMoldau(tmp_path_factory.mktemp("guarded"), SETTINGS))


@pytest.fixture(scope="module")
def real(kafka_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealTools]:
    tools = RealTools(tmp_path_factory.mktemp("tools"))
    for user in USERS:
        write_login(tools.folder / f"{user}.properties", user, f"{user}-secret")
    write_login(tools.folder / "wrong.properties", "nobody", "wrong")
    (tools.folder / "empty.properties").write_text("")
    yield tools
    tools.close()


def write_login(path: Path, user: str, password: str) -> None:
    login = f'{PLAIN_MODULE} username="{user}" password="{password}";'
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")


def run_both(node: SaslMoldau, real: RealTools, tool: str, line: str, address: str) -> tuple[Done, Done]:
    """What both print, after what cannot be equal is masked."""
    ends = []
    for prefix in (REAL, OURS):
        arguments = shlex.split(line.replace("%", prefix))
        if "--bootstrap-controller" in arguments and arguments[:1] != ["alone"]:
            arguments.insert(arguments.index("--bootstrap-controller") + 1, f"{node.host}:{node.controller_port}")
        elif arguments[:1] != ["alone"]:
            arguments += ["--bootstrap-server", address]
        arguments = arguments[arguments[:1] == ["alone"] :]
        done = real.run(tool, arguments) if prefix == REAL else run_ours(tool, arguments, real.folder)
        done = masked(done, prefix)
        ends.append(Done(done.code, unordered(done.out), unordered(done.err)))
    return ends[0], ends[1]


def compare(node: SaslMoldau, real: RealTools, tool: str, lines: str, address: str) -> None:
    different = []
    for line in lines.strip("\n").splitlines():
        theirs, ours = run_both(node, real, tool, line, address)
        if theirs != ours:
            different.append(f"{line}\n  real: {theirs}\n  ours: {ours}")
    assert not different, "\n".join(["", *different])


def unordered(text: str) -> str:
    """The same text for the same sets: of operations, of entries of a resource, of resources."""
    text = re.sub(r"(?<=operations \[)[^]]*", lambda found: ", ".join(sorted(found[0].split(", "))), text)
    text = re.sub(r"(?:^ ?\t\(principal=.*\n)+", _sorted_entries, text, flags=re.MULTILINE)
    block = r"(?:^Acl \(pattern=.*\n|^(?:Adding|Current) ACLs for .*\n(?: ?\t\(.*\n)+\n)+"
    text = re.sub(block, _sorted_blocks, text, flags=re.MULTILINE)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "YYYY-MM-DDTHH:MM", text)
    text = re.sub(r"\b[\w-]{22} [\w+/]{86}==", "TOKEN HMAC", text)
    # Each has tokens of its own, in an order that the broker chooses.
    rows = re.sub(r"(?:\n^TOKEN HMAC .*\n)+", _sorted_rows, text, flags=re.MULTILINE)
    return re.sub(r"tokenId : [\w-]{22}", "tokenId : TOKEN", rows)


def _sorted_entries(found: re.Match[str]) -> str:
    first = " " if found[0].startswith(" ") else ""
    return first + "".join(sorted(line + "\n" for line in found[0].removeprefix(" ").splitlines()))


def _sorted_blocks(found: re.Match[str]) -> str:
    parts = re.findall(r"^Acl .*\n|^(?:Adding|Current).*\n(?: ?\t.*\n)+\n", found[0], flags=re.MULTILINE)
    assert "".join(parts) == found[0]
    return "".join(sorted(parts))


def _sorted_rows(found: re.Match[str]) -> str:
    return "".join(sorted(re.findall(r"\n.*\n", found[0])))


def test_entries_are_added_listed_and_removed(node: SaslMoldau, real: RealTools) -> None:
    compare(node, real, "acls", ADDING, node.bootstrap)
    compare(node, real, "acls", REMOVING, node.bootstrap)


def test_what_makes_no_sense_is_refused(node: SaslMoldau, real: RealTools) -> None:
    compare(node, real, "acls", USAGE, node.bootstrap)


def test_who_may_not_look_is_told_so(node: SaslMoldau, real: RealTools) -> None:
    compare(node, real, "acls", REFUSED, node.bootstrap_of("SASL_PLAINTEXT"))


def test_tokens_that_make_no_sense_are_refused(node: SaslMoldau, real: RealTools) -> None:
    compare(node, real, "delegation-tokens", TOKENS_USAGE, node.bootstrap_of("SASL_PLAINTEXT"))


def test_tokens_are_created_and_described(node: SaslMoldau, real: RealTools) -> None:
    lines = "\n".join(f"--command-config %.properties {line}" for line in TOKENS.strip("\n").splitlines())
    compare(node, real, "delegation-tokens", lines, node.bootstrap_of("SASL_PLAINTEXT"))


def test_there_are_no_tokens_without_a_login(node: SaslMoldau, real: RealTools) -> None:
    lines = "--describe\n--create --max-life-time-period -1\n--expire --hmac abcd --expiry-time-period -1"
    lines = "\n".join(f"--command-config empty.properties {line}" for line in lines.splitlines())
    compare(node, real, "delegation-tokens", lines, node.bootstrap)


def test_scram_users_are_altered_and_described(node: SaslMoldau, real: RealTools) -> None:
    compare(node, real, "configs", SCRAM, node.bootstrap)


def test_tokens_are_renewed_and_expired(node: SaslMoldau, real: RealTools) -> None:
    address = node.bootstrap_of("SASL_PLAINTEXT")
    config = ["--command-config", "root.properties", "--bootstrap-server", address]
    created = run_ours("delegation-tokens", ["--create", "--max-life-time-period", "3600000", *config], real.folder)
    hmac = re.search(r"[\w+/]{86}==", created.out)
    assert hmac is not None, created
    for line in (
        "renew --renew-time-period -1",
        "renew --renew-time-period 60000",
        "expire --expiry-time-period 90000",
    ):
        theirs, ours = run_both(
            node, real, "delegation-tokens", f"--{line} --hmac {hmac[0]} --command-config root.properties", address
        )
        assert theirs == ours
        assert ours.code == 0
