"""Creates the coordinators' own topics when they are first needed, with the settings that Kafka gives them."""

from __future__ import annotations

from moldau.config.broker_config import BrokerConfig
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from moldau.protocol.topic_names import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC


def internal_topic(name: str, config: BrokerConfig) -> CreatableTopic | None:
    """How a coordinator's topic is created; None for a topic of anybody else."""
    if name == GROUP_TOPIC:
        return group_topic(config)
    if name == TRANSACTION_TOPIC:
        return transaction_topic(config)
    return share_topic(config) if name == SHARE_TOPIC else None


def group_topic(config: BrokerConfig) -> CreatableTopic:
    return CreatableTopic(
        name=GROUP_TOPIC,
        num_partitions=config.get_int("offsets.topic.num.partitions"),
        replication_factor=config.get_int("offsets.topic.replication.factor"),
        configs=[
            CreatableTopicConfig(name="compression.type", value="producer"),
            CreatableTopicConfig(name="cleanup.policy", value="compact"),
            CreatableTopicConfig(name="segment.bytes", value=str(config.get_int("offsets.topic.segment.bytes"))),
        ],
    )


def transaction_topic(config: BrokerConfig) -> CreatableTopic:
    min_in_sync = config.get_int("transaction.state.log.min.isr")
    segment_bytes = config.get_int("transaction.state.log.segment.bytes")
    return CreatableTopic(
        name=TRANSACTION_TOPIC,
        num_partitions=config.get_int("transaction.state.log.num.partitions"),
        replication_factor=config.get_int("transaction.state.log.replication.factor"),
        configs=[
            # A decision that was lost could be taken again, the other way round.
            CreatableTopicConfig(name="unclean.leader.election.enable", value="false"),
            CreatableTopicConfig(name="compression.type", value="uncompressed"),
            CreatableTopicConfig(name="cleanup.policy", value="compact"),
            CreatableTopicConfig(name="min.insync.replicas", value=str(min_in_sync)),
            CreatableTopicConfig(name="segment.bytes", value=str(segment_bytes)),
        ],
    )


def share_topic(config: BrokerConfig) -> CreatableTopic:
    """Nothing in it grows old: what is not needed any more is pruned by its coordinator."""
    min_in_sync = config.get_int("share.coordinator.state.topic.min.isr")
    segment_bytes = config.get_int("share.coordinator.state.topic.segment.bytes")
    return CreatableTopic(
        name=SHARE_TOPIC,
        num_partitions=config.get_int("share.coordinator.state.topic.num.partitions"),
        replication_factor=config.get_int("share.coordinator.state.topic.replication.factor"),
        configs=[
            CreatableTopicConfig(name="cleanup.policy", value="delete"),
            CreatableTopicConfig(name="compression.type", value="producer"),
            CreatableTopicConfig(name="min.insync.replicas", value=str(min_in_sync)),
            CreatableTopicConfig(name="retention.ms", value="-1"),
            CreatableTopicConfig(name="segment.bytes", value=str(segment_bytes)),
        ],
    )
