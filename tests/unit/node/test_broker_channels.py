"""Channels follow the brokers: to whom one cannot be reached any more nothing stays unanswered."""

from __future__ import annotations

from moldau.metadata.image import MetadataImage
from moldau.metadata.model import BrokerRegistration, EndPoint
from moldau.node.broker_channels import BrokerChannels
from moldau.node.outbox import Channel, OnResponse, Outbox
from moldau.protocol.primitives import Message


class KnownChannel(Channel):
    def __init__(self) -> None:
        self.is_closed = False

    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, answered: OnResponse) -> None:
        raise AssertionError("nothing is sent here")

    def close(self) -> None:
        self.is_closed = True


class KnownOutbox(Outbox):
    def __init__(self) -> None:
        self.opened: list[tuple[str, int, KnownChannel]] = []

    def open(self, purpose: str, host: str, port: int) -> Channel:
        channel = KnownChannel()
        self.opened.append((host, port, channel))
        return channel


def image(port: int, fenced: bool = False) -> MetadataImage:
    found = MetadataImage()
    end_points = {"L": EndPoint("L", "h", port, 0)}
    found.brokers = {
        2: BrokerRegistration(
            2,
            10,
            bytes(16),
            end_points=end_points,
            features={},
            rack=None,
            fenced=fenced,
            in_controlled_shutdown=False,
            log_dirs=(),
            cordoned_log_dirs=None,
        )
    }
    return found


def test_a_channel_is_opened_once_and_closed_when_its_broker_moves_is_fenced_or_goes() -> None:
    for later in (image(1001), image(1000, fenced=True), MetadataImage()):
        outbox = KnownOutbox()
        channels = BrokerChannels(outbox, "test", "L")
        assert channels.find(2, image(1000)) is channels.find(2, image(1000))
        assert channels.drop_lost(image(1000)) == []
        assert channels.drop_lost(later) == [2]
        assert [(port, channel.is_closed) for _, port, channel in outbox.opened] == [(1000, True)]
        assert channels.drop_lost(later) == []
    assert channels.find(2, MetadataImage()) is None
