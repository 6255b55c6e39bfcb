"""Whom quotas are for, and how much: entities and values as flags, as sentences and as JSON."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import click

from moldau.cli.output import bytes_text

if TYPE_CHECKING:
    from moldau.client.admin import QuotaEntity

USER, CLIENT_ID, IP = "user", "client-id", "ip"
KINDS = (USER, CLIENT_ID, IP)
CLIENT_QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
IP_QUOTAS = ("connection_creation_rate",)
KEYS = (*CLIENT_QUOTAS, *IP_QUOTAS)
BYTE_RATES = ("producer_byte_rate", "consumer_byte_rate")
UNITS = {
    "request_percentage": "% of a thread",
    "controller_mutation_rate": "partitions/s",
    "connection_creation_rate": "connections/s",
}
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

Parts = dict[str, str | None]


def entity_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags that name an entity and hands the command what they name as parts."""

    @functools.wraps(command)
    def run(
        *args: object,
        user: str | None,
        client_id: str | None,
        ip: str | None,
        user_default: bool,
        client_default: bool,
        ip_default: bool,
        **more: object,
    ) -> None:
        flags = zip(KINDS, (user_default, client_default, ip_default), strict=True)
        command(*args, parts=parts_of(user, client_id, ip, [kind for kind, given in flags if given]), **more)

    for option in (
        click.option("--ip-default", is_flag=True, help="All addresses without a quota of their own."),
        click.option("--ip", metavar="ADDRESS", help="An address, or a host name that brokers can resolve."),
        click.option("--client-default", is_flag=True, help="All client ids without a quota of their own."),
        click.option("--client-id", metavar="NAME", help="A client id; with --user, that of this user."),
        click.option("--user-default", is_flag=True, help="All users without a quota of their own."),
        click.option("--user", metavar="NAME", help="A user; without authentication it is ANONYMOUS."),
    ):
        run = option(run)
    return run


def parts_of(user: str | None, client_id: str | None, ip: str | None, defaults: Iterable[str]) -> Parts:
    """The entity that the flags name: type -> name, None for the default; empty where they name none."""
    given: Parts = {kind: name for kind, name in zip(KINDS, (user, client_id, ip), strict=True) if name is not None}
    for kind, name in given.items():
        if not name:
            raise click.UsageError(f"--{kind} wants a name.")
    for kind in defaults:
        if kind in given:
            flag = kind.removesuffix("-id")
            raise click.UsageError(f"Say --{kind} or --{flag}-default, not both.")
        given[kind] = None
    if IP in given and len(given) > 1:
        raise click.UsageError("A quota of an address cannot be narrowed to a user or a client id.")
    return given


def require_entity(parts: Parts) -> QuotaEntity:
    from moldau.client.admin import QuotaEntity

    if not parts:
        raise click.UsageError("Say for whom: --user, --client-id, --ip, or one of their defaults.")
    return QuotaEntity.of(parts)


def entity_text(parts: Mapping[str, str | None]) -> str:
    """user alice, client id app; default user."""
    shown = []
    for kind in KINDS:
        if kind in parts:
            noun = kind.replace("-", " ")
            name = parts[kind]
            shown.append(f"default {noun}" if name is None else f"{noun} {name}")
    return ", ".join(shown)


def entity_json(parts: Mapping[str, str | None]) -> dict[str, object]:
    """null stands for the default; a type that is not part of the entity is left out."""
    return {kind.replace("-", "_"): parts[kind] for kind in KINDS if kind in parts}


def value_text(key: str, value: float) -> str:
    if key in BYTE_RATES:
        return f"{bytes_text(value)}/s"
    return f"{value:g} {UNITS[key]}" if key in UNITS else f"{value:g}"


def number_text(value: float) -> str:
    """Without an exponent, and without a fraction where there is none."""
    return str(int(value)) if value == int(value) else str(value)


def parse_value(key: str, text: str) -> float:
    """A number; rates of bytes also as 500k, 10MB or 1.5GB/s (powers of ten)."""
    pattern = (
        r"([0-9.]+(?:e[+-]?\d+)?)\s*([kmgt]?)(?:b?(?:/s)?)" if key in BYTE_RATES else r"([0-9.]+(?:e[+-]?\d+)?)(%?)"
    )
    found = re.fullmatch(pattern, text.strip(), re.IGNORECASE)
    try:
        if found is None or (found[2] == "%" and key != "request_percentage"):
            raise ValueError
        value = float(found[1]) * _FACTORS.get(found[2].lower(), 1)
    except ValueError:
        example = "10MB" if key in BYTE_RATES else "50"
        raise click.UsageError(f"{text!r} is no value of {key}: it is a number such as {example}.") from None
    if value <= 0:
        raise click.UsageError(f"{key} must be more than 0; `moldau quota remove` takes a quota away.")
    return value


def parse_key(text: str, parts: Parts | None = None) -> str:
    """The key under Kafka's name; dashes do as well. parts: of an entity that must be able to have it."""
    key = text.strip().replace("-", "_")
    if key not in KEYS:
        raise click.UsageError(f"There is no quota {text!r}. There are: {', '.join(KEYS)}.")
    if parts is not None and (key in IP_QUOTAS) != (IP in parts):
        whom = "addresses (--ip)" if key in IP_QUOTAS else "users and client ids"
        raise click.UsageError(f"{key} is a quota of {whom}.")
    return key
