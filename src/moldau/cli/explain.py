"""Turns errors into one or two sentences that say what is wrong and what to do next."""

from __future__ import annotations

from moldau.cli.options import address_origin
from moldau.cli.profiles import ProfileError
from moldau.client.errors import ClientError, ConfigError, NetworkError, NoBrokerError, ProtocolError
from moldau.protocol import errors

# An error that says this names the setting that is wrong: the address that the user gave is not.
ADVERTISED = "advertised.listeners"

_MAY_NOT = "The user may not do that; an administrator can allow it with `moldau acl create`."
_NEXT_STEPS = {
    errors.UNKNOWN_TOPIC_OR_PARTITION: "`moldau topic list` shows which topics there are.",
    errors.TOPIC_ALREADY_EXISTS: "Choose another name, or accept it with --if-not-exists.",
    errors.INVALID_REPLICATION_FACTOR: "`moldau cluster describe` shows which brokers there are.",
    errors.INVALID_CONFIG: "`moldau config describe topic NAME --all --docs` shows the configs there are.",
    errors.REQUEST_TIMED_OUT: "Is the broker busy, or is the address right? --timeout allows more time.",
    errors.NOT_ENOUGH_REPLICAS: "`moldau cluster health` shows which replicas are missing.",
    errors.TOPIC_AUTHORIZATION_FAILED: _MAY_NOT,
    errors.CLUSTER_AUTHORIZATION_FAILED: _MAY_NOT,
    errors.GROUP_AUTHORIZATION_FAILED: _MAY_NOT,
    errors.SECURITY_DISABLED: "authorizer.class.name turns an authorizer on, in the properties of each node.",
    errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "Log in with a password or a certificate: nobody gets a token without a login, nor by another token."
    ),
    errors.DELEGATION_TOKEN_AUTH_DISABLED: "delegation.token.secret.key turns them on, the same on each node.",
    errors.DELEGATION_TOKEN_NOT_FOUND: "`moldau token describe` shows which tokens there are.",
    errors.MESSAGE_TOO_LARGE: "The topic takes records up to max.message.bytes: `moldau topic alter` can raise it.",
}


def explain(error: Exception) -> str | None:
    """The sentences for an error that was to be expected; None for any other."""
    if isinstance(error, ClientError) and ADVERTISED in error.message:
        step = ""
    elif isinstance(error, NoBrokerError):
        step = address_origin() or "Is a broker there? `moldau server` starts one."
        step += " --bootstrap-server HOST:PORT names another address."
    elif isinstance(error, NetworkError | ProtocolError):
        step = f"{address_origin()} Is the address given with --bootstrap-server right?".strip()
    elif isinstance(error, ConfigError):
        step = ""
    elif isinstance(error, ClientError):
        step = _NEXT_STEPS.get(error.code, "")
    elif isinstance(error, ProfileError):
        return str(error)
    elif isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}."
    else:
        return None
    return f"{sentence(error.message)} {step}".rstrip()


def sentence(text: str) -> str:
    """The text with a full stop."""
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
