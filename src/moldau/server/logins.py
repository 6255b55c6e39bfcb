"""The logins of a node's listeners: what mechanisms need of the node, chance, and threads for what takes long."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
import logging
import os
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from moldau.api.login_gate import GateKeeper, Handle
from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.controller.delegation_tokens import SECRET_KEY
from moldau.node.early_credentials import EarlyCredentials
from moldau.node.node import Node
from moldau.security import scram
from moldau.security.bearer_tokens import (
    MISSING_LIBRARY,
    BearerToken,
    SecuredValidator,
    UnsecuredValidator,
    unsecured_token,
)
from moldau.security.exchange import LoginRefused, SaslClient, SaslServer
from moldau.security.login import Mechanism
from moldau.security.oauth_bearer import OAuthBearerClient, OAuthBearerServer
from moldau.security.plain import MECHANISM, PlainClient, PlainServer, users_of
from moldau.security.sasl_settings import (
    JWKS_KEY,
    OAUTHBEARER,
    TOKEN_URL_KEY,
    ListenerLogins,
    MechanismSettings,
    OwnCredentials,
    controller_credentials,
    inter_broker_credentials,
    read_bearer,
    read_listener,
    uses_sasl,
)
from moldau.security.token_keys import token_hmac, token_password
from moldau.security.token_sources import (
    AllowLists,
    SourceError,
    check_source,
    credentials_request,
    read_allow_lists,
    token_of_response,
)
from moldau.server.clock import Clock
from moldau.server.http_source import fetch
from moldau.server.jwks import IssuerKeys

log = logging.getLogger("moldau.security")

NONCE_BITS = 130
THREADS_MAX = 2


def new_nonce() -> str:
    """130 random bits; the alphabet has nothing that SCRAM would have to escape."""
    return secrets.token_urlsafe((NONCE_BITS + 7) // 8)


def client_maker(credentials: OwnCredentials) -> Callable[[], SaslClient]:
    """What begins a login of this node at another one."""
    mechanism, options = credentials.mechanism, credentials.options
    if mechanism == OAUTHBEARER:
        return bearer_maker(credentials)
    user, password = options["username"], options["password"]
    if mechanism == MECHANISM:
        return lambda: PlainClient(user, password)
    is_token = options.get(scram.TOKEN_EXTENSION, "").lower() == "true"
    return lambda: scram.ScramClient(mechanism, user, password, new_nonce(), is_token)


def bearer_maker(credentials: OwnCredentials) -> Callable[[], SaslClient]:
    """A token is fetched for each login; that is seldom, and on a thread."""
    options, endpoint = credentials.options, credentials.endpoint
    if endpoint is None:
        return lambda: OAuthBearerClient(unsecured_token(options, time.time_ns() // 1_000_000))
    path = check_source(endpoint.url, TOKEN_URL_KEY, allow_lists())
    headers, body = credentials_request(endpoint.client_id, endpoint.secret, endpoint.scope)

    def make() -> SaslClient:
        try:
            if path is not None:
                return OAuthBearerClient(fetch(endpoint.url, path).decode().strip())
            return OAuthBearerClient(token_of_response(fetch(endpoint.url, None, headers, body)))
        except (SourceError, UnicodeDecodeError) as error:
            raise LoginRefused(f"there is no token to log in with: {error}") from None

    return make


def allow_lists() -> AllowLists:
    return read_allow_lists(os.environ.get("KAFKA_OPTS", ""))


def check_sources(config: BrokerConfig) -> None:
    """Raises ConfigError where keys or tokens may not be fetched, or could not be used."""
    try:
        for endpoint in config.listeners:
            if not uses_sasl(config, endpoint.name):
                continue
            if OAUTHBEARER not in read_listener(config, endpoint.name).mechanisms:
                continue
            url = read_bearer(config, endpoint.name).jwks_url
            if url is not None:
                check_source(url, JWKS_KEY, allow_lists())
                if importlib.util.find_spec("cryptography") is None:
                    raise ConfigError(f"listener {endpoint.name}: {MISSING_LIBRARY}.")
        for credentials in (inter_broker_credentials(config), controller_credentials(config)):
            if credentials is not None:
                client_maker(credentials)
    except SourceError as error:
        raise ConfigError(f"{error}.") from None


class Logins:
    """Makes the gate keepers of listeners with SASL."""

    def __init__(
        self, node: Node, config: BrokerConfig, clock: Clock, loop: asyncio.AbstractEventLoop, dispatch: Handle
    ) -> None:
        self._node = node
        self._config = config
        self._clock = clock
        self._loop = loop
        self._dispatch = dispatch
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="login")
        self._users: scram.ScramUsers | None = None
        self._early: EarlyCredentials | None = EarlyCredentials(node.metadata)
        self._uses_scram = False
        self._issuers: list[IssuerKeys] = []

    def on_node_started(self) -> None:
        """Before anybody can log in, and before the others wait for this node: a long log takes its time."""
        metadata, early = self._node.metadata, self._early_credentials()
        if early is not None:
            metadata.add_listener(lambda *_: self._maybe_end_early_time())
            if self._uses_scram:
                early.read()

    def _maybe_end_early_time(self) -> None:
        """For good: a node that has caught up once does not go back to what its log says beyond what is committed."""
        if self._early is not None and self._early.is_over:
            self._early = None

    def _early_credentials(self) -> EarlyCredentials | None:
        """None as soon as the image says who may log in."""
        self._maybe_end_early_time()
        return self._early

    def keeper_for(self, listener: str) -> GateKeeper | None:
        """None where everybody is let in. ConfigError where the listener's settings cannot work."""
        if not uses_sasl(self._config, listener):
            return None
        settings = read_listener(self._config, listener)
        mechanisms = {
            name: Mechanism(self._maker(settings, mechanism), mechanism.max_reauth_ms)
            for name, mechanism in settings.mechanisms.items()
        }
        return GateKeeper(
            mechanisms,
            failure_delay_ms=settings.failure_delay_ms,
            receive_bytes_max=settings.receive_bytes_max,
            timeout_ms=settings.timeout_ms,
            dispatch=self._dispatch,
            wall_ms=self._node.wall.at,
            later=self._later,
            compute=self._compute,
        )

    def _maker(self, settings: ListenerLogins, mechanism: MechanismSettings) -> Callable[[], SaslServer]:
        name = mechanism.name
        if name in scram.HASHES:
            self._uses_scram = True
            return lambda: self.scram_server(name)
        if name == OAUTHBEARER:
            validate = self._bearer_validator(settings.listener, mechanism)
            return lambda: OAuthBearerServer(validate)
        users = users_of(mechanism.options)
        return lambda: PlainServer(users)

    def _bearer_validator(self, listener: str, mechanism: MechanismSettings) -> Callable[[str, int], BearerToken]:
        settings = read_bearer(self._config, listener)
        url = settings.jwks_url
        if url is None:
            log.warning("listener %s accepts unsigned bearer tokens, for tests only: %s is not set", listener, JWKS_KEY)
            return UnsecuredValidator(mechanism.options).validate
        if not settings.secured.audiences:
            log.warning("listener %s: sasl.oauthbearer.expected.audience is not set", listener)
        path = check_source(url, JWKS_KEY, allow_lists())
        keys = IssuerKeys(url, lambda: fetch(url, path), settings.refresh_ms, settings.retry_ms, settings.retry_max_ms)
        keys.start()
        self._issuers.append(keys)
        return SecuredValidator(settings.secured, keys.find).validate

    def scram_server(self, mechanism: str) -> scram.ScramServer:
        server = scram.ScramServer(mechanism, self.scram_users(), new_nonce())
        if self._early_credentials() is not None:
            server.confirm = lambda: self._confirm(server)
        return server

    def _confirm(self, server: scram.ScramServer) -> bool | None:
        """Whether a credential of the early time is what is committed."""
        if self._early_credentials() is not None:
            return None
        return server.token_authenticated or self._find_user(server.mechanism, server.user) == server.keys

    def scram_users(self) -> scram.ScramUsers:
        """Made with the first login: the cluster's id is known once the node has started."""
        if self._users is None:
            seed = hashlib.sha256(f"salts of {self._node.cluster_id}".encode()).digest()
            self._users = scram.ScramUsers(self._find_user, self._find_token, seed)
        return self._users

    def _find_user(self, mechanism: str, name: str) -> scram.Keys | None:
        number, early = scram.TYPES[mechanism], self._early_credentials()
        found = self._node.image.scram.get((number, name)) if early is None else early.find(number, name)
        return None if found is None else scram.Keys(*found)

    def _find_token(self, token_id: str) -> scram.TokenOwner | None:
        """None before the node has caught up: the latest snapshot may have a token that was deleted since."""
        if self._early_credentials() is not None:
            return None
        secret, tokens = self._config.get_str(SECRET_KEY), self._node.image.tokens
        found = tokens.get(token_id) if secret else None
        if found is None:
            return None
        self.scram_users().forget_tokens(tokens)
        return scram.TokenOwner(
            found.owner, found.expiration_timestamp, lambda: token_password(token_hmac(secret, token_id))
        )

    def _later(self, delay_ms: int, function: Callable[[], None]) -> None:
        self._loop.call_later(delay_ms / 1000, function)

    def _compute(self, compute: Callable[[], bytes], done: Callable[[bytes, int], None]) -> None:
        def on_done(future: Future[bytes]) -> None:
            if future.cancelled():
                return  # the node stops before it came to that
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(lambda: done(future.result(), self._clock()))

        self._threads.submit(compute).add_done_callback(on_done)

    def close(self) -> None:
        for issuer in self._issuers:
            issuer.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
