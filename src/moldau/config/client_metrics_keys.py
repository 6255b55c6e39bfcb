"""The keys of a client metrics subscription and the patterns it selects clients with."""

import re
from typing import Final

from moldau.config.definitions import INT, LIST, ConfigError, ConfigKey, ConfigKeys, items
from moldau.config.java_patterns import compile_java_pattern

INTERVAL_MS_MIN: Final = 100
INTERVAL_MS_MAX: Final = 3_600_000

MATCH_FIELDS: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)

# fmt: off
# ruff: noqa: E501
CLIENT_METRICS_KEYS: Final = ConfigKeys((
    ConfigKey("metrics",     LIST, "",       items, "Prefixes of the metric names that clients send; * is all, nothing is none."),
    ConfigKey("interval.ms", INT,  "300000", None,  "Time between two pushes of metrics by a client."),
    ConfigKey("match",       LIST, "",       items, "Patterns that choose the clients, as field=regular expression; nothing is every client."),
))
# fmt: on


def parse_match(patterns: list[str]) -> dict[str, re.Pattern[str]]:
    """The pattern of each field, which has to match the whole of it; a client is chosen when all of them do."""
    found: dict[str, re.Pattern[str]] = {}
    for text in patterns:
        # Empty parts at the end are none to Java.
        parts = text.rstrip("=").split("=")
        field = parts[0].strip()
        if len(parts) != 2 or field not in MATCH_FIELDS:
            raise ConfigError(f"Illegal client matching pattern: {text}")
        try:
            found[field] = compile_java_pattern(parts[1].strip())
        except ConfigError:
            raise ConfigError(f"Illegal client matching pattern: {text}") from None
    return found
