"""Reads the options of the data source: the names of Spark's Kafka connector, and a few of our own.

`read_options()` turns what the user wrote into one checked value that travels to executors as it is. A wrong option is
refused here, on the driver and before anything is asked, with a sentence that says what to write instead. Names are
taken without regard to case, as Spark hands them over.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.client import config as client_settings
from moldau.client.errors import ConfigError
from moldau.client.results import TopicPartition
from moldau.spark.offsets import EARLIEST_OFFSET, LATEST_OFFSET, OffsetsError, parse_offsets, parse_partitions

logger = logging.getLogger("moldau.spark")

EARLIEST = "earliest"
LATEST = "latest"
OFFSETS = "offsets"
TIMESTAMP = "timestamp"
TIMESTAMPS = "timestamps"

FAIL = "fail"
DROP = "drop"
DEAD_LETTER = "deadLetter"

VALUE_FORMATS = ("json", "avro", "protobuf", "csv", "string")

# Spark's connector waits so long for records that must be there; so do we, over restarts of brokers.
POLL_TIMEOUT_MS = 120_000
MAX_TRIGGER_DELAY_MS = 15 * 60_000
# Of one fetch; as much is kept ahead of the reader. Measured from 0.5 to 8 MB: this one costs the least CPU per byte.
FETCH_BYTES = 2 * 1024 * 1024
ROWS_PER_BATCH = 10_000

# What Spark's connector refuses too, and what to write instead.
_REFUSED_KAFKA = {
    "auto.offset.reset": "write startingOffsets instead",
    "enable.auto.commit": "the option commitGroup names a group that is told how far a query is",
    "key.deserializer": "keys arrive as bytes: decode them in the query",
    "value.deserializer": "values arrive as bytes: decode them in the query, or write valueFormat",
    "interceptor.classes": "there are no interceptors here",
}
_SECURITY = ("ssl.", "sasl.", "security.")

_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_READ_NAMES = (
    *_SUBSCRIPTIONS,
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "commitGroup",
    "rowsPerBatch",
    "valueFormat",
    "valueSchema",
    "valueSchemaMessage",
    "valueSchemaDirectory",
    "onBadRecord",
    "deadLetterTopic",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "consumerCacheCapacity",
    "consumerCacheTimeout",
)
_SPARK_NAMES = ("path", "checkpointLocation", "mergeSchema", "maxBytesPerTrigger", "withEventTimeOrder")


class OptionError(ValueError):
    """An option is missing or wrong; the message is a sentence that says what to do."""


@dataclass(frozen=True)
class Subscription:
    """Which partitions are read: all of some topics, all of the topics whose name matches, or these."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def option(self) -> str:
        return "assign" if self.partitions else "subscribePattern" if self.pattern else "subscribe"

    def __str__(self) -> str:
        if self.partitions:
            return f"partitions {', '.join(str(item) for item in self.partitions)}"
        return f"topics like {self.pattern}" if self.pattern else f"topics {', '.join(self.topics)}"


@dataclass(frozen=True)
class Bound:
    """Where a read starts or ends; option is the name under which the user wrote it."""

    kind: str
    option: str
    timestamp_ms: int = -1
    # Offsets (-2: earliest, -1: latest) or timestamps by partition.
    by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ValueOptions:
    """How values become columns; format is empty where they stay bytes."""

    format: str = ""
    schema: str = ""
    # The message of a protobuf schema.
    message: str = ""
    # Where the schemas of ids in front of values lie: <id>.avsc, <id>.desc and so on.
    schema_directory: str = ""
    on_bad_record: str = FAIL
    dead_letter_topic: str = ""


@dataclass(frozen=True)
class ReadOptions:
    """Everything a read was told. Plain data: pickled to executors."""

    subscription: Subscription
    starting: Bound
    ending: Bound
    # kafka.* without the prefix, as far as our consumer knows them; bootstrap.servers among them.
    client_config: Mapping[str, str]
    # For a start by timestamp that no record is young enough for: "error" or "latest".
    timestamp_strategy: str = "error"
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = MAX_TRIGGER_DELAY_MS
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    commit_group: str = ""
    poll_timeout_ms: int = POLL_TIMEOUT_MS
    rows_per_batch: int = ROWS_PER_BATCH
    value: ValueOptions = ValueOptions()

    @property
    def bootstrap_servers(self) -> str:
        return self.client_config["bootstrap.servers"]

    @property
    def read_committed(self) -> bool:
        return self.client_config.get("isolation.level") == "read_committed"


