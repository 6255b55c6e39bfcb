"""Findings about logins: secrets that can be read on the way, tokens that nobody signed, passwords that are guessed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.security import plain, scram
from moldau.security.exposure.findings import NOTE, SEVERE, WARNING, Finding, worse
from moldau.security.exposure.listeners import (
    PROTOCOL_MAP_KEY,
    THIS_MACHINE,
    ListenerView,
    key_in_use,
    mechanism_key_in_use,
)
from moldau.security.sasl_settings import (
    JWKS_KEY,
    OAUTHBEARER,
    SERVER_CALLBACK_KEY,
    UNSECURED_VALIDATOR,
    jaas_key,
    read_entry,
)

PASSWORD_LETTERS_MIN: Final = 12
SECRET_LETTERS_MIN: Final = 32
REAUTH_KEY: Final = "connections.max.reauth.ms"
TOKEN_SECRET_KEY: Final = "delegation.token.secret.key"


def check_logins_of(config: BrokerConfig, listeners: list[ListenerView]) -> Iterator[Finding]:
    for view in listeners:
        if view.mechanisms:
            yield from _in_the_clear(view)
            if OAUTHBEARER in view.mechanisms:
                yield from _bearer_tokens(config, view)
            if plain.MECHANISM in view.mechanisms:
                yield from _weak_passwords(config, view)
            yield from _endless(config, view)
    secret = config.get_str_or_none(TOKEN_SECRET_KEY)
    if secret is not None and len(secret) < SECRET_LETTERS_MIN:
        text = f"Whoever guesses this secret can make all delegation tokens: use {SECRET_LETTERS_MIN} letters or more."
        yield Finding(WARNING, "short-token-secret", TOKEN_SECRET_KEY, text)


def _in_the_clear(view: ListenerView) -> Iterator[Finding]:
    if view.is_encrypted:
        return
    readable = [name for name in view.mechanisms if name in (plain.MECHANISM, OAUTHBEARER)]
    if readable:
        what = "passwords" if readable == [plain.MECHANISM] else "passwords and tokens"
        what = "bearer tokens" if readable == [OAUTHBEARER] else what
        text = f"{' and '.join(readable)} without TLS: {what} can be read by who can listen, and used by them."
        yield Finding(view.scaled(SEVERE), "secrets-in-the-clear", PROTOCOL_MAP_KEY, text, view.name)
    elif any(name in scram.HASHES for name in view.mechanisms):
        text = "Passwords are proved and not sent, but records are not encrypted, and passwords can be guessed from it."
        yield Finding(view.scaled(WARNING), "unencrypted-logins", PROTOCOL_MAP_KEY, text, view.name)


def _bearer_tokens(config: BrokerConfig, view: ListenerView) -> Iterator[Finding]:
    def text_of(name: str) -> str:
        value = config.get_for_mechanism(view.name, OAUTHBEARER, name)
        return value if isinstance(value, str) else ""

    if text_of(SERVER_CALLBACK_KEY) == UNSECURED_VALIDATOR:
        severity = WARNING if view.reach == THIS_MACHINE else worse(view.scaled(SEVERE), WARNING)
        key = mechanism_key_in_use(config, view.name, OAUTHBEARER, SERVER_CALLBACK_KEY)
        text = "Tokens without a signature are taken: everybody can write one and be whom they like."
        yield Finding(severity, "unsigned-tokens", key, text, view.name)
        return
    url = text_of(JWKS_KEY)
    if url.startswith("http:"):
        text = f"The issuer's keys come over plain HTTP ({url}): who changes them on the way can sign tokens."
        key = mechanism_key_in_use(config, view.name, OAUTHBEARER, JWKS_KEY)
        yield Finding(view.scaled(SEVERE), "keys-over-http", key, text, view.name)
    missing = [
        name
        for name in ("sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.expected.audience")
        if not config.get_for_mechanism(view.name, OAUTHBEARER, name)
    ]
    if missing:
        text = "Tokens that the issuer has signed for other services are good here as well."
        yield Finding(WARNING, "tokens-for-others", " and ".join(missing), text, view.name)


def _weak_passwords(config: BrokerConfig, view: ListenerView) -> Iterator[Finding]:
    """No password is shown, nor how long it is."""
    try:
        entry = read_entry(config, view.name, plain.MECHANISM)
    except ConfigError:
        return
    options = {} if entry is None else entry.options
    users = {name.removeprefix("user_"): value for name, value in options.items() if name.startswith("user_")}
    weak = sorted(
        name
        for name, password in users.items()
        if len(password) < PASSWORD_LETTERS_MIN or name.lower() in password.lower()
    )
    if weak:
        text = f"The password of {', '.join(weak)} is shorter than {PASSWORD_LETTERS_MIN} letters or contains the name."
        yield Finding(WARNING, "weak-passwords", jaas_key(view.name, plain.MECHANISM), text, view.name)


def _endless(config: BrokerConfig, view: ListenerView) -> Iterator[Finding]:
    endless = [name for name in view.mechanisms if config.get_for_mechanism(view.name, name, REAUTH_KEY) in (0, None)]
    if endless and endless != [OAUTHBEARER]:
        text = "A login counts for as long as its connection: who is removed stays in until then."
        yield Finding(NOTE, "endless-logins", key_in_use(config, view.name, REAUTH_KEY), text, view.name)
