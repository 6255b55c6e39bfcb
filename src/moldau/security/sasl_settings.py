"""Reads the settings of logins: which mechanisms a listener offers, to whom, and as whom this node logs in elsewhere.

Every check is made at the start of a node: what cannot work is told then, and not by the first client.
"""

from __future__ import annotations

from typing import Final

from moldau.config.broker_config import LISTENER_PREFIX, BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.config.own_keys import LOGIN_TIMEOUT_KEY
from moldau.config.unserved import SERVED_MECHANISMS
from moldau.security import plain, scram
from moldau.security.bearer_tokens import SecuredSettings, UnsecuredValidator
from moldau.security.jaas import JaasEntry, JaasError, parse_jaas

JAAS_KEY: Final = "sasl.jaas.config"
MECHANISMS_KEY: Final = "sasl.enabled.mechanisms"
INTER_BROKER_KEY: Final = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_KEY: Final = "sasl.mechanism.controller.protocol"
SERVER_CALLBACK_KEY: Final = "sasl.server.callback.handler.class"
OAUTHBEARER: Final = "OAUTHBEARER"
LOGIN_MODULES: Final = {
    plain.MECHANISM: "org.apache.kafka.common.security.plain.PlainLoginModule",
    scram.SCRAM_SHA_256: "org.apache.kafka.common.security.scram.ScramLoginModule",
    scram.SCRAM_SHA_512: "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
OTHER_MODULES: Final = {
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginModule": OAUTHBEARER,
}


UNSECURED_VALIDATOR: Final = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
SECURED_VALIDATORS: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)
JWT_VALIDATORS: Final = (
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator",
)
JWKS_KEY: Final = "sasl.oauthbearer.jwks.endpoint.url"
TOKEN_URL_KEY: Final = "sasl.oauthbearer.token.endpoint.url"


class BearerSettings:
    """How a listener checks bearer tokens; without `jwks_url` those that nobody has signed are taken, as asked for."""

    def __init__(self, jwks_url: str | None, secured: SecuredSettings) -> None:
        self.jwks_url = jwks_url
        self.secured = secured
        self.refresh_ms = 3_600_000
        self.retry_ms = 100
        self.retry_max_ms = 10_000


class TokenEndpoint:
    """Where this node gets its own bearer tokens."""

    def __init__(self, url: str, client_id: str, secret: str, scope: str | None) -> None:
        self.url = url
        self.client_id = client_id
        self.secret = secret
        self.scope = scope


class MechanismSettings:
    """One mechanism of one listener."""

    def __init__(self, name: str, entry: JaasEntry | None, max_reauth_ms: int) -> None:
        self.name = name
        self.entry = entry
        self.max_reauth_ms = max_reauth_ms

    @property
    def options(self) -> dict[str, str]:
        """Those of its JAAS entry."""
        return {} if self.entry is None else self.entry.options


class ListenerLogins:
    """What a listener with SASL asks of its clients."""

    def __init__(self, listener: str, mechanisms: dict[str, MechanismSettings]) -> None:
        self.listener = listener
        self.mechanisms = mechanisms
        self.receive_bytes_max = 524288
        self.failure_delay_ms = 100
        self.timeout_ms = 30000


class OwnCredentials:
    """As whom this node logs in at another one."""

    def __init__(self, mechanism: str, options: dict[str, str], endpoint: TokenEndpoint | None = None) -> None:
        self.mechanism = mechanism
        self.options = options
        self.endpoint = endpoint

    def __repr__(self) -> str:
        return f"OwnCredentials({self.mechanism}, options hidden)"


def uses_sasl(config: BrokerConfig, listener: str) -> bool:
    return config.security_protocols.get(listener, listener).startswith("SASL_")


def read_listener(config: BrokerConfig, listener: str) -> ListenerLogins:
    """Raises ConfigError with a sentence that says what is missing."""
    enabled = config.get_for_listener(listener, MECHANISMS_KEY)
    assert isinstance(enabled, list)
    logins = ListenerLogins(listener, {name: _read_mechanism(config, listener, name) for name in enabled})
    logins.receive_bytes_max = _number(config.get_for_listener(listener, "sasl.server.max.receive.size"))
    logins.failure_delay_ms = config.get_int("connection.failed.authentication.delay.ms")
    logins.timeout_ms = config.get_int(LOGIN_TIMEOUT_KEY)
    return logins


