"""The topic keys, one row each; the order is the one in which values are checked.

`synonyms` are the broker keys that supply the value of a topic without its own; the strongest comes first, and a
number of another unit is scaled as `BROKER_UNITS` says.
"""

from typing import Final

from moldau.config.definitions import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    STRING,
    ConfigKey,
    ConfigKeys,
    Validator,
    at_least,
    between,
    gzip_level,
    items_of,
    one_of,
    throttled_replicas,
)

# Milliseconds in one unit of a broker key that supplies a topic key ending in .ms.
BROKER_UNITS: Final = {
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
    "log.roll.hours": 3_600_000,
    "log.roll.jitter.hours": 3_600_000,
}

COMPRESSION_TYPES: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
ROLL: Final = ("log.roll.ms", "log.roll.hours")
ROLL_JITTER: Final = ("log.roll.jitter.ms", "log.roll.jitter.hours")
FLUSH: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


def _key(
    name: str,
    type: int,
    default: str | None,
    validator: Validator | None,
    broker: str | tuple[str, ...],
    documentation: str,
    internal: bool = False,
) -> ConfigKey:
    synonyms = broker if isinstance(broker, tuple) else (broker,) if broker else ()
    return ConfigKey(name, type, default, validator, documentation, synonyms=synonyms, internal=internal)


