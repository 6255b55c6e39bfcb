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
        known = self._channels.get(broker_id)
        if known is not None:
            return known[2]
        address = self._address_of(broker_id, image)
        if address is None:
            return None
        channel = self._outbox.open(self._purpose, *address)
        self._channels[broker_id] = (*address, channel)
        return channel

    def drop_lost(self, image: MetadataImage) -> list[int]:
        """Closes the channels to brokers that are fenced, gone or elsewhere now, and tells which: what was asked there
        gets no response any more."""
        lost = []
        for broker_id, (host, port, channel) in list(self._channels.items()):
            if self._address_of(broker_id, image) != (host, port):
                del self._channels[broker_id]
                channel.close()
                lost.append(broker_id)
        return lost

    def _address_of(self, broker_id: int, image: MetadataImage) -> tuple[str, int] | None:
        broker = image.brokers.get(broker_id)
        endpoint = None if broker is None or broker.fenced else broker.end_points.get(self._listener)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def close(self) -> None:
        for _, _, channel in self._channels.values():
            channel.close()
        self._channels.clear()