class _Given:
    """The options as they were written, found without regard to case, and checked one by one."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {str(name).lower(): str(value) for name, value in options.items() if value is not None}
        self.names = {str(name).lower(): str(name) for name in options}

    def text(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def stripped(self, name: str) -> str:
        return (self.text(name) or "").strip()

    def boolean(self, name: str, default: bool) -> bool:
        value = self.stripped(name).lower()
        if value not in ("", "true", "false"):
            raise OptionError(f"The option {name} is {value}: write true or false.")
        return value == "true" if value else default

    def positive(self, name: str) -> int | None:
        value = self.stripped(name)
        if not value:
            return None
        if not value.isdigit() or int(value) == 0:
            raise OptionError(f"The option {name} is {value}: write a whole number above 0.")
        return int(value)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self.stripped(name)
        if not value:
            return default
        for choice in choices:
            if choice.lower() == value.lower():
                return choice
        raise OptionError(f"The option {name} is {value}: it must be one of {', '.join(choices)}.")

    def kafka(self) -> dict[str, str]:
        prefix = "kafka."
        return {name.removeprefix(prefix): value for name, value in self._values.items() if name.startswith(prefix)}

    def own_names(self) -> list[str]:
        return [name for name in self._values if not name.startswith("kafka.")]


def read_options(options: Mapping[str, str], streaming: bool = False) -> ReadOptions:
    """Checks the options of a read; raises OptionError. streaming: of a stream, which has other defaults."""
    given = _Given(options)
    _check_names(given)
    try:
        starting, ending = _bounds(given, streaming)
        subscription = _subscription(given)
    except OffsetsError as error:
        raise OptionError(str(error)) from None
    if streaming:
        least, most = given.positive("minOffsetsPerTrigger"), given.positive("maxOffsetsPerTrigger")
        if least is not None and most is not None and least > most:
            raise OptionError(f"minOffsetsPerTrigger ({least}) is above maxOffsetsPerTrigger ({most}): swap them.")
    return ReadOptions(
        subscription=subscription,
        starting=starting,
        ending=ending,
        client_config=client_config(options, client_settings.CONSUMER),
        timestamp_strategy=given.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), "error"),
        max_offsets_per_trigger=given.positive("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=given.positive("minOffsetsPerTrigger"),
        max_trigger_delay_ms=_duration(given, "maxTriggerDelay", MAX_TRIGGER_DELAY_MS),
        min_partitions=given.positive("minPartitions"),
        max_records_per_partition=given.positive("maxRecordsPerPartition"),
        fail_on_data_loss=given.boolean("failOnDataLoss", True),
        include_headers=given.boolean("includeHeaders", False),
        commit_group=given.stripped("commitGroup"),
        poll_timeout_ms=given.positive("kafkaConsumer.pollTimeoutMs") or POLL_TIMEOUT_MS,
        rows_per_batch=given.positive("rowsPerBatch") or ROWS_PER_BATCH,
        value=_value_options(given),
    )


def schema_options(options: Mapping[str, str]) -> tuple[bool, ValueOptions]:
    """What the columns of a read depend on: includeHeaders, and how values are decoded."""
    given = _Given(options)
    return given.boolean("includeHeaders", False), _value_options(given)


def client_config(options: Mapping[str, str], settings: Mapping[str, client_settings.Setting]) -> dict[str, str]:
    """What kafka.* options say to a client with these settings (client.config.CONSUMER, PRODUCER, ADMIN).

    Settings that our client does not need are left out with a warning; those that it must not ignore are refused.
    """
    given = _Given(options).kafka()
    if not given.get("bootstrap.servers", "").strip():
        raise OptionError(
            "The option kafka.bootstrap.servers is missing: write the brokers' addresses as host:port,host:port."
        )
    chosen: dict[str, str] = {}
    for name, value in given.items():
        if settings is not client_settings.PRODUCER and name in _REFUSED_KAFKA:
            raise OptionError(f"The option kafka.{name} cannot be set: {_REFUSED_KAFKA[name]}.")
        if name.startswith(_SECURITY) and name not in settings:
            raise OptionError(
                f"The option kafka.{name} says how connections are secured, and Moldau's client has no such setting:"
                " docs/client.md names those it has."
            )
        if name in settings:
            chosen[name] = value
        elif name not in client_settings.CONSUMER and name not in client_settings.PRODUCER:
            logger.warning("The option kafka.%s has no effect: Moldau's client has no such setting.", name)
    # A group is never joined here, so what names one has no say; nor may a read make a topic that does not exist.
    for name in ("group.id", "group.instance.id", "allow.auto.create.topics"):
        chosen.pop(name, None)
    try:
        config = client_settings.read(settings, None, None, dict(chosen))
        if config.get_text("security.protocol") != "PLAINTEXT":
            from moldau.client.connection.security import read_security

            read_security(config)  # a file that is missing is told here, and not by each task
        client_settings.parse_addresses(chosen["bootstrap.servers"])
    except ConfigError as error:
        raise OptionError(f"In the kafka.* options: {error.message}") from None
    return chosen


def _subscription(given: _Given) -> Subscription:
    named = [name for name in _SUBSCRIPTIONS if given.stripped(name)]
    if len(named) != 1:
        which = f"{' and '.join(named)} are set" if named else "none is set"
        raise OptionError(f"One of the options subscribe, subscribePattern and assign says what to read: {which}.")
    text = given.stripped(named[0])
    if named[0] == "assign":
        return Subscription(partitions=tuple(parse_partitions(text)))
    if named[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(f"subscribePattern {text} is no regular expression: {error}.") from None
        return Subscription(pattern=text)
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not topics:
        raise OptionError("The option subscribe names no topic: write them as topicA,topicB.")
    return Subscription(topics=topics)


def _bounds(given: _Given, streaming: bool) -> tuple[Bound, Bound]:
    """Where to start and to end; times go before offsets, as in Spark's connector."""
    starting = _bound(given, "starting", LATEST if streaming else EARLIEST)
    ending = _bound(given, "ending", LATEST)
    if streaming:
        for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
            if given.text(name) is not None:
                raise OptionError(
                    f"The option {name} is for batch reads: a stream has no end. Use trigger(availableNow=True)."
                )
        return starting, ending
    for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"):
        if given.text(name) is not None:
            logger.warning("The option %s has no effect on a batch read.", name)
    if starting.kind == LATEST or (LATEST_OFFSET in starting.by_partition.values() and starting.kind == OFFSETS):
        raise OptionError(
            "A batch read cannot start at the latest offset, where nothing is yet: set another startingOffsets."
        )
    if ending.kind == EARLIEST or (EARLIEST_OFFSET in ending.by_partition.values() and ending.kind == OFFSETS):
        raise OptionError("A batch read cannot end at the earliest offset, before anything: set another endingOffsets.")
    return starting, ending


