"""Turns errors into one or two sentences that say what is wrong and what to do next."""

from __future__ import annotations

from moldau.client.errors import ClientError, ConfigError, NetworkError, NoBrokerError, ProtocolError
from moldau.protocol.errors import (
    INVALID_PARTITIONS,
    REQUEST_TIMED_OUT,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC_OR_PARTITION,
)

_NEXT_STEPS = {
    UNKNOWN_TOPIC_OR_PARTITION: "`moldau topic list` shows which topics there are.",
    TOPIC_ALREADY_EXISTS: "Choose another name, or accept it with --if-not-exists.",
    INVALID_PARTITIONS: "Give a number of partitions above 0.",
    REQUEST_TIMED_OUT: "Is the broker busy, or is the address right? --timeout allows more time.",
}


def explain(error: Exception) -> str | None:
    """The sentences for an error that was to be expected; None for any other."""
    if isinstance(error, NoBrokerError):
        step = "Start a broker with `moldau server`, or say where one is with --bootstrap-server HOST:PORT."
    elif isinstance(error, (NetworkError, ProtocolError)):
        step = "Is the address given with --bootstrap-server right?"
    elif isinstance(error, ConfigError):
        step = ""
    elif isinstance(error, ClientError):
        step = _NEXT_STEPS.get(error.code, "")
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
