"""Where a client's bearer tokens come from: a function of the program, a token endpoint, a file, or for tests itself.

A token is kept until most of its time is over. Kafka's allow lists hold for URLs and files that settings name
(`moldau.security.token_sources`): a function needs none.
"""

from __future__ import annotations

import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from moldau.client.config import ClientConfig
from moldau.client.connection.jaas import jaas_options
from moldau.client.errors import ConfigError, error_for
from moldau.protocol.errors import SASL_AUTHENTICATION_FAILED
from moldau.security.bearer_tokens import expiry_of, unsecured_token
from moldau.security.token_sources import (
    RESPONSE_BYTES_MAX,
    SourceError,
    check_source,
    credentials_request,
    read_allow_lists,
    token_of_response,
)

PROVIDER_KEY = "sasl.oauthbearer.token.provider"
URL_KEY = "sasl.oauthbearer.token.endpoint.url"
EXTENSION_PREFIX = "extension_"
KEPT_SHARE = 0.8
TIMEOUT_S = 10.0


class BearerSource:
    """`fetch` gets a new token; an Exception of it ends the login."""

    def __init__(self, fetch: Callable[[], str], extensions: dict[str, str] | None = None) -> None:
        self._fetch = fetch
        self.extensions = extensions or {}
        self._token = ""
        self._renew_s = 0.0

    def token(self) -> str:
        now_s = time.time()
        if now_s >= self._renew_s:
            self._token = self._fetch_new()
            expiry_ms = expiry_of(self._token)
            self._renew_s = 0.0 if expiry_ms is None else now_s + (expiry_ms / 1000 - now_s) * KEPT_SHARE
        return self._token

    def _fetch_new(self) -> str:
        try:
            return self._fetch()
        except SourceError as error:
            raise error_for(SASL_AUTHENTICATION_FAILED, f"There is no token to log in with: {error}.") from None
        except Exception as error:
            sentence = f"There is no token to log in with: the token provider raised {type(error).__name__}."
            raise error_for(SASL_AUTHENTICATION_FAILED, sentence) from error


def read_bearer_source(config: ClientConfig) -> BearerSource:
    """What the settings say; raises ConfigError."""
    jaas = config.get_optional("sasl.jaas.config")
    options = {} if jaas is None else jaas_options(jaas)
    extensions = {
        name.removeprefix(EXTENSION_PREFIX): value
        for name, value in options.items()
        if name.startswith(EXTENSION_PREFIX)
    }
    provider = config.get_callable(PROVIDER_KEY)
    if provider is not None:
        return BearerSource(lambda: _checked(provider()), extensions)
    url = config.get_optional(URL_KEY)
    if url:
        return BearerSource(_endpoint(config, url, options), extensions)
    if any(name.startswith("unsecuredLogin") for name in options):
        return BearerSource(lambda: unsecured_token(options, time.time_ns() // 1_000_000), extensions)
    raise ConfigError(
        f"sasl.mechanism=OAUTHBEARER needs tokens: set {PROVIDER_KEY} to a function that returns one, or {URL_KEY} with"
        " the client's id and secret."
    )


def _checked(token: object) -> str:
    if not isinstance(token, str) or not token:
        raise SourceError(f"{PROVIDER_KEY} has to return the token as text")
    return token


def _endpoint(config: ClientConfig, url: str, options: dict[str, str]) -> Callable[[], str]:
    try:
        path = check_source(url, URL_KEY, read_allow_lists(os.environ.get("KAFKA_OPTS", "")))
    except SourceError as error:
        raise ConfigError(f"{error}.") from None
    if path is not None:
        return lambda: _read(url, path).decode().strip()
    client_id = config.get_optional("sasl.oauthbearer.client.credentials.client.id") or options.get("clientId")
    secret = config.get_optional("sasl.oauthbearer.client.credentials.client.secret") or options.get("clientSecret")
    if not client_id or secret is None:
        raise ConfigError(
            f"{URL_KEY} needs sasl.oauthbearer.client.credentials.client.id and"
            " sasl.oauthbearer.client.credentials.client.secret."
        )
    headers, body = credentials_request(
        client_id, secret, config.get_optional("sasl.oauthbearer.scope") or options.get("scope")
    )
    return lambda: token_of_response(_read(url, None, headers, body))


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A secret goes where it was told to, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _read(url: str, path: str | None, headers: dict[str, str] | None = None, body: bytes | None = None) -> bytes:
    """SourceError tells nothing of what was read or sent."""
    try:
        if path is not None:
            with open(path, "rb") as file:
                return file.read(RESPONSE_BYTES_MAX)
        request = urllib.request.Request(url, body, headers or {})
        with urllib.request.build_opener(NoRedirect).open(request, timeout=TIMEOUT_S) as response:
            data: bytes = response.read(RESPONSE_BYTES_MAX)
            return data
    except urllib.error.HTTPError as error:
        error.close()
        raise SourceError(f"{url} responds with status {error.code}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
        raise SourceError(f"{url} cannot be read: {reason}") from None