# fmt: off
# ruff: noqa: E501
TOPIC_KEYS: Final = ConfigKeys((
    _key("segment.bytes",                           INT,     "1073741824",          at_least(1048576),            "log.segment.bytes",                   "Size at which a segment file is closed and the next one begun; only closed segments are deleted or compacted."),
    _key("segment.ms",                              LONG,    "604800000",           at_least(1),                  ROLL,                                  "Age at which a segment is closed even if it is not full, so that old records can be deleted or compacted."),
    _key("segment.jitter.ms",                       LONG,    "0",                   at_least(0),                  ROLL_JITTER,                           "Upper bound of a random time taken off segment.ms, so that many partitions do not roll at once."),
    _key("segment.index.bytes",                     INT,     "10485760",            at_least(4),                  "log.index.size.max.bytes",            "Largest size of the index that leads from offsets to positions in a segment."),
    _key("flush.messages",                          LONG,    "9223372036854775807", at_least(1),                  "log.flush.interval.messages",         "Number of records after which written data is synced to disk; replication makes the default sufficient."),
    _key("flush.ms",                                LONG,    "9223372036854775807", at_least(0),                  FLUSH,                                 "Time after which written data is synced to disk; replication makes the default sufficient."),
    _key("retention.bytes",                         LONG,    "-1",                  None,                         "log.retention.bytes",                 "Size a partition may grow to before its oldest segments are deleted; -1 is no limit."),
    _key("retention.ms",                            LONG,    "604800000",           at_least(-1),                 RETENTION,                             "Time a record is kept at least before its segment is deleted; -1 keeps it for ever."),
    _key("max.message.bytes",                       INT,     "1048588",             at_least(0),                  "message.max.bytes",                   "Largest record batch, after compression, that the topic accepts."),
    _key("index.interval.bytes",                    INT,     "4096",                at_least(0),                  "log.index.interval.bytes",            "Bytes of records between two entries of the offset index."),
    _key("delete.retention.ms",                     LONG,    "86400000",            at_least(0),                  "log.cleaner.delete.retention.ms",     "Time a delete marker of a compacted topic stays readable after compaction."),
    _key("min.compaction.lag.ms",                   LONG,    "0",                   at_least(0),                  "log.cleaner.min.compaction.lag.ms",   "Time during which a record is safe from compaction."),
    _key("max.compaction.lag.ms",                   LONG,    "9223372036854775807", at_least(1),                  "log.cleaner.max.compaction.lag.ms",   "Time after which a record must have become eligible for compaction."),
    _key("file.delete.delay.ms",                    LONG,    "60000",               at_least(0),                  "log.segment.delete.delay.ms",         "Time between renaming the files of a deleted segment and removing them."),
    _key("min.cleanable.dirty.ratio",               DOUBLE,  "0.5",                 between(0, 1),                "log.cleaner.min.cleanable.ratio",     "Share of a log that must be uncompacted before the cleaner works on it."),
    _key("cleanup.policy",                          LIST,    "delete",              items_of("compact", "delete"), "log.cleanup.policy",                 "What becomes of old records: deleted by age and size, compacted to the last one of each key, both, or neither."),
    _key("unclean.leader.election.enable",          BOOLEAN, "false",               None,                         "unclean.leader.election.enable",      "Whether a replica that is not in sync may lead when no other is left, at the price of lost records."),
    _key("min.insync.replicas",                     INT,     "1",                   at_least(1),                  "min.insync.replicas",                 "Number of in-sync replicas a write with acks=all needs."),
    _key("compression.type",                        STRING,  "producer",            one_of(*COMPRESSION_TYPES),   "compression.type",                    "Codec records are stored with; 'producer' keeps the one they arrived with."),
    _key("compression.gzip.level",                  INT,     "-1",                  gzip_level,                   "compression.gzip.level",              "Level used when the broker compresses with gzip; -1 is the codec's own default."),
    _key("compression.lz4.level",                   INT,     "9",                   between(1, 17),               "compression.lz4.level",               "Level used when the broker compresses with lz4."),
    _key("compression.zstd.level",                  INT,     "3",                   between(-131072, 22),         "compression.zstd.level",              "Level used when the broker compresses with zstd."),
    _key("preallocate",                             BOOLEAN, "false",               None,                         "log.preallocate",                     "Whether space for the whole of a new segment is set aside at once."),
    _key("message.timestamp.type",                  STRING,  "CreateTime",          one_of("CreateTime", "LogAppendTime"), "log.message.timestamp.type", "Whether the timestamp of a record is the producer's or the time of the append."),
    _key("message.timestamp.before.max.ms",         LONG,    "9223372036854775807", at_least(0),                  "log.message.timestamp.before.max.ms", "How far a record's timestamp may lie before the broker's clock; ignored with LogAppendTime."),
    _key("message.timestamp.after.max.ms",          LONG,    "3600000",             at_least(0),                  "log.message.timestamp.after.max.ms",  "How far a record's timestamp may lie after the broker's clock; ignored with LogAppendTime."),
    _key("leader.replication.throttled.replicas",   LIST,    "",                    throttled_replicas,           "",                                    "Replicas whose leader side is throttled, as partition:broker pairs, or * for all."),
    _key("follower.replication.throttled.replicas", LIST,    "",                    throttled_replicas,           "",                                    "Replicas whose follower side is throttled, as partition:broker pairs, or * for all."),
    _key("remote.storage.enable",                   BOOLEAN, "false",               None,                         "",                                    "Whether closed segments of the topic are copied to remote storage."),
    _key("local.retention.ms",                      LONG,    "-2",                  at_least(-2),                 "log.local.retention.ms",              "Time a segment in remote storage also stays on local disk; -2 takes retention.ms."),
    _key("local.retention.bytes",                   LONG,    "-2",                  at_least(-2),                 "log.local.retention.bytes",           "Size up to which segments in remote storage also stay on local disk; -2 takes retention.bytes."),
    _key("remote.log.copy.disable",                 BOOLEAN, "false",               None,                         "",                                    "Whether a topic with remote storage stops copying new segments there."),
    _key("remote.log.delete.on.disable",            BOOLEAN, "false",               None,                         "",                                    "Whether segments in remote storage are deleted when remote storage is switched off."),
    _key("errors.deadletterqueue.group.enable",     BOOLEAN, "false",               None,                         "",                                    "Whether share groups may write dead letters to the topic.", internal=True),
    _key("internal.segment.bytes",                  INT,     None,                  None,                         "",                                    "Segment size without the lower bound, for tests.", internal=True),
))
# fmt: on