def _read_mechanism(config: BrokerConfig, listener: str, name: str) -> MechanismSettings:
    if name not in SERVED_MECHANISMS:
        raise ConfigError(f"listener {listener}: the SASL mechanism {name} is not served")
    entry = read_entry(config, listener, name)
    if entry is None and name == plain.MECHANISM:
        raise ConfigError(
            f"listener {listener} offers {name}, but has no users: set {jaas_key(listener, name)} to "
            f'`{LOGIN_MODULES[name]} required user_alice="…";`.'
        )
    handler = config.get_for_mechanism(listener, name, SERVER_CALLBACK_KEY)
    if name == OAUTHBEARER:
        if read_bearer(config, listener).jwks_url is None:
            _check_unsecured({} if entry is None else entry.options, jaas_key(listener, name))
    elif handler:
        raise ConfigError(
            f"listener {listener}: {SERVER_CALLBACK_KEY} of {name} is {handler}, but classes cannot be loaded here and "
            "logins would not be checked by it. Leave it out."
        )
    max_reauth_ms = _number(config.get_for_mechanism(listener, name, "connections.max.reauth.ms"))
    return MechanismSettings(name, entry, max_reauth_ms)


def read_bearer(config: BrokerConfig, listener: str) -> BearerSettings:
    """Raises ConfigError unless tokens are checked, or somebody has asked for tokens that are not (CVE-2026-33557)."""

    def text(name: str) -> str | None:
        value = config.get_for_mechanism(listener, OAUTHBEARER, name)
        return value if isinstance(value, str) and value else None

    handler, url = text(SERVER_CALLBACK_KEY), text(JWKS_KEY)
    if handler is not None and handler != UNSECURED_VALIDATOR and handler not in SECURED_VALIDATORS:
        raise ConfigError(
            f"listener {listener}: {SERVER_CALLBACK_KEY} of {OAUTHBEARER} is {handler}, but classes cannot be loaded "
            f"here: it can be {SECURED_VALIDATORS[0]}, or {UNSECURED_VALIDATOR} for tests."
        )
    if text("sasl.oauthbearer.jwt.validator.class") not in JWT_VALIDATORS:
        raise ConfigError(f"listener {listener}: sasl.oauthbearer.jwt.validator.class can be {JWT_VALIDATORS[1]}.")
    if url is None and handler != UNSECURED_VALIDATOR:
        raise ConfigError(
            f"listener {listener} offers {OAUTHBEARER}, but nobody could check tokens: set {JWKS_KEY} to where the "
            f"issuer's keys are. (Tokens without a signature, for tests, are taken with {SERVER_CALLBACK_KEY}="
            f"{UNSECURED_VALIDATOR}.)"
        )
    secured = SecuredSettings()
    audiences = config.get_for_mechanism(listener, OAUTHBEARER, "sasl.oauthbearer.expected.audience")
    secured.audiences = frozenset(audiences) if isinstance(audiences, list) else frozenset()
    secured.issuer = text("sasl.oauthbearer.expected.issuer")
    secured.sub_claim = text("sasl.oauthbearer.sub.claim.name") or "sub"
    secured.scope_claim = text("sasl.oauthbearer.scope.claim.name") or "scope"

    def number(name: str) -> int:
        return _number(config.get_for_mechanism(listener, OAUTHBEARER, name))

    secured.skew_s = number("sasl.oauthbearer.clock.skew.seconds")
    settings = BearerSettings(None if handler == UNSECURED_VALIDATOR else url, secured)
    settings.refresh_ms = number("sasl.oauthbearer.jwks.endpoint.refresh.ms")
    settings.retry_ms = number("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")
    settings.retry_max_ms = number("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")
    return settings


def _check_unsecured(options: dict[str, str], key: str) -> None:
    try:
        UnsecuredValidator(options)
    except ValueError:
        raise ConfigError(f"{key}: unsecuredValidatorAllowableClockSkewMs is not a number.") from None


