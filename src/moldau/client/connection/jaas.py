"""The line in which Java's clients name who they are: `sasl.jaas.config`."""

from __future__ import annotations

from moldau.client.errors import ConfigError
from moldau.security.jaas import JaasError, parse_jaas


def jaas_options(text: str) -> dict[str, str]:
    """The options of a JAAS line: `…PlainLoginModule required username="alice" password="secret";`."""
    try:
        return parse_jaas(text).options
    except JaasError:
        raise ConfigError(
            'sasl.jaas.config cannot be read: write it as `ModuleName required username="…" password="…";`, with the'
            " semicolon."
        ) from None
