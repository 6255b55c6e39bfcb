"""The keys of consumer, share and streams groups, one row each."""

from typing import Final

from moldau.config.definitions import (
    BOOLEAN,
    INT,
    STRING,
    ConfigKey,
    ConfigKeys,
    InvalidValue,
    Validator,
    Value,
    at_least,
    one_of,
    share_offset_reset,
)
from moldau.config.resources import check_topic_name
from moldau.protocol.errors import KafkaError

DEAD_LETTER_TOPIC_KEY: Final = "errors.deadletterqueue.topic.name"
DEAD_LETTER_COPY_KEY: Final = "errors.deadletterqueue.copy.record.enable"


def dead_letter_topic(name: str, value: Value) -> None:
    """The name of a topic that need not exist yet, or nothing."""
    if not isinstance(value, str) or not value:
        return
    try:
        check_topic_name(value)
    except KafkaError as error:
        raise InvalidValue(name, value, str(error)) from None
    if value.startswith("__"):
        raise InvalidValue(name, value, "Topics whose names begin with __ get no dead letters")


def _key(
    name: str,
    type: int,
    default: str,
    validator: Validator | None,
    broker: str,
    documentation: str,
    internal: bool = False,
) -> ConfigKey:
    synonyms = (broker,) if broker else ()
    return ConfigKey(name, type, default, validator, documentation, synonyms=synonyms, internal=internal)


# fmt: off
# ruff: noqa: E501
GROUP_KEYS: Final = ConfigKeys((
    _key("consumer.session.timeout.ms",        INT,     "45000",            at_least(1),    "group.consumer.session.timeout.ms",        "Time without a heartbeat after which a consumer is taken out of the group."),
    _key("consumer.heartbeat.interval.ms",     INT,     "5000",             at_least(1),    "group.consumer.heartbeat.interval.ms",     "Interval between heartbeats that consumers are told to keep."),
    _key("consumer.assignment.interval.ms",    INT,     "1000",             at_least(0),    "group.consumer.assignment.interval.ms",    "Shortest time between two computations of the group's target assignment."),
    _key("share.session.timeout.ms",           INT,     "45000",            at_least(1),    "group.share.session.timeout.ms",           "Time without a heartbeat after which a share consumer is taken out of the group."),
    _key("share.heartbeat.interval.ms",        INT,     "5000",             at_least(1),    "group.share.heartbeat.interval.ms",        "Interval between heartbeats that share consumers are told to keep."),
    _key("share.record.lock.duration.ms",      INT,     "30000",            at_least(1000), "group.share.record.lock.duration.ms",      "Time a record stays reserved for the share consumer that acquired it."),
    _key("share.delivery.count.limit",         INT,     "5",                at_least(2),    "group.share.delivery.count.limit",         "Number of times a record is delivered at most to a share group."),
    _key("share.partition.max.record.locks",   INT,     "2000",             at_least(100),  "group.share.partition.max.record.locks",   "Number of records of one partition that may be acquired at the same time."),
    _key("share.auto.offset.reset",            STRING,  "latest",           share_offset_reset, "",                                     "Where a share group without state starts: earliest, latest, or by_duration: a time span back."),
    _key("share.isolation.level",              STRING,  "read_uncommitted", one_of("read_committed", "read_uncommitted"), "",           "Whether a share group reads records of open and aborted transactions."),
    _key("share.renew.acknowledge.enable",     BOOLEAN, "true",             None,           "",                                         "Whether share consumers may prolong the lock of a record they still work on."),
    _key("share.assignment.interval.ms",       INT,     "1000",             at_least(0),    "group.share.assignment.interval.ms",       "Shortest time between two computations of the share group's target assignment."),
    _key("errors.deadletterqueue.topic.name",  STRING,  "",                 dead_letter_topic, "",                                      "Topic that gets a dead letter for each record which a share group rejects or has tried too often; empty for none.", internal=True),
    _key("errors.deadletterqueue.copy.record.enable", BOOLEAN, "false",     None,           "",                                         "Whether dead letters have key, value and headers of the record, and not only its place.", internal=True),
    _key("streams.session.timeout.ms",         INT,     "45000",            at_least(1),    "group.streams.session.timeout.ms",         "Time without a heartbeat after which a streams member is taken out of the group."),
    _key("streams.heartbeat.interval.ms",      INT,     "5000",             at_least(1),    "group.streams.heartbeat.interval.ms",      "Interval between heartbeats that streams members are told to keep."),
    _key("streams.num.standby.replicas",       INT,     "0",                at_least(0),    "group.streams.num.standby.replicas",       "Number of standby copies of each task's state."),
    _key("streams.initial.rebalance.delay.ms", INT,     "3000",             at_least(0),    "group.streams.initial.rebalance.delay.ms", "Time an empty streams group waits for more members before its first assignment."),
    _key("streams.assignment.interval.ms",     INT,     "1000",             at_least(0),    "group.streams.assignment.interval.ms",     "Shortest time between two computations of the streams group's target assignment."),
))
# fmt: on

# Broker keys that bound a group key: group.<kind>.min.<rest> and group.<kind>.max.<rest>, where they exist.
BOUNDED_GROUP_KEYS: Final = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
    "share.session.timeout.ms",
    "share.heartbeat.interval.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.session.timeout.ms",
    "streams.heartbeat.interval.ms",
    "streams.assignment.interval.ms",
)