def _token_endpoint(config: BrokerConfig, listener: str, options: dict[str, str]) -> TokenEndpoint | None:
    def text(name: str) -> str | None:
        value = config.get_for_mechanism(listener, OAUTHBEARER, name)
        return value if isinstance(value, str) and value else None

    url = text(TOKEN_URL_KEY)
    if url is None:
        return None
    client_id = text("sasl.oauthbearer.client.credentials.client.id") or options.get("clientId", "")
    secret = text("sasl.oauthbearer.client.credentials.client.secret") or options.get("clientSecret", "")
    return TokenEndpoint(url, client_id, secret, text("sasl.oauthbearer.scope") or options.get("scope"))


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def jaas_key(listener: str, mechanism: str) -> str:
    return f"{LISTENER_PREFIX}{listener.lower()}.{mechanism.lower()}.{JAAS_KEY}"


def read_entry(config: BrokerConfig, listener: str, mechanism: str) -> JaasEntry | None:
    """The JAAS entry of a mechanism; one without its prefix does not count, as in Kafka."""
    key = jaas_key(listener, mechanism)
    text = config.values.get(key)
    if not text:
        return None
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise ConfigError(f"{key} cannot be read: {error}.") from None
    if entry.module != LOGIN_MODULES[mechanism] and OTHER_MODULES.get(entry.module) != mechanism:
        raise ConfigError(
            f"{key} names the login module {entry.module}, but classes cannot be loaded here: it can only be "
            f"{LOGIN_MODULES[mechanism]}."
        )
    return entry


# This node as a client


def inter_broker_credentials(config: BrokerConfig) -> OwnCredentials | None:
    """None where brokers take each other without a login."""
    listener = config.inter_broker_listener_name
    if not config.is_broker or not uses_sasl(config, listener):
        return None
    return _credentials(config, listener, config.get_str(INTER_BROKER_KEY), INTER_BROKER_KEY)


def controller_credentials(config: BrokerConfig) -> OwnCredentials | None:
    """None where controllers take everybody."""
    names = config.controller_listener_names
    if not names or not uses_sasl(config, names[0]):
        return None
    return _credentials(config, names[0], config.get_str(CONTROLLER_KEY), CONTROLLER_KEY)


def _credentials(config: BrokerConfig, listener: str, mechanism: str, key: str) -> OwnCredentials:
    if mechanism not in SERVED_MECHANISMS:
        raise ConfigError(
            f"{key} is {mechanism}, with which this node cannot log in at listener {listener} of the others: choose "
            f"one of {', '.join(SERVED_MECHANISMS)}."
        )
    is_own = any(endpoint.name == listener for endpoint in config.listeners)
    enabled = config.get_for_listener(listener, MECHANISMS_KEY)
    assert isinstance(enabled, list)
    if is_own and mechanism not in enabled:
        raise ConfigError(f"{key} is {mechanism}, which has to be in {MECHANISMS_KEY} of listener {listener} too.")
    entry = read_entry(config, listener, mechanism)
    options = {} if entry is None else entry.options
    if mechanism != OAUTHBEARER and not ("username" in options and "password" in options):
        raise ConfigError(
            f"{key} is {mechanism}, but this node has no name and password for listener {listener}: set "
            f'{jaas_key(listener, mechanism)} to `{LOGIN_MODULES[mechanism]} required username="…" password="…";`.'
        )
    if mechanism != OAUTHBEARER:
        return OwnCredentials(mechanism, options)
    endpoint = _token_endpoint(config, listener, options)
    if endpoint is None and "unsecuredLoginStringClaim_sub" not in options:
        raise ConfigError(
            f"{key} is {mechanism}, but this node has no tokens to show at listener {listener}: set {TOKEN_URL_KEY}, "
            "the client's id and its secret."
        )
    return OwnCredentials(mechanism, options, endpoint)


def check_logins(config: BrokerConfig) -> None:
    """Raises ConfigError where a login could not work, or would not keep what it promises."""
    delay_ms, idle_ms = (
        config.get_int("connection.failed.authentication.delay.ms"),
        config.get_int("connections.max.idle.ms"),
    )
    if idle_ms > 0 and delay_ms >= idle_ms:
        raise ConfigError(
            f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
            f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out"
        )
    for endpoint in config.listeners:
        if uses_sasl(config, endpoint.name):
            read_listener(config, endpoint.name)
    inter_broker_credentials(config)
    controller_credentials(config)
