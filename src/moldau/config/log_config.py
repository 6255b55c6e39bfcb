"""The settings of one log, as plain typed attributes: topic overrides over the broker's values over defaults."""

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError, Value
from moldau.config.topic_keys import BROKER_UNITS, RETENTION, TOPIC_KEYS
from moldau.protocol.integers import LONG_MAX


class LogConfig:
    """What a log needs to know; the defaults are Kafka's. It never changes, so logs share it."""

    def __init__(
        self,
        *,
        segment_bytes: int = 1073741824,
        segment_ms: int = 604800000,
        segment_jitter_ms: int = 0,
        segment_index_bytes: int = 10485760,
        index_interval_bytes: int = 4096,
        retention_ms: int = 604800000,
        retention_bytes: int = -1,
        max_message_bytes: int = 1048588,
        delete_retention_ms: int = 86400000,
        file_delete_delay_ms: int = 60000,
        flush_messages: int = LONG_MAX,
        flush_ms: int = LONG_MAX,
        min_cleanable_dirty_ratio: float = 0.5,
        compact: bool = False,
        delete: bool = True,
        compression_type: str = "producer",
        compression_gzip_level: int = -1,
        compression_lz4_level: int = 9,
        compression_zstd_level: int = 3,
        message_timestamp_type: str = "CreateTime",
        message_timestamp_before_max_ms: int = LONG_MAX,
        message_timestamp_after_max_ms: int = 3600000,
        min_insync_replicas: int = 1,
        preallocate: bool = False,
        unclean_leader_election_enable: bool = False,
        max_compaction_lag_ms: int = LONG_MAX,
        min_compaction_lag_ms: int = 0,
        leader_throttled_replicas: str = "",
        follower_throttled_replicas: str = "",
    ) -> None:
        self.segment_bytes = segment_bytes
        self.segment_ms = segment_ms
        self.segment_jitter_ms = segment_jitter_ms
        self.segment_index_bytes = segment_index_bytes
        self.index_interval_bytes = index_interval_bytes
        self.retention_ms = retention_ms
        self.retention_bytes = retention_bytes
        self.max_message_bytes = max_message_bytes
        self.delete_retention_ms = delete_retention_ms
        self.file_delete_delay_ms = file_delete_delay_ms
        self.flush_messages = flush_messages
        self.flush_ms = flush_ms
        self.min_cleanable_dirty_ratio = min_cleanable_dirty_ratio
        self.compact = compact
        self.delete = delete
        self.compression_type = compression_type
        self.compression_gzip_level = compression_gzip_level
        self.compression_lz4_level = compression_lz4_level
        self.compression_zstd_level = compression_zstd_level
        self.message_timestamp_type = message_timestamp_type
        self.message_timestamp_before_max_ms = message_timestamp_before_max_ms
        self.message_timestamp_after_max_ms = message_timestamp_after_max_ms
        self.min_insync_replicas = min_insync_replicas
        self.preallocate = preallocate
        self.unclean_leader_election_enable = unclean_leader_election_enable
        self.max_compaction_lag_ms = max_compaction_lag_ms
        self.min_compaction_lag_ms = min_compaction_lag_ms
        self.leader_throttled_replicas = leader_throttled_replicas
        self.follower_throttled_replicas = follower_throttled_replicas

    @property
    def roll_ms(self) -> int:
        """The age at which a segment is rolled: what must be compacted by a certain time must not stay active."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms


class TopicValues:
    """The typed value of every topic key for one topic on one broker."""

    def __init__(self, topic_overrides: dict[str, str], broker: BrokerConfig | None) -> None:
        self.overrides = topic_overrides
        self.broker = broker

    def get(self, name: str) -> Value:
        """The topic's own value, or the broker's, or the default; a stored value that does not parse is skipped."""
        key = TOPIC_KEYS[name]
        if name in self.overrides:
            try:
                return key.parse(self.overrides[name])
            except ConfigError:
                pass
        if self.broker is not None:
            for synonym in key.synonyms:
                value = self.broker.get(synonym)
                if value is None:
                    continue
                if isinstance(value, int) and not isinstance(value, bool):
                    value *= BROKER_UNITS.get(synonym, 1)
                    return -1 if value < 0 and synonym in RETENTION else value
                return value
        return key.parse(key.default)

    def number(self, name: str) -> int:
        value = self.get(name)
        assert isinstance(value, int), name
        return value

    def ratio(self, name: str) -> float:
        value = self.get(name)
        assert isinstance(value, (int, float)), name
        return float(value)

    def flag(self, name: str) -> bool:
        return self.get(name) is True

    def words(self, name: str) -> list[str]:
        value = self.get(name)
        return value if isinstance(value, list) else []

    def text(self, name: str) -> str:
        value = self.get(name)
        return ",".join(value) if isinstance(value, list) else str(value)


def log_config_for(topic_overrides: dict[str, str], broker: BrokerConfig | None = None) -> LogConfig:
    """The settings of a topic's logs on a broker whose effective configuration is `broker` (without one: defaults)."""
    if topic_overrides or broker is None:
        return _build(topic_overrides, broker)
    if not isinstance(broker.log_defaults, LogConfig):
        broker.log_defaults = _build(topic_overrides, broker)
    shared = broker.log_defaults
    assert isinstance(shared, LogConfig)
    return shared


def _build(topic_overrides: dict[str, str], broker: BrokerConfig | None) -> LogConfig:
    values = TopicValues(topic_overrides, broker)
    internal_segment_bytes = values.get("internal.segment.bytes")
    segment_bytes = (
        internal_segment_bytes if isinstance(internal_segment_bytes, int) else values.number("segment.bytes")
    )
    policy = values.words("cleanup.policy")
    return LogConfig(
        segment_bytes=segment_bytes,
        segment_ms=values.number("segment.ms"),
        segment_jitter_ms=values.number("segment.jitter.ms"),
        segment_index_bytes=values.number("segment.index.bytes"),
        index_interval_bytes=values.number("index.interval.bytes"),
        retention_ms=values.number("retention.ms"),
        retention_bytes=values.number("retention.bytes"),
        max_message_bytes=values.number("max.message.bytes"),
        delete_retention_ms=values.number("delete.retention.ms"),
        file_delete_delay_ms=values.number("file.delete.delay.ms"),
        flush_messages=values.number("flush.messages"),
        flush_ms=values.number("flush.ms"),
        min_cleanable_dirty_ratio=values.ratio("min.cleanable.dirty.ratio"),
        compact="compact" in policy,
        delete="delete" in policy,
        compression_type=values.text("compression.type"),
        compression_gzip_level=values.number("compression.gzip.level"),
        compression_lz4_level=values.number("compression.lz4.level"),
        compression_zstd_level=values.number("compression.zstd.level"),
        message_timestamp_type=values.text("message.timestamp.type"),
        message_timestamp_before_max_ms=values.number("message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=values.number("message.timestamp.after.max.ms"),
        min_insync_replicas=values.number("min.insync.replicas"),
        preallocate=values.flag("preallocate"),
        unclean_leader_election_enable=values.flag("unclean.leader.election.enable"),
        max_compaction_lag_ms=values.number("max.compaction.lag.ms"),
        min_compaction_lag_ms=values.number("min.compaction.lag.ms"),
        leader_throttled_replicas=values.text("leader.replication.throttled.replicas"),
        follower_throttled_replicas=values.text("follower.replication.throttled.replicas"),
    )
