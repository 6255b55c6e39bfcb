"""Who a client is: the mechanisms of SASL that Kafka's brokers offer, each as a dialogue of a few messages.

A Login says one message after the other, and is done when the broker has proved what the mechanism wants proved. One
dialogue belongs to one connection. What is said is in `moldau.security`, which brokers use too.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.client.connection.jaas import jaas_options
from moldau.client.errors import ClientError, ConfigError, error_for
from moldau.protocol.errors import SASL_AUTHENTICATION_FAILED
from moldau.security.exchange import LoginRefused, SaslClient
from moldau.security.plain import PlainClient
from moldau.security.scram import HASHES, TOKEN_EXTENSION, ScramClient

if TYPE_CHECKING:
    from moldau.client.connection.bearer import BearerSource

BEARER = "OAUTHBEARER"
MECHANISMS = ("PLAIN", *HASHES, BEARER)


class Login:
    """One dialogue; what fails in it is a ClientError that is not tried again."""

    def __init__(self, client: SaslClient) -> None:
        self._client = client
        self.mechanism = client.mechanism

    def first(self) -> bytes:
        return self._client.first()

    def next(self, response: bytes) -> bytes | None:
        """What to say to a response; None when everything is said. Raises if the broker is not who it should be."""
        try:
            return self._client.next(response)
        except LoginRefused as refused:
            raise _refused(str(refused)) from None


class PlainLogin(Login):
    """RFC 4616: name and password as they are, which only TLS keeps from others."""

    def __init__(self, user: str, password: str) -> None:
        super().__init__(PlainClient(user, password))


class ScramLogin(Login):
    """RFC 5802, as Kafka has it: both sides prove that they know the password. With `is_token`, that of a delegation
    token, whose id is the name."""

    def __init__(
        self, mechanism: str, user: str, password: str, nonce: str | None = None, is_token: bool = False
    ) -> None:
        super().__init__(ScramClient(mechanism, user, password, nonce or secrets.token_urlsafe(24), is_token))


class BearerLogin(Login):
    """RFC 7628: shows a token. It is fetched when the connection is there, if none is at hand."""

    def __init__(self, source: BearerSource) -> None:
        from moldau.security.oauth_bearer import OAuthBearerClient

        super().__init__(OAuthBearerClient(source.token(), source.extensions))


def _refused(reason: str) -> ClientError:
    return error_for(SASL_AUTHENTICATION_FAILED, f"Authentication failed: {reason}.")


def login_maker(
    mechanism: str, user: str | None, password: str | None, jaas: str | None, bearer: BearerSource | None = None
) -> Callable[[], Login]:
    """What begins a dialogue for each connection; raises ConfigError where settings are missing or not for us."""
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"The client cannot log in with sasl.mechanism={mechanism}: choose one of {', '.join(MECHANISMS)}."
        )
    if mechanism == BEARER:
        assert bearer is not None
        source = bearer
        return lambda: BearerLogin(source)
    options = {} if jaas is None else jaas_options(jaas)
    user, password = options.get("username", user), options.get("password", password)
    if user is None or password is None:
        raise ConfigError(
            f"sasl.mechanism={mechanism} needs a name and a password: set sasl.username and sasl.password, or"
            ' sasl.jaas.config with username="…" password="…".'
        )
    name, secret = user, password
    if mechanism == "PLAIN":
        return lambda: PlainLogin(name, secret)
    is_token = options.get(TOKEN_EXTENSION, "").lower() == "true"
    return lambda: ScramLogin(mechanism, name, secret, is_token=is_token)
