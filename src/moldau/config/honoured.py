"""The keys that have an effect today; every other key is accepted, stored and described, and changes nothing yet.

`docs/COMPATIBILITY.md` is generated from this.
"""

from typing import Final

from moldau.config.topic_keys import TOPIC_KEYS

HONOURED_TOPIC_KEYS: Final = frozenset(
    {
        "cleanup.policy",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delete.retention.ms",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "index.interval.bytes",
        "internal.segment.bytes",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)

# A broker key that supplies an honoured topic key is honoured with it and not repeated here.
HONOURED_BROKER_KEYS: Final = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "broker.rack",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
    }
)

HONOURED_GROUP_KEYS: Final = frozenset[str]()
HONOURED_CLIENT_METRICS_KEYS: Final = frozenset[str]()
HONOURED_QUOTA_KEYS: Final = frozenset[str]()


def honoured_broker_keys() -> frozenset[str]:
    """All broker keys that have an effect, those that supply topic keys included."""
    suppliers = (name for topic_key in HONOURED_TOPIC_KEYS for name in TOPIC_KEYS[topic_key].synonyms)
    return HONOURED_BROKER_KEYS | frozenset(suppliers)
