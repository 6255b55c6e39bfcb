"""Creates the coordinators' own topics when they are first needed, with the settings that Kafka gives them."""

from __future__ import annotations

from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig

GROUP_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
SHARE_TOPIC: Final = "__share_group_state"


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
