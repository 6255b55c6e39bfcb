"""The client's settings: Kafka's names, with '.' or '_', their types, defaults and limits.

A row here is a setting that the client honours. A name without a row is refused with the nearest name that
exists, because a misspelt setting that is silently ignored is found much later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.client.errors import ConfigError

INT_MAX = 0x7FFFFFFF
LONG_MAX = 0x7FFFFFFFFFFFFFFF

Value = int | float | bool | str

# auto.offset.reset (KIP-1106): what follows is an ISO 8601 duration.
BY_DURATION = "by_duration:"

# Kafka's settings for what this client does not have: worth another sentence than a misspelt name.
_NOT_YET = (
    "ssl.",
    "sasl.",
    "security.",
)
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
STORE_TYPES = ("JKS", "PKCS12", "PEM")


class Setting(NamedTuple):
    """One row: what kind of value, its default, and which values are allowed."""

    default: Value | None
    lowest: int | None = None
    highest: int | None = None
    choices: tuple[str, ...] = ()
    # Values are compared without regard to case, and taken as the choice is written.
    any_case: bool = False


_COMMON: dict[str, Setting] = {
    "bootstrap.servers": Setting("localhost:9092"),
    "client.id": Setting("moldau"),
    "request.timeout.ms": Setting(30_000, 0, INT_MAX),
    "retry.backoff.ms": Setting(100, 0, LONG_MAX),
    "retry.backoff.max.ms": Setting(1_000, 0, LONG_MAX),
    "reconnect.backoff.ms": Setting(50, 0, LONG_MAX),
    "reconnect.backoff.max.ms": Setting(1_000, 0, LONG_MAX),
    "connections.max.idle.ms": Setting(540_000, -1, LONG_MAX),
    "metadata.max.age.ms": Setting(300_000, 0, LONG_MAX),
    "metadata.recovery.strategy": Setting("rebootstrap", choices=("rebootstrap", "none"), any_case=True),
    "socket.connection.setup.timeout.ms": Setting(10_000, 0, LONG_MAX),
    "socket.connection.setup.timeout.max.ms": Setting(30_000, 0, LONG_MAX),
    # Kafka's defaults would switch off the system's own tuning of these.
    "send.buffer.bytes": Setting(-1, -1, INT_MAX),
    "receive.buffer.bytes": Setting(-1, -1, INT_MAX),
    "security.protocol": Setting("PLAINTEXT", choices=SECURITY_PROTOCOLS, any_case=True),
    "sasl.jaas.config": Setting(None),
    "sasl.mechanism": Setting("GSSAPI"),
    # Not Kafka's, but librdkafka's: what a JAAS line would say.
    "sasl.password": Setting(None),
    "sasl.username": Setting(None),
    "ssl.enabled.protocols": Setting("TLSv1.2,TLSv1.3"),
    "ssl.endpoint.identification.algorithm": Setting("https"),
    "ssl.key.password": Setting(None),
    "ssl.keystore.certificate.chain": Setting(None),
    "ssl.keystore.key": Setting(None),
    "ssl.keystore.location": Setting(None),
    "ssl.keystore.password": Setting(None),
    # What a store is can be seen by looking into it.
    "ssl.keystore.type": Setting("JKS", choices=STORE_TYPES, any_case=True),
    "ssl.protocol": Setting("TLSv1.3"),
    "ssl.truststore.certificates": Setting(None),
    "ssl.truststore.location": Setting(None),
    "ssl.truststore.password": Setting(None),
    "ssl.truststore.type": Setting("JKS", choices=STORE_TYPES, any_case=True),
}

ADMIN: dict[str, Setting] = {
    **_COMMON,
    "default.api.timeout.ms": Setting(60_000, 0, INT_MAX),
}

PRODUCER: dict[str, Setting] = {
    **_COMMON,
    "acks": Setting("all", choices=("all", "-1", "0", "1")),
    "batch.size": Setting(16_384, 0, INT_MAX),
    "buffer.memory": Setting(33_554_432, 0, LONG_MAX),
    "compression.type": Setting("none", choices=("none", "gzip", "snappy", "lz4", "zstd")),
    "compression.gzip.level": Setting(-1, -1, 9),
    "compression.lz4.level": Setting(9, 1, 17),
    "compression.zstd.level": Setting(3, -131_072, 22),
    "delivery.timeout.ms": Setting(120_000, 0, INT_MAX),
    "enable.idempotence": Setting(True),
    "linger.ms": Setting(5, 0, LONG_MAX),
    "max.block.ms": Setting(60_000, 0, LONG_MAX),
    "max.in.flight.requests.per.connection": Setting(5, 1, INT_MAX),
    "max.request.size": Setting(1_048_576, 0, INT_MAX),
    "partitioner.adaptive.partitioning.enable": Setting(True),
    "partitioner.availability.timeout.ms": Setting(0, 0, LONG_MAX),
    "partitioner.ignore.keys": Setting(False),
    "retries": Setting(INT_MAX, 0, INT_MAX),
    "transaction.timeout.ms": Setting(60_000, 1, INT_MAX),
    "transaction.two.phase.commit.enable": Setting(False),
    "transactional.id": Setting(None),
}

CONSUMER: dict[str, Setting] = {
    **_COMMON,
    "allow.auto.create.topics": Setting(True),
    "auto.commit.interval.ms": Setting(5_000, 0, INT_MAX),
    "auto.offset.reset": Setting("latest", choices=("latest", "earliest", "none", "by_duration:PnDTnHnMn.nS")),
    "check.crcs": Setting(True),
    "client.rack": Setting(""),
    "default.api.timeout.ms": Setting(60_000, 0, INT_MAX),
    "enable.auto.commit": Setting(True),
    "exclude.internal.topics": Setting(True),
    "fetch.max.bytes": Setting(52_428_800, 0, INT_MAX),
    "fetch.max.wait.ms": Setting(500, 0, INT_MAX),
    "fetch.min.bytes": Setting(1, 0, INT_MAX),
    "group.id": Setting(None),
    "group.instance.id": Setting(None),
    "group.protocol": Setting("classic", choices=("classic", "consumer"), any_case=True),
    "group.remote.assignor": Setting(None),
    "heartbeat.interval.ms": Setting(3_000, 0, INT_MAX),
    "isolation.level": Setting("read_uncommitted", choices=("read_committed", "read_uncommitted")),
    "max.partition.fetch.bytes": Setting(1_048_576, 0, INT_MAX),
    "max.poll.interval.ms": Setting(300_000, 1, INT_MAX),
    "max.poll.records": Setting(500, 1, INT_MAX),
    "partition.assignment.strategy": Setting(
        "org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    ),
    "session.timeout.ms": Setting(45_000, 0, INT_MAX),
}

SHARE_CONSUMER: dict[str, Setting] = {
    **_COMMON,
    "allow.auto.create.topics": Setting(True),
    "check.crcs": Setting(True),
    "client.rack": Setting(""),
    "default.api.timeout.ms": Setting(60_000, 0, INT_MAX),
    "fetch.max.bytes": Setting(52_428_800, 0, INT_MAX),
    "fetch.max.wait.ms": Setting(500, 0, INT_MAX),
    "fetch.min.bytes": Setting(1, 0, INT_MAX),
    "group.id": Setting(None),
    "max.poll.interval.ms": Setting(300_000, 1, INT_MAX),
    "max.poll.records": Setting(500, 1, INT_MAX),
    "share.acknowledgement.mode": Setting("implicit", choices=("implicit", "explicit"), any_case=True),
    "share.acquire.mode": Setting("batch_optimized", choices=("batch_optimized", "record_limit"), any_case=True),
}

# A consumer's settings that are the group's or the broker's to decide in a share group; Kafka refuses them too.
NOT_FOR_SHARE_GROUPS = (
    "auto.offset.reset",
    "enable.auto.commit",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "interceptor.classes",
    "isolation.level",
    "partition.assignment.strategy",
    "session.timeout.ms",
)


def read(
    settings: Mapping[str, Setting],
    bootstrap_servers: str | Iterable[str] | None,
    config: Mapping[str, object] | None,
    more: Mapping[str, object],
) -> ClientConfig:
    """The settings of a client as its constructor takes them."""
    return ClientConfig(settings, gather(bootstrap_servers, config, more))


def gather(
    bootstrap_servers: str | Iterable[str] | Mapping[str, object] | None,
    config: Mapping[str, object] | None,
    more: Mapping[str, object],
) -> dict[str, object]:
    """All settings that a constructor was given. A mapping in the first place is what others call a configuration."""
    if config is not None and not isinstance(config, Mapping):
        raise TypeError(f"config is {config!r}: give a mapping of Kafka's settings.")
    given = {**(config or {}), **more}
    if bootstrap_servers is not None and (
        isinstance(bootstrap_servers, bytes) or not isinstance(bootstrap_servers, Iterable)
    ):
        raise TypeError(f"The bootstrap servers are {bootstrap_servers!r}: give text such as 'localhost:9092'.")
    if isinstance(bootstrap_servers, Mapping):
        return {**bootstrap_servers, **given}
    if bootstrap_servers is not None:
        given["bootstrap.servers"] = (
            bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(map(str, bootstrap_servers))
        )
    return given


def dotted(name: object) -> str:
    """A setting's name as Kafka writes it."""
    if not isinstance(name, str):
        raise ConfigError(f"Settings are named by text, not by {name!r}.")
    return name.replace("_", ".")


