"""Asks the leaders of partitions, wherever they are, for the latest offsets that consumers can see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.metadata.image import MetadataImage
from moldau.node.broker_channels import BrokerChannels
from moldau.node.outbox import NoResponse
from moldau.node.replicas import Replicas
from moldau.protocol import errors
from moldau.protocol.api_table import LIST_OFFSETS
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.list_offsets_response import ListOffsetsResponse
from moldau.protocol.primitives import Message

REQUEST_VERSION: Final = 7
LATEST: Final = -1
CONSUMER: Final = -1

TopicPartition = tuple[str, int]
Offsets = dict[TopicPartition, int | KafkaError]


class LatestOffsets:
    """See the module."""

    def __init__(self, broker_id: int, replicas: Replicas, channels: BrokerChannels, timeout_ms: int) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._channels = channels
        self._timeout_ms = timeout_ms

    def ask(
        self,
        places: list[TopicPartition],
        image: MetadataImage,
        finish: Callable[[Offsets, int], None],
        now_ms: int,
    ) -> None:
        """`finish` may be called inside this call."""
        self._channels.drop_lost(image)
        found: Offsets = {}
        remote: dict[int, list[TopicPartition]] = {}
        for place in places:
            topic = image.topics_by_name.get(place[0])
            registration = None if topic is None else topic.partitions.get(place[1])
            if registration is None:
                found[place] = KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
            elif registration.leader == self._broker_id:
                found[place] = self._local(place)
            elif registration.leader < 0 or self._channels.find(registration.leader, image) is None:
                found[place] = KafkaError(errors.LEADER_NOT_AVAILABLE)
            else:
                remote.setdefault(registration.leader, []).append(place)
        if not remote:
            finish(found, now_ms)
            return
        missing = len(remote)

        def on_response(asked: list[TopicPartition], response: Message | NoResponse, now_ms: int) -> None:
            nonlocal missing
            found.update(offsets_in(asked, response))
            missing -= 1
            if missing == 0:
                finish(found, now_ms)

        for broker_id, asked in remote.items():
            self._send(broker_id, asked, image, on_response)

    def _local(self, place: TopicPartition) -> int | KafkaError:
        partition = self._replicas.find(*place)
        if partition is None:
            return self._replicas.why_missing(*place)
        try:
            return partition.find_offset(LATEST, 0, -1, CONSUMER).offset
        except KafkaError as error:
            return error

    def _send(
        self,
        broker_id: int,
        asked: list[TopicPartition],
        image: MetadataImage,
        on_response: Callable[[list[TopicPartition], Message | NoResponse, int], None],
    ) -> None:
        channel = self._channels.find(broker_id, image)
        assert channel is not None
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for name, index in asked:
            topics.setdefault(name, []).append(ListOffsetsPartition(index, -1, LATEST))
        rows = [ListOffsetsTopic(name, partitions) for name, partitions in topics.items()]
        request = ListOffsetsRequest(CONSUMER, 0, rows)
        channel.send(
            LIST_OFFSETS,
            REQUEST_VERSION,
            request,
            self._timeout_ms,
            lambda response, now_ms: on_response(asked, response, now_ms),
        )

    def close(self) -> None:
        self._channels.close()


def offsets_in(asked: list[TopicPartition], response: Message | NoResponse) -> Offsets:
    found: Offsets = dict.fromkeys(asked, KafkaError(errors.LEADER_NOT_AVAILABLE))
    if isinstance(response, ListOffsetsResponse):
        for topic in response.topics:
            for row in topic.partitions:
                found[(topic.name, row.partition_index)] = (
                    KafkaError(row.error_code) if row.error_code != errors.NONE else row.offset
                )
    return found
