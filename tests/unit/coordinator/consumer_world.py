"""Consumers of the newer protocol against one shard of the coordinator on a log in memory, and topics they can read."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from moldau.coordinator.group.classic_join import Joining
from moldau.coordinator.group.classic_rebalance import join_key
from moldau.coordinator.group.classic_responses import join_error, sync_error
from moldau.coordinator.group.consumer_checks import check_heartbeat
from moldau.coordinator.group.consumer_group import ConsumerGroup
from moldau.coordinator.group.consumer_member import STATE_NAMES
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.timers import Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.model import GROUP_RESOURCE
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.heartbeat_response import HeartbeatResponse
from moldau.protocol.messages.join_group_request import JoinGroupRequest
from moldau.protocol.messages.leave_group_response import LeaveGroupResponse
from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from moldau.protocol.messages.sync_group_request import SyncGroupRequest
from moldau.protocol.primitives import Message
from moldau.protocol.stored.group_records import decode_group_key, decode_group_value
from moldau.protocol.stored.metadata_records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from moldau.records.batch import split_batches
from moldau.records.walk import read_records
from tests.unit.coordinator.group_world import GroupWorld

GROUP = "g"
VERSION = 1


class Consumer:
    """What a consumer remembers: who it is, its epoch, and the partitions it was told to have, by topic id."""

    def __init__(self, world: ConsumerWorld, member_id: str, instance_id: str | None = None) -> None:
        self.world = world
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.owned: dict[bytes, list[int]] = {}
        self.subscription: dict[str, Any] = {}
        # After an answer that did not come, everything is told again, and the answer tells everything.
        self.missed_answer = False

    def join(self, *topics: str, regex: str | None = None, rebalance_ms: int = 300_000, **fields: Any) -> Any:
        self.epoch = 0
        self.owned = {}
        fields.setdefault("subscribed_topic_names", list(topics))
        return self._send(
            rebalance_timeout_ms=rebalance_ms, subscribed_topic_regex=regex, topic_partitions=[], **fields
        )

    def beat(self, **fields: Any) -> Any:
        """A heartbeat that says nothing new."""
        return self._send(**fields)

    def acknowledge(self) -> Any:
        """A heartbeat that tells what the consumer has."""
        return self._send(topic_partitions=self.owned_list())

    def leave(self, epoch: int = -1) -> Any:
        return self._send(member_epoch=epoch)

    def owned_list(self) -> list[TopicPartitions]:
        return [TopicPartitions(topic_id, partitions) for topic_id, partitions in self.owned.items()]

    def _send(self, **fields: Any) -> Any:
        told = ("rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex")
        self.subscription.update({name: fields[name] for name in told if fields.get(name) is not None})
        if self.missed_answer and fields.get("member_epoch", 0) >= 0:
            fields = {**self.subscription, "topic_partitions": self.owned_list(), **fields}
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": GROUP,
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                "instance_id": self.instance_id,
                **fields,
            }
        )
        self.missed_answer = True
        response = self.world.heartbeat(request)
        self.missed_answer = False
        assert response.member_id is not None
        self.member_id = response.member_id
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}
        return response


class ClassicAnswer:
    """An answer to a classic member, which may come later."""

    def __init__(self, on_error: Callable[[KafkaError], Message]) -> None:
        self._on_error = on_error
        self._answer: Message | None = None

    def done(self, result: Message | KafkaError) -> None:
        if self._answer is None:
            self._answer = self._on_error(result) if isinstance(result, KafkaError) else result

    def take(self) -> Message | None:
        return self._answer


class ConsumerWorld(GroupWorld):
    """Topics are created with ids made of their names, so that scripts can show names."""

    def __init__(self, **settings: str) -> None:
        # Outlives failovers: no two coordinators make the same ids.
        self.dice = random.Random(1)
        super().__init__(**{"group_initial_rebalance_delay_ms": "0", **settings})
        self.seen = 0

    def _make(self, index: int, timers: Timers) -> GroupMachine:
        return GroupMachine(index, timers, self.settings, self.dice)

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, version: int = VERSION) -> Any:
        check_heartbeat(request, version, self.settings.consumer.assignors)
        return self.run(
            lambda machine: machine.consumer.heartbeat(request, version, "client", "/127.0.0.1", self.now_ms)
        )

    def settle(self) -> None:
        """Lets classic members join whose time has come."""
        timers = self.shard.timers
        if timers.due_at(join_key(GROUP)) <= self.now_ms:
            self.runtime.poll(self.now_ms)

    def ask_classic(self, request: Any, version: int, client_id: str) -> ClassicAnswer:
        if isinstance(request, JoinGroupRequest):
            pending = ClassicAnswer(lambda error: join_error(error.code, request.member_id))
            joining = Joining(request, version, client_id, "/127.0.0.1", pending.done)
            verb: Any = lambda machine: machine.classic.join(joining, self.now_ms)  # noqa: E731
        elif isinstance(request, SyncGroupRequest):
            pending = ClassicAnswer(lambda error: sync_error(error.code))
            verb = lambda machine: machine.classic.sync(request, pending.done, self.now_ms)  # noqa: E731
        elif isinstance(request, HeartbeatRequest):
            pending = ClassicAnswer(lambda error: HeartbeatResponse(error_code=error.code))
            verb = lambda machine: machine.classic.heartbeat(request, self.now_ms)  # noqa: E731
        else:
            pending = ClassicAnswer(lambda error: LeaveGroupResponse(error_code=error.code))
            verb = lambda machine: machine.classic.leave(request, self.now_ms)  # noqa: E731
        self.runtime.run(0, verb, pending.done, self.now_ms)
        return pending

    def consumer(self, member_id: str, instance_id: str | None = None) -> Consumer:
        return Consumer(self, member_id, instance_id)

    @property
    def group(self) -> ConsumerGroup:
        group = self.machine.state.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    # Topics

    def change_metadata(self, *records: Message) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(self.image.offset + 1, 1, self.now_ms)
        self.runtime.on_metadata(delta, self.image, self.now_ms)

    def topic(self, name: str, partitions: int, topic_id: bytes | None = None) -> None:
        """Creates a topic, or gives it more partitions."""
        known = self.image.topic(name)
        topic_id = topic_id or (name.encode().ljust(16, b".") if known is None else known.topic_id)
        records: list[Message] = [] if known is not None else [TopicRecord(name, topic_id)]
        for index in range(0 if known is None else len(known.partitions), partitions):
            records.append(PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1))
        self.change_metadata(*records)

    def delete(self, name: str) -> None:
        topic = self.image.topic(name)
        assert topic is not None
        self.change_metadata(RemoveTopicRecord(topic.topic_id))

    def topic_id(self, name: str) -> bytes:
        topic = self.image.topic(name)
        return name.encode().ljust(16, b".") if topic is None else topic.topic_id

    def name_of(self, topic_id: bytes) -> str:
        """Also of topics that were deleted."""
        return topic_id.decode("latin-1").rstrip(".")

    def configure(self, key: str, value: str | None) -> None:
        self.change_metadata(ConfigRecord(GROUP_RESOURCE, GROUP, key, value))

    def describe(self) -> Any:
        response = self.run(
            lambda machine: Outcome(response=ConsumerGroupDescribeResponse(groups=machine.consumer.describe([GROUP])))
        )
        response.groups[0].members.sort(key=lambda member: member.member_id)
        return response.groups[0]

    def delete_group(self) -> list[int]:
        answer = self.run(lambda machine: machine.admin.delete([GROUP]))
        return [row.error_code for row in answer.results]

    def fetch_offsets(self, member_id: str, epoch: int) -> int:
        """The error code."""
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        request = OffsetFetchRequestGroup(GROUP, member_id, epoch, topics)
        try:
            self.run(lambda machine: Outcome(response=machine.offsets.fetch(request, False)))
        except KafkaError as error:
            return error.code
        return 0

    # What is in the log

    def new_records(self) -> list[tuple[Message, Message | None]]:
        """Since the last call."""
        found: list[tuple[Message, Message | None]] = []
        for batch in self.log.batches[self.seen :]:
            for header in split_batches(batch, 0, len(batch)):
                for record in read_records(batch, header):
                    assert record.key is not None
                    kind = int.from_bytes(record.key[:2], "big")
                    value = None if record.value is None else decode_group_value(kind, record.value)
                    found.append((decode_group_key(record.key), value))
        self.seen = len(self.log.batches)
        return found

    # What must always hold

    def check_owners(self) -> None:
        """No partition is with two members, and the table of owners says the same as the members."""
        found: dict[tuple[bytes, int], str] = {}
        for member in self.group.members.values():
            for partitions in (member.assigned, member.pending_revocation):
                for topic_id, epochs in partitions.items():
                    for index in epochs:
                        other = found.setdefault((topic_id, index), member.member_id)
                        assert other == member.member_id, f"{index} is with {other} and with {member.member_id}"
        table = {(topic, index): who for topic, owners in self.group.owners.items() for index, who in owners.items()}
        assert table == found


def show_partitions(owned: dict[bytes, Any], name_of: Callable[[bytes], str], epochs: bool = False) -> str:
    """topic:0,1 or, with the epochs in which they were assigned, topic:0@2,1@3; sorted, `-` for nothing."""
    shown: list[str] = []
    for topic_id in sorted(owned, key=name_of):
        partitions = owned[topic_id]
        indexes = [f"{index}@{partitions[index]}" if epochs else str(index) for index in sorted(partitions)]
        shown.append(f"{name_of(topic_id)}:{','.join(indexes)}")
    return " ".join(shown) or "-"


def show_member(group: ConsumerGroup, member_id: str, name_of: Callable[[bytes], str]) -> str:
    member = group.members[member_id]
    text = f"{member_id} epoch={member.member_epoch} {STATE_NAMES[member.state]}"
    text += f" has={show_partitions(member.assigned, name_of, epochs=True)}"
    if member.pending_revocation:
        text += f" gives={show_partitions(member.pending_revocation, name_of, epochs=True)}"
    return text + f" target={show_partitions(dict(group.target_of(member_id)), name_of)}"


def raises(code: int, act: Any) -> str:
    """Calls `act`, which must fail with this error; returns its text."""
    try:
        act()
    except KafkaError as error:
        assert error.code == code, error
        return error.message
    raise AssertionError("nothing was raised")
