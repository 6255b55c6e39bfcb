"""Broker keys that Apache Kafka does not have; their names begin with `moldau.`, and DescribeConfigs lists those set."""

import re
from typing import Final

from moldau.config.definitions import (
    BOOLEAN,
    CLUSTER_WIDE,
    LONG,
    READ_ONLY,
    STRING,
    ConfigKey,
    ConfigKeys,
    InvalidValue,
    Value,
    at_least,
    one_of,
)

FREE_BYTES_MIN_KEY: Final = "moldau.log.dir.free.bytes.min"
SCRUB_RATE_KEY: Final = "moldau.log.scrub.bytes.per.second"

METRICS_LISTENER_KEY: Final = "moldau.metrics.listener"
METRICS_NAMES_KEY: Final = "moldau.metrics.names"
METRICS_TOPICS_KEY: Final = "moldau.metrics.topics"
METRICS_GROUPS_KEY: Final = "moldau.metrics.groups"
METRICS_PARTITIONS_MAX_KEY: Final = "moldau.metrics.partitions.max"
METRICS_GROUPS_MAX_KEY: Final = "moldau.metrics.groups.max"
METRICS_SPELLINGS: Final = ("strimzi", "confluent")
LOGIN_TIMEOUT_KEY: Final = "moldau.login.timeout.ms"

TELEMETRY_KEY: Final = "moldau.client.telemetry.enable"
TELEMETRY_ENDPOINT_KEY: Final = "moldau.client.telemetry.otlp.endpoint"
TELEMETRY_SERIES_MAX_KEY: Final = "moldau.client.telemetry.series.max"


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`; the host is empty for all addresses, and an IPv6 one has brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ValueError(text)
    return host.removeprefix("[").removesuffix("]"), int(port)


def address_or_nothing(name: str, value: Value) -> None:
    if isinstance(value, str) and value:
        try:
            split_address(value)
        except ValueError:
            raise InvalidValue(name, value, "Expected host:port, like 127.0.0.1:9404, or nothing") from None


def web_address_or_nothing(name: str, value: Value) -> None:
    if isinstance(value, str) and value and not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", value):
        raise InvalidValue(name, value, "Expected a URL, like http://127.0.0.1:4318/v1/metrics, or nothing")


def expression(name: str, value: Value) -> None:
    if isinstance(value, str):
        try:
            re.compile(value)
        except re.error as error:
            raise InvalidValue(name, value, f"Expected a regular expression: {error}") from None


# fmt: off
# ruff: noqa: E501
OWN_KEYS: Final = ConfigKeys((
    ConfigKey(TELEMETRY_KEY,        BOOLEAN, "false",  None,               "Whether clients are offered to push their metrics (KIP-714), as subscriptions made with kafka-client-metrics ask them to.", dynamic=READ_ONLY),
    ConfigKey(TELEMETRY_ENDPOINT_KEY, STRING, "",      web_address_or_nothing, "URL that what clients push is sent on to, as OTLP over HTTP; empty for none.", dynamic=READ_ONLY),
    ConfigKey(TELEMETRY_SERIES_MAX_KEY, LONG, "10000", at_least(0),        "How many series of what clients push are among the metrics; what is left out is counted.", dynamic=READ_ONLY),
    ConfigKey(FREE_BYTES_MIN_KEY,   LONG,   "-1",      at_least(-1),       "Free space of a log directory's volume below which producers are refused; -1 is 256 MiB or a twentieth of the volume, whichever is less, 0 never refuses.", dynamic=CLUSTER_WIDE),
    ConfigKey(LOGIN_TIMEOUT_KEY,    LONG,   "30000",   at_least(1),        "Time a connection to a listener with SASL has until its client has logged in.", dynamic=READ_ONLY),
    ConfigKey(METRICS_GROUPS_KEY,   STRING, "",        expression,         "Regular expression, matched anywhere: groups whose offsets and lag are among the metrics; empty for all.", dynamic=READ_ONLY),
    ConfigKey(METRICS_GROUPS_MAX_KEY, LONG, "1000",    at_least(0),        "Of how many groups offsets and lag are among the metrics; what is left out is counted.", dynamic=READ_ONLY),
    ConfigKey(METRICS_PARTITIONS_MAX_KEY, LONG, "10000", at_least(0),      "For how many partitions, and partitions of groups, a metric has rows; what is left out is counted.", dynamic=READ_ONLY),
    ConfigKey(METRICS_TOPICS_KEY,   STRING, "^(?!__)", expression,         "Regular expression, matched anywhere: topics that the names of kafka_exporter and kafka-lag-exporter are served for; internal ones are left out by default.", dynamic=READ_ONLY),
    ConfigKey(METRICS_LISTENER_KEY, STRING, "",        address_or_nothing, "Address, as host:port, of a page /metrics over HTTP in the text form of Prometheus; empty for none.", dynamic=READ_ONLY),
    ConfigKey(METRICS_NAMES_KEY,    STRING, "strimzi", one_of(*METRICS_SPELLINGS), "How metrics are named: as the dashboards of Strimzi spell them, or as those of Confluent do.", dynamic=READ_ONLY),
    ConfigKey(SCRUB_RATE_KEY,       LONG,   "4194304", at_least(0),        "Bytes per second of old segments that are read to verify their checksums; 0 reads none.", dynamic=CLUSTER_WIDE),
))
# fmt: on
