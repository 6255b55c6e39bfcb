"""The share consumer of Kafka's tools: settings read and refused as there, and trouble told in Java's words."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.cli.kafka.admin_tools import check_servers
from moldau.cli.kafka.java_client import checked_settings
from moldau.cli.kafka.java_network import JavaNetwork
from moldau.cli.kafka.options import JavaFailure
from moldau.client.config import NOT_FOR_SHARE_GROUPS, SHARE_CONSUMER
from moldau.client.share_consumer import AcknowledgementCallback, ShareConsumer
from moldau.client.wiring import wired


def new_share_consumer(
    config: Mapping[str, str], on_acknowledged: AcknowledgementCallback | None = None
) -> ShareConsumer:
    """A consumer with these settings; those that only Java's client has are ignored."""
    for name in NOT_FOR_SHARE_GROUPS:
        if name in config:
            sentence = f"{name} cannot be set when using a share group."
            raise JavaFailure("org.apache.kafka.common.config.ConfigException", sentence)
    known, checked = checked_settings(SHARE_CONSUMER, config)
    check_servers(config["bootstrap.servers"], "bootstrap.servers", "Failed to construct Kafka share consumer")
    context = f"ShareConsumer clientId={config.get('client.id', '')}, groupId={config.get('group.id', '')}"
    return ShareConsumer(
        config=wired(known, network=JavaNetwork(checked, context), heartbeat_thread=True),
        on_acknowledged=on_acknowledged,
    )
