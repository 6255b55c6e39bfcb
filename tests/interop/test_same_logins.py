"""Moldau and Apache Kafka answer alike before a login: what is taken, what is refused, in which words.

Three things differ on purpose: an unknown user of SCRAM is not told from a wrong password by the first answer, a proof
of the wrong length gets an answer, and extensions of the final message are part of what is proved (RFC 5802).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop import login_scripts
from tests.interop.conftest import running
from tests.interop.sasl_moldau import PLAIN_ENTRY, SaslMoldau
from tests.interop.secured import SecuredKafka, missing
from tests.interop.wire import CLOSED

DIFFERENT = ("short proof", "extra in final")
SCRIPTS = [name for name in login_scripts.SCRIPTS if not name.endswith(DIFFERENT)]


@pytest.fixture(scope="module")
def moldau(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslMoldau]:
    # What Kafka says about tokens is asked of one without them.
    yield from running(SaslMoldau(tmp_path_factory.mktemp("moldau"), {"delegation.token.secret.key": ""}))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    two_users = {f"listener.name.{name}.plain.sasl.jaas.config": PLAIN_ENTRY for name in ("sasl_plaintext", "reauth")}
    yield from running(SecuredKafka(tmp_path_factory.mktemp("kafka"), two_users))


@pytest.mark.parametrize("script", SCRIPTS)
def test_before_a_login(moldau: SaslMoldau, kafka: SecuredKafka, script: str) -> None:
    ours = login_scripts.run(script, moldau.ports["SASL_PLAINTEXT"])
    assert ours == login_scripts.run(script, kafka.ports["SASL_PLAINTEXT"])


@pytest.mark.parametrize("script", login_scripts.REAUTH_SCRIPTS)
def test_logging_in_again(moldau: SaslMoldau, kafka: SecuredKafka, script: str) -> None:
    ours = login_scripts.run_again(script, moldau.ports["REAUTH"])
    assert ours == login_scripts.run_again(script, kafka.ports["REAUTH"])


def test_a_proof_of_the_wrong_length_is_answered(moldau: SaslMoldau) -> None:
    for mechanism in login_scripts.HASHES:
        seen = login_scripts.run(f"{mechanism}, short proof", moldau.ports["SASL_PLAINTEXT"])
        assert seen[-1] != CLOSED and seen[-1][0] == 58


def test_a_refusal_is_held_back(moldau: SaslMoldau) -> None:
    """connection.failed.authentication.delay.ms is 100."""
    for _ in range(3):
        seconds, seen = login_scripts.delay_of_failure(moldau.ports["SASL_PLAINTEXT"])
        assert seconds >= 0.095 and seen[0][0] == 58 and seen[1] is True
