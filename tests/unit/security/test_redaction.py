"""What is said in secret is not shown where messages and settings are (CVE-2026-33558)."""

from __future__ import annotations

import pytest

from moldau.config.broker_config import BrokerConfig, find_broker_key, single_node_values
from moldau.config.describe import describe_broker
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.protocol.messages import alter_configs_request, incremental_alter_configs_request
from moldau.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from moldau.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from moldau.protocol.messages.envelope_request import EnvelopeRequest
from moldau.protocol.messages.envelope_response import EnvelopeResponse
from moldau.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from moldau.protocol.primitives import Message
from moldau.protocol.stored.metadata_records import UserScramCredentialRecord
from moldau.security.jaas import parse_jaas
from moldau.security.sasl_settings import OwnCredentials

SECRET = "secret-1"
BYTES = SECRET.encode()
MESSAGES: list[Message] = [
    SaslAuthenticateRequest(BYTES),
    SaslAuthenticateResponse(0, "", BYTES),
    AlterUserScramCredentialsRequest([], [ScramCredentialUpsertion("anna", 1, 4096, BYTES, BYTES)]),
    CreateDelegationTokenResponse(hmac=BYTES),
    DescribeDelegationTokenResponse(tokens=[DescribedDelegationToken(hmac=BYTES)]),
    RenewDelegationTokenRequest(BYTES),
    ExpireDelegationTokenRequest(BYTES),
    UserScramCredentialRecord("anna", 1, BYTES, BYTES, BYTES, 4096),
    EnvelopeRequest(BYTES),
    EnvelopeResponse(BYTES),
    alter_configs_request.AlterableConfig("ssl.key.password", SECRET),
    incremental_alter_configs_request.AlterableConfig("ssl.key.password", 0, SECRET),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages(message: Message) -> None:
    assert SECRET not in repr(message) and SECRET not in str(message) and "hidden" in repr(message)


def test_jaas_lines_in_descriptions_of_settings() -> None:
    names = [
        "listener.name.clients.plain.sasl.jaas.config",
        "listener.name.clients.scram-sha-256.sasl.jaas.config",
        "listener.name.clients.oauthbearer.sasl.oauthbearer.client.credentials.client.secret",
        "delegation.token.secret.key",
    ]
    values = {**single_node_values(), "log.dirs": "/x", **dict.fromkeys(names, f'x required password="{SECRET}";')}
    for name in names:
        key = find_broker_key(name)
        assert key is not None and key.sensitive, name
    shown = describe_broker(DynamicBrokerConfig(BrokerConfig(values)))
    assert not [config.name for config in shown if config.value is not None and SECRET in config.value]
    for config in shown:
        assert not any(synonym.value is not None and SECRET in synonym.value for synonym in config.synonyms)


def test_what_a_node_logs_in_with() -> None:
    assert SECRET not in repr(parse_jaas(f'x.M required password="{SECRET}";'))
    assert SECRET not in repr(OwnCredentials("PLAIN", {"password": SECRET}))
