"""Channels to other brokers, one each, at the addresses that the metadata tells."""

from __future__ import annotations

from moldau.metadata.image import MetadataImage
from moldau.node.outbox import Channel, Outbox


class BrokerChannels:
    """For one purpose, so that nothing waits behind the long polls of others."""

    def __init__(self, outbox: Outbox, purpose: str, listener: str) -> None:
        self._outbox = outbox
        self._purpose = purpose
        self._listener = listener
        self._channels: dict[int, tuple[str, int, Channel]] = {}

    def find(self, broker_id: int, image: MetadataImage) -> Channel | None:
        """The channel to a broker; None while the metadata does not say that it can be reached."""
        broker = image.brokers.get(broker_id)
        endpoint = None if broker is None or broker.fenced else broker.end_points.get(self._listener)
        known = self._channels.get(broker_id)
        if endpoint is None:
            return None
        if known is not None:
            if (known[0], known[1]) == (endpoint.host, endpoint.port):
                return known[2]
            del self._channels[broker_id]
            known[2].close()
        channel = self._outbox.open(self._purpose, endpoint.host, endpoint.port)
        self._channels[broker_id] = (endpoint.host, endpoint.port, channel)
        return channel

    def close(self) -> None:
        for _, _, channel in self._channels.values():
            channel.close()
        self._channels.clear()