class ClientConfig:
    """Checked settings of one client; read with get_int, get_bool and get_text."""

    def __init__(self, settings: Mapping[str, Setting], given: Mapping[str, object]) -> None:
        self._values: dict[str, Value | None] = {name: row.default for name, row in settings.items()}
        self.given: set[str] = set()
        for spelling, value in given.items():
            name = dotted(spelling)
            row = settings.get(name)
            if settings is SHARE_CONSUMER and name in NOT_FOR_SHARE_GROUPS:
                raise ConfigError(f"{name} cannot be set when using a share group.")
            if row is None:
                raise ConfigError(_unknown(name, settings))
            if value is None and row.default is None:
                continue  # the same as not set
            self._values[name] = _check(name, row, value)
            self.given.add(name)

    def get_int(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def get_bool(self, name: str) -> bool:
        return self._values[name] is True

    def get_text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str)
        return value

    def get_optional(self, name: str) -> str | None:
        """The text of a setting that need not be set."""
        return None if self._values[name] is None else self.get_text(name)


def _unknown(name: str, settings: Mapping[str, Setting]) -> str:
    import difflib

    if name.startswith(_NOT_YET):
        return f"The client does not support Kafka's setting {name}."
    near = difflib.get_close_matches(name, list(settings), 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"The client has no setting {name}.{hint}"


def _check(name: str, row: Setting, value: object) -> Value:
    if isinstance(row.default, bool):
        return _check_bool(name, value)
    if isinstance(row.default, int):
        return _check_int(name, row, value)
    if isinstance(value, (list, tuple)):
        value = ",".join(str(item) for item in value)
    text = str(value)
    if row.any_case:
        text = next((choice for choice in row.choices if choice.lower() == text.lower()), text)
    if row.choices and text not in row.choices and not (name == "auto.offset.reset" and _is_duration(text)):
        raise ConfigError(f"Invalid value {text} for {name}: it must be one of {', '.join(row.choices)}.")
    return text


def _is_duration(text: str) -> bool:
    return text.startswith(BY_DURATION) and duration_ms(text.removeprefix(BY_DURATION)) is not None


def duration_ms(text: str) -> int | None:
    """An ISO 8601 duration such as P1DT2H3M4.5S in milliseconds; None if it is not one."""
    import re

    found = re.fullmatch(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?", text)
    if found is None or text == "P":
        return None
    days, hours, minutes, seconds = found.groups()
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60_000
    return whole + int(float(seconds or 0) * 1000)


def _check_bool(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text not in ("true", "false"):
        raise ConfigError(f"Invalid value {value} for {name}: it must be true or false.")
    return text == "true"


def _check_int(name: str, row: Setting, value: object) -> int:
    try:
        number = int(str(value))
    except ValueError:
        raise ConfigError(f"Invalid value {value} for {name}: it must be a whole number.") from None
    if (row.lowest is not None and number < row.lowest) or (row.highest is not None and number > row.highest):
        raise ConfigError(f"Invalid value {number} for {name}: it must be from {row.lowest} to {row.highest}.")
    if name == "compression.gzip.level" and number == 0:
        raise ConfigError(f"Invalid value 0 for {name}: it must be from 1 to 9, or -1.")
    return number


def parse_addresses(text: str) -> list[tuple[str, int]]:
    """'host:port,[::1]:port' as a list of addresses."""
    addresses: list[tuple[str, int]] = []
    for item in text.split(","):
        item = item.strip()
        if not item:
            continue
        host, colon, port = item.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif "://" in item:
            raise ConfigError(f"Invalid address {item} in bootstrap.servers: leave out what is before host:port.")
        elif ":" in host:
            hint = f"an IPv6 address stands in brackets, as in [{host}]:{port}"
            raise ConfigError(f"Invalid address {item} in bootstrap.servers: {hint}.")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigError(f"Invalid address {item} in bootstrap.servers: write it as host:port.")
        addresses.append((host, int(port)))
    if not addresses:
        raise ConfigError("bootstrap.servers is empty: name at least one broker as host:port.")
    return addresses
