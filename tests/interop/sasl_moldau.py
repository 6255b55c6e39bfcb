"""A Moldau whose listeners ask for logins, with the users and ports that the secured Apache Kafka has."""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from moldau.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from moldau.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from tests.interop.nodes import HOST, START_SECONDS_MAX, MoldauNode, free_ports
from tests.interop.secured import (
    ESCAPED_USER,
    PLAIN_USER,
    REAUTH_MS,
    SCRAM_MECHANISMS,
    SCRAM_USER,
    User,
    salted_password,
)
from tests.interop.wire import Wire

SECOND_USER = User("bob", "bob-secret")
LISTENERS = ("SASL_PLAINTEXT", "REAUTH", "UNSIGNED", "SIGNED")
BEARER = "listener.name.{}.oauthbearer"
BEARER_MODULE = "org.apache.kafka.common.security.oauthbearer"
ISSUER, AUDIENCE, KEY_ID = "https://issuer.example", "moldau", "key-1"
TOKEN_SECRET = "secret of all tokens"
PLAIN_ENTRY = (
    f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{PLAIN_USER.name}="{PLAIN_USER.password}"'
    f' user_{SECOND_USER.name}="{SECOND_USER.password}";'
)


class Issuer:
    """Signs tokens, in ways that are right and in ways that are not."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(65537, 2048)
        self.ec_key = ec.generate_private_key(ec.SECP256R1())

    def key_set(self) -> str:
        rsa_numbers, ec_numbers = self.key.public_key().public_numbers(), self.ec_key.public_key().public_numbers()
        rows = [
            {
                "kid": KEY_ID,
                "kty": "RSA",
                "use": "sig",
                "n": number_text(rsa_numbers.n),
                "e": number_text(rsa_numbers.e),
            },
            {
                "kid": "key-2",
                "kty": "EC",
                "crv": "P-256",
                "x": number_text(ec_numbers.x, 32),
                "y": number_text(ec_numbers.y, 32),
            },
        ]
        return json.dumps({"keys": rows})

    def token(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """Good for ten minutes, unless told otherwise; a claim that is None is left out."""
        now = time.time()
        given = {"sub": "carol", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 600, **claims}
        head = {"alg": "RS256", "kid": KEY_ID, **(header or {})}
        body = {name: value for name, value in given.items() if value is not None}
        signed = f"{part(head)}.{part(body)}"
        return f"{signed}.{text_of(self.sign(head['alg'], signed.encode()))}"

    def sign(self, algorithm: str, data: bytes) -> bytes:
        if algorithm == "RS256":
            return self.key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        if algorithm == "ES256":
            r, s = utils.decode_dss_signature(self.ec_key.sign(data, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        if algorithm == "HS256":
            # The attack: the public key taken as the secret of an HMAC.
            return hmac.digest(self.key_set().encode(), data, "sha256")
        return b""


def text_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def part(value: dict[str, Any]) -> str:
    return text_of(json.dumps(value).encode())


def number_text(number: int, size: int = 0) -> str:
    return text_of(number.to_bytes(size or (number.bit_length() + 7) // 8, "big"))


class SaslMoldau(MoldauNode):
    """One node: PLAINTEXT for administration, SASL_PLAINTEXT, and REAUTH with sessions of a few seconds."""

    def write_properties(self, overrides: dict[str, str]) -> None:
        own = {self.port, self.controller_port}
        free = (port for port in free_ports(len(LISTENERS) + len(own)) if port not in own)
        self.ports = {"PLAINTEXT": self.port, **dict(zip(LISTENERS, free, strict=False))}
        advertised = ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items())
        protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT," + ",".join(
            f"{name}:SASL_PLAINTEXT" for name in LISTENERS
        )
        self.issuer = Issuer()
        self.key_file = self.folder / "jwks.json"
        self.key_file.write_text(self.issuer.key_set())
        settings = {
            "listeners": f"{advertised},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": protocols,
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM_MECHANISMS)),
        }
        for listener in LISTENERS[2:]:
            settings[f"listener.name.{listener.lower()}.sasl.enabled.mechanisms"] = "OAUTHBEARER"
        settings[f"{BEARER.format('unsigned')}.sasl.server.callback.handler.class"] = (
            f"{BEARER_MODULE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
        )
        settings[f"{BEARER.format('unsigned')}.sasl.jaas.config"] = f"{BEARER_MODULE}.OAuthBearerLoginModule required;"
        settings |= {
            f"{BEARER.format('signed')}.sasl.oauthbearer.jwks.endpoint.url": f"file:{self.key_file}",
            f"{BEARER.format('signed')}.sasl.oauthbearer.expected.issuer": ISSUER,
            f"{BEARER.format('signed')}.sasl.oauthbearer.expected.audience": AUDIENCE,
            "delegation.token.secret.key": TOKEN_SECRET,
        }
        for listener in LISTENERS[:2]:
            settings[f"listener.name.{listener.lower()}.plain.sasl.jaas.config"] = PLAIN_ENTRY
        for mechanism in ("PLAIN", *SCRAM_MECHANISMS):
            settings[f"listener.name.reauth.{mechanism.lower()}.connections.max.reauth.ms"] = str(REAUTH_MS)
        super().write_properties(settings | overrides)

    def environment(self) -> dict[str, str]:
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={self.key_file}"
        return {**super().environment(), "KAFKA_OPTS": allowed}

    def bootstrap_of(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"

    @property
    def sasl_plaintext(self) -> str:
        return f"{HOST}:{self.ports['SASL_PLAINTEXT']}"

    @property
    def reauth(self) -> str:
        return f"{HOST}:{self.ports['REAUTH']}"

    def start(self) -> None:
        super().start()
        try:
            add_scram_users(self.port)
        except BaseException:
            self.kill()
            raise


def add_scram_users(port: int, users: tuple[User, ...] = (SCRAM_USER, ESCAPED_USER)) -> None:
    """Through a listener that takes everybody."""
    with Wire(HOST, port) as wire:
        for number, mechanism in enumerate(SCRAM_MECHANISMS, 1):
            salted = [salted_password(user, number, mechanism) for user in users]
            answer = wire.ask(AlterUserScramCredentialsRequest(upsertions=salted), 0)
            assert not any(result.error_code for result in answer.results), answer
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            described = wire.ask(DescribeUserScramCredentialsRequest(), 0)
            if len(described.results) >= len(users) and all(
                len(row.credential_infos) == 2 for row in described.results
            ):
                return
            assert time.monotonic() < deadline, "the node does not learn of its users"
            time.sleep(0.02)