def _bound(given: _Given, which: str, default: str) -> Bound:
    one_time, times, offsets = f"{which}Timestamp", f"{which}OffsetsByTimestamp", f"{which}Offsets"
    text = given.stripped(one_time)
    if text:
        if not text.isdigit():
            raise OptionError(f"The option {one_time} is {text}: write milliseconds since 1970, such as 1700000000000.")
        return Bound(TIMESTAMP, one_time, timestamp_ms=int(text))
    text = given.stripped(times)
    if text:
        return Bound(TIMESTAMPS, times, by_partition=parse_offsets(text, "timestamp", 0))
    text = given.stripped(offsets)
    if text.lower() in (EARLIEST, LATEST):
        return Bound(text.lower(), offsets)
    if text:
        return Bound(OFFSETS, offsets, by_partition=parse_offsets(text))
    return Bound(default, offsets)


def _value_options(given: _Given) -> ValueOptions:
    kind = given.choice("valueFormat", VALUE_FORMATS, "")
    bad = given.choice("onBadRecord", (FAIL, DROP, DEAD_LETTER), FAIL)
    value = ValueOptions(
        format=kind,
        schema=given.text("valueSchema") or "",
        message=given.stripped("valueSchemaMessage"),
        schema_directory=given.stripped("valueSchemaDirectory"),
        on_bad_record=bad,
        dead_letter_topic=given.stripped("deadLetterTopic"),
    )
    if not kind:
        for name in ("valueSchema", "valueSchemaMessage", "valueSchemaDirectory", "onBadRecord", "deadLetterTopic"):
            if given.stripped(name):
                formats = ", ".join(VALUE_FORMATS)
                raise OptionError(f"The option {name} needs valueFormat, which is one of {formats}.")
    if value.dead_letter_topic and bad != DEAD_LETTER:
        raise OptionError("The option deadLetterTopic needs onBadRecord=deadLetter.")
    return value


_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "": 1}


def _duration(given: _Given, name: str, default_ms: int) -> int:
    """A time as Spark writes it: 15m, 90s, 1h; a number alone is milliseconds."""
    text = given.stripped(name).lower()
    if not text:
        return default_ms
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text)
    if found is None or found[2] not in _UNITS_MS:
        raise OptionError(f"The option {name} is {text}: write a time such as 15m, 90s or 500ms.")
    return int(found[1]) * _UNITS_MS[found[2]]


def _check_names(given: _Given) -> None:
    """A misspelt option would read something else than was meant. Names with a dot may be Spark's or a wrapper's."""
    known = {name.lower(): name for name in (*_READ_NAMES, *_SPARK_NAMES)}
    for name in given.own_names():
        if name in known:
            continue
        import difflib

        shown = given.names.get(name, name)
        near = difflib.get_close_matches(name, list(known), 1)
        if not near and ("." in name or name.startswith("_")):
            logger.warning("The option %s has no effect on a read.", shown)
            continue
        hint = f"did you mean {known[near[0]]}?" if near else "docs/spark.md names those there are."
        raise OptionError(f"There is no option {shown} for a read: {hint}")
