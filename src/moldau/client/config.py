"""The client's settings: Kafka's names, with '.' or '_', their types, defaults and limits.

A row here is a setting that the client honours. A name without a row is refused with the nearest name that
exists, because a misspelt setting that is silently ignored is found much later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from moldau.client.errors import ConfigError
from moldau.protocol.integers import INT_MAX, LONG_MAX

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
    """One row: what kind of value, its default, which values are allowed, and what it does."""

    default: Value | None
    lowest: int | None = None
    highest: int | None = None
    choices: tuple[str, ...] = ()
    # Values are compared without regard to case, and taken as the choice is written.
    any_case: bool = False
    # A sentence for users, in editors (setting_types.py) and in docs/client-settings.md.
    about: str = ""
    # It takes a function, which is not shown.
    is_function: bool = False


# What all clients take.
COMMON: dict[str, Setting] = {
    "bootstrap.servers": Setting(
        "localhost:9092", about="Brokers to begin with, host:port with commas between; the cluster names the others."
    ),
    "client.id": Setting("moldau", about="The name by which brokers know this client, in their logs and for quotas."),
    "request.timeout.ms": Setting(30_000, 0, INT_MAX, about="How long a broker may take to respond to one request."),
    "retry.backoff.ms": Setting(
        100, 0, LONG_MAX, about="The pause before a request that failed is tried again; it doubles with each failure."
    ),
    "retry.backoff.max.ms": Setting(1_000, 0, LONG_MAX, about="The longest pause between two tries of a request."),
    "reconnect.backoff.ms": Setting(
        50, 0, LONG_MAX, about="The pause before a lost broker is connected to again; it doubles with each failure."
    ),
    "reconnect.backoff.max.ms": Setting(1_000, 0, LONG_MAX, about="The longest pause between two tries to connect."),
    "connections.max.idle.ms": Setting(
        540_000, -1, LONG_MAX, about="A connection that nobody used for so long is closed; -1 keeps it."
    ),
    "enable.metrics.push": Setting(
        True, about="Metrics are pushed to brokers that ask for them (KIP-714); most do not offer to take any."
    ),
    "metrics.num.samples": Setting(
        2, 1, INT_MAX, about="How many samples rates and averages of metrics() are made of."
    ),
    "metrics.sample.window.ms": Setting(30_000, 0, LONG_MAX, about="How long one sample of metrics() lasts."),
    "metadata.max.age.ms": Setting(
        300_000, 0, LONG_MAX, about="Topics, leaders and brokers are asked for anew at least so often."
    ),
    "metadata.recovery.strategy": Setting(
        "rebootstrap",
        choices=("rebootstrap", "none"),
        any_case=True,
        about="Whether the bootstrap servers are asked again when no known broker can be reached.",
    ),
    "socket.connection.setup.timeout.ms": Setting(
        10_000, 0, LONG_MAX, about="How long a connection may take to be made; it doubles with each failure."
    ),
    "socket.connection.setup.timeout.max.ms": Setting(
        30_000, 0, LONG_MAX, about="The longest time that a connection may take to be made."
    ),
    # Kafka's defaults would switch off the system's own tuning of these.
    "send.buffer.bytes": Setting(
        -1, -1, INT_MAX, about="The size of a socket's send buffer; -1 leaves it to the system."
    ),
    "receive.buffer.bytes": Setting(
        -1, -1, INT_MAX, about="The size of a socket's receive buffer; -1 leaves it to the system."
    ),
    "security.protocol": Setting(
        "PLAINTEXT",
        choices=SECURITY_PROTOCOLS,
        any_case=True,
        about="How to speak to brokers: with TLS (SSL) or without, with a login (SASL) or without.",
    ),
    "sasl.jaas.config": Setting(
        None, about='The login as for Java: \'…LoginModule required username="…" password="…";\'.'
    ),
    "sasl.mechanism": Setting("GSSAPI", about="How to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."),
    "sasl.oauthbearer.client.credentials.client.id": Setting(None, about="Who asks the token endpoint for a token."),
    "sasl.oauthbearer.client.credentials.client.secret": Setting(None, about="The secret of that client id."),
    "sasl.oauthbearer.scope": Setting(None, about="The scope that a token is asked for with."),
    "sasl.oauthbearer.token.endpoint.url": Setting(
        None, about="Where tokens are asked for, or file: and the path of one; KAFKA_OPTS has to allow it."
    ),
    # Not Kafka's, which names a class there.
    "sasl.oauthbearer.token.provider": Setting(
        None,
        about="A function that returns a token for OAUTHBEARER, called when a new one is needed.",
        is_function=True,
    ),
    # Not Kafka's, but librdkafka's: what a JAAS line would say.
    "sasl.password": Setting(None, about="The password of sasl.username."),
    "sasl.username": Setting(None, about="Who logs in, in place of sasl.jaas.config, as librdkafka names it."),
    "ssl.enabled.protocols": Setting("TLSv1.2,TLSv1.3", about="The versions of TLS to offer."),
    "ssl.endpoint.identification.algorithm": Setting(
        "https", about="https: a broker's certificate must name its host. Empty: it need not."
    ),
    "ssl.key.password": Setting(None, about="The password of the client's own key."),
    "ssl.keystore.certificate.chain": Setting(None, about="The client's own certificate and those above it, as PEM."),
    "ssl.keystore.key": Setting(None, about="The client's own key, as PEM."),
    "ssl.keystore.location": Setting(None, about="The file with the client's own key and certificate: PEM or PKCS12."),
    "ssl.keystore.password": Setting(None, about="The password of the file in ssl.keystore.location."),
    # What a store is can be seen by looking into it.
    "ssl.keystore.type": Setting(
        "JKS",
        choices=STORE_TYPES,
        any_case=True,
        about="Taken and not needed: what a store is shows when it is opened.",
    ),
    "ssl.protocol": Setting("TLSv1.3", about="Taken and not needed: ssl.enabled.protocols says which versions."),
    "ssl.truststore.certificates": Setting(None, about="The certificates to trust, as PEM."),
    "ssl.truststore.location": Setting(
        None, about="The file with the certificates to trust: PEM, PKCS12 or JKS. None: those that the system trusts."
    ),
    "ssl.truststore.password": Setting(None, about="The password of the file in ssl.truststore.location."),
    "ssl.truststore.type": Setting(
        "JKS",
        choices=STORE_TYPES,
        any_case=True,
        about="Taken and not needed: what a store is shows when it is opened.",
    ),
}

_API_TIMEOUT = Setting(
    60_000,
    0,
    INT_MAX,
    about="How long a call may take, with everything it tries again, where it is given no timeout_ms.",
)

ADMIN: dict[str, Setting] = {
    **COMMON,
    "default.api.timeout.ms": _API_TIMEOUT,
}

PRODUCER: dict[str, Setting] = {
    **COMMON,
    "acks": Setting(
        "all",
        choices=("all", "-1", "0", "1"),
        about="Who must have a record before it counts as delivered: all in-sync replicas (all or -1), the leader (1),"
        " or nobody (0).",
    ),
    "batch.size": Setting(
        16_384,
        0,
        INT_MAX,
        about="How many bytes of records for one partition are sent together, unless linger.ms is over.",
    ),
    "buffer.memory": Setting(
        33_554_432, 0, LONG_MAX, about="How many bytes may wait to be delivered before send() blocks."
    ),
    "compression.type": Setting(
        "none", choices=("none", "gzip", "snappy", "lz4", "zstd"), about="How batches are compressed."
    ),
    "compression.gzip.level": Setting(-1, -1, 9, about="From 1, quick, to 9, small; -1 is gzip's own choice."),
    "compression.lz4.level": Setting(9, 1, 17, about="From 1, quick, to 17, small."),
    "compression.zstd.level": Setting(3, -131_072, 22, about="From -131072, quick, to 22, small."),
    "delivery.timeout.ms": Setting(
        120_000, 0, INT_MAX, about="A record that is not delivered by then has failed, whatever was tried."
    ),
    "enable.idempotence": Setting(
        True, about="Every record is written once and in order, whatever is tried again; off where acks excludes it."
    ),
    "linger.ms": Setting(5, 0, LONG_MAX, about="How long a batch that is not full waits for more records."),
    "max.block.ms": Setting(
        60_000,
        0,
        LONG_MAX,
        about="How long send() waits for metadata or memory, and calls of transactions for a response.",
    ),
    "max.in.flight.requests.per.connection": Setting(
        5, 1, INT_MAX, about="How many requests may wait for their responses; idempotence allows 5."
    ),
    "max.request.size": Setting(1_048_576, 0, INT_MAX, about="The most bytes that a record, or a request, may have."),
    "partitioner.adaptive.partitioning.enable": Setting(
        True, about="Records without a key go more rarely to partitions whose batches pile up (KIP-794)."
    ),
    "partitioner.availability.timeout.ms": Setting(
        0, 0, LONG_MAX, about="Partitions whose leader takes nothing for so long are left out; 0 leaves none out."
    ),
    "partitioner.ignore.keys": Setting(False, about="Whether partitions are chosen as if records had no keys."),
    "retries": Setting(
        INT_MAX, 0, INT_MAX, about="How often a batch is tried again; delivery.timeout.ms is the better limit."
    ),
    "transaction.timeout.ms": Setting(
        60_000, 1, INT_MAX, about="Brokers abort a transaction that stays open for longer."
    ),
    "transaction.two.phase.commit.enable": Setting(
        False, about="Whether an outside coordinator ends transactions, and no timeout does (KIP-939)."
    ),
    "transactional.id": Setting(
        None, about="The name of whoever writes in transactions, the same after a restart: it fences the one before."
    ),
}

# What both kinds of consumers take beside COMMON.
READING: dict[str, Setting] = {
    "allow.auto.create.topics": Setting(
        True, about="Whether asking for a topic that does not exist may create it, where the brokers allow that too."
    ),
    "check.crcs": Setting(True, about="Whether the checksums of fetched batches are checked."),
    "client.rack": Setting(
        "", about="Where this consumer runs: a replica in the same rack may be read from (KIP-392)."
    ),
    "default.api.timeout.ms": _API_TIMEOUT,
    "fetch.max.bytes": Setting(
        52_428_800,
        0,
        INT_MAX,
        about="How many bytes a response should have at most, and are kept before poll() gives them.",
    ),
    "fetch.max.wait.ms": Setting(
        500, 0, INT_MAX, about="How long a broker waits for fetch.min.bytes before it responds with less."
    ),
    "fetch.min.bytes": Setting(1, 0, INT_MAX, about="How many bytes a broker waits for before it responds."),
    "group.id": Setting(None, about="The group that this consumer is a member of."),
    "max.poll.interval.ms": Setting(
        300_000, 1, INT_MAX, about="A member that does not call poll() for so long leaves its group."
    ),
    "max.poll.records": Setting(500, 1, INT_MAX, about="How many records one poll() gives."),
}

CONSUMER: dict[str, Setting] = {
    **COMMON,
    **READING,
    "auto.commit.interval.ms": Setting(5_000, 0, INT_MAX, about="How often enable.auto.commit commits."),
    "auto.offset.reset": Setting(
        "latest",
        choices=("latest", "earliest", "none", "by_duration:PnDTnHnMn.nS"),
        about="Where to begin when no offset is committed, or it is gone; none: poll() raises an error.",
    ),
    "enable.auto.commit": Setting(
        True, about="Whether what poll() gave is committed from time to time, and by close(); needs a group.id."
    ),
    "exclude.internal.topics": Setting(
        True, about="Whether patterns of subscribe() pass over the cluster's own topics."
    ),
    "group.instance.id": Setting(
        None, about="Makes the consumer a static member, who finds its partitions again after a restart (KIP-345)."
    ),
    "group.protocol": Setting(
        "classic",
        choices=("classic", "consumer"),
        any_case=True,
        about="Who assigns partitions: a member of the group (classic) or the broker (consumer, KIP-848).",
    ),
    "group.remote.assignor": Setting(
        None, about="The broker's assignor that is to be used, with group.protocol=consumer."
    ),
    "heartbeat.interval.ms": Setting(
        3_000, 0, INT_MAX, about="How often a member tells that it is alive, with group.protocol=classic."
    ),
    "isolation.level": Setting(
        "read_uncommitted",
        choices=("read_committed", "read_uncommitted"),
        about="Whether records of transactions that are open or were aborted are given.",
    ),
    "max.partition.fetch.bytes": Setting(
        1_048_576, 0, INT_MAX, about="How many bytes of one partition a response should have at most, and are kept."
    ),
    "partition.assignment.strategy": Setting(
        "org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        about="The assignors that the group may use, best first, with group.protocol=classic: range, roundrobin,"
        " sticky, cooperative-sticky, Java's names, or classes of one's own.",
    ),
    "session.timeout.ms": Setting(
        45_000, 0, INT_MAX, about="A member that is not heard of for so long has left, with group.protocol=classic."
    ),
}

SHARE_CONSUMER: dict[str, Setting] = {
    **COMMON,
    **READING,
    "share.acknowledgement.mode": Setting(
        "implicit",
        choices=("implicit", "explicit"),
        any_case=True,
        about="implicit: the next poll() accepts all records of the last one. explicit: each is acknowledged.",
    ),
    "share.acquire.mode": Setting(
        "batch_optimized",
        choices=("batch_optimized", "record_limit"),
        any_case=True,
        about="batch_optimized: batches are locked whole, which may be more than max.poll.records. record_limit: never"
        " more.",
    ),
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


# By the names that their metrics go by.
_KINDS = {"admin": ADMIN, "producer": PRODUCER, "consumer": CONSUMER, "share consumer": SHARE_CONSUMER}


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
        self._functions: dict[str, Callable[[], object]] = {}
        # Whose settings these are.
        self.kind = next((kind for kind, rows in _KINDS.items() if rows is settings), "")
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
            if row.is_function:
                if not callable(value):
                    raise ConfigError(f"{name} has to be a function.")
                self._functions[name] = value
            else:
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

    def get_callable(self, name: str) -> Callable[[], object] | None:
        return self._functions.get(name)

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
