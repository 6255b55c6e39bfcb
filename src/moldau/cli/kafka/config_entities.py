"""Whom `kafka-configs` is about: the kinds of entities, their flags, and those that a command line names."""

from __future__ import annotations

from moldau.cli.kafka.options import Options

# The flags for one entity and what --entity-type calls it, in the order in which they are looked at.
FLAGS = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
    "client-metrics": "client-metrics",
    "group": "groups",
}
DEFAULTS = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}
# type -> (resource type, the source of its own values; None: all count)
RESOURCES: dict[str, tuple[int, int | None]] = {
    "topics": (2, 1),
    "brokers": (4, 2),
    "broker-loggers": (8, None),
    "client-metrics": (16, 7),
    "groups": (32, 8),
}
ILLEGAL = "java.lang.IllegalArgumentException"
# Errors of the user, told in one sentence; what a broker says comes with the command line and the exception.
TERSE = (ILLEGAL, "org.apache.kafka.common.errors.InvalidConfigurationException (found here)")


class Entities:
    """Whom the command line is about; an empty name stands for the default."""

    def __init__(self, options: Options, arguments: list[str]) -> None:
        named = [flag for flag in FLAGS if options.has(flag)]
        defaults = [flag for flag in DEFAULTS if options.has(flag)]
        self.types = options.values("entity-type") + [FLAGS[flag] for flag in named] + [DEFAULTS[f] for f in defaults]
        values = iter(options.values("entity-name"))
        words = [word.partition("=")[0].lstrip("-") for word in arguments if word.startswith("--")]
        self.names = [
            next(values, "") if word == "entity-name" else ""
            for word in words
            if word in ("entity-name", "entity-default")
        ]
        self.names += [options.text(flag) or "" for flag in named] + [""] * len(defaults)


def singular(kind: str) -> str:
    return kind[:-1]
