"""Measures consumer groups (KIP-848): how long until many members that join at once have their partitions, and leave.

    python bench/consumer_group_joins.py [--moldau COMMAND] [--kafka DIRECTORY] [--members 100] [--partitions 200]
                                         [--heartbeat-ms 20]

Members are plain sockets in this process that do what a consumer does: join, send a heartbeat every 20 ms, and at once
when they have something to acknowledge or were given something. The interval is far below Kafka's 5 s so that the time
until stable is the coordinator's and not that of members who wait for their next heartbeat. Stable is when every
partition has one member, nobody has two more than anybody else, and all are in the same epoch. Three things are
measured: joining with the assignment interval 0 (an assignment for every member that comes: work), with the default of
a second (mostly waiting), and steady heartbeats, one of each member in flight. Rounds alternate between Moldau and,
where its jars are (tools/fetch_kafka.sh), Apache Kafka; figures are medians, CPU is that of the broker's
process.
"""

from __future__ import annotations

import time
from typing import Any

from group_joins import Group, Member, add_options, show_medians
from groups import wait_for_groups
from side_by_side import Broker, create_topic, fresh_brokers, parser_of

from moldau.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.primitives import Message

HEARTBEAT_MS = 20
STEADY_HEARTBEATS = 20_000
GROUP_RESOURCE = 32
TOPIC = "consumers"
ROWS = (
    "joining, interval 0, ms",
    "joining, interval 0, CPU ms",
    "joining, interval 1 s, ms",
    "joining, interval 1 s, CPU ms",
    "heartbeats a second",
    "heartbeat, CPU us",
)


class ConsumerMember(Member):
    versions = {ConsumerGroupHeartbeatRequest: 1}

    def __init__(self, group: ConsumerGroup, port: int, number: int) -> None:
        super().__init__(port)
        self.group = group
        self.member_id = f"member-{number}"
        self.epoch = 0
        self.owned: list[TopicPartitions] = []
        self.must_acknowledge = False

    def send_heartbeat(self, **fields: Any) -> None:
        request = ConsumerGroupHeartbeatRequest(
            **{"group_id": self.group.name, "member_id": self.member_id, "member_epoch": self.epoch, **fields}
        )
        self.send(request)

    def join(self) -> None:
        self.send_heartbeat(rebalance_timeout_ms=300_000, subscribed_topic_names=[TOPIC], topic_partitions=[])

    def heartbeat(self) -> None:
        if self.must_acknowledge:
            self.must_acknowledge = False
            self.send_heartbeat(topic_partitions=self.owned)
        else:
            self.send_heartbeat()

    def leave(self) -> None:
        self.send_heartbeat(member_epoch=-1)

    def on_response(self, request: type[Message], answer: Any) -> None:
        if answer.error_code:
            raise RuntimeError(f"a heartbeat failed with error {answer.error_code}: {answer.error_message}")
        self.epoch = answer.member_epoch
        self.heartbeat_at = time.perf_counter() + self.group.heartbeat_seconds
        if answer.assignment is not None:
            self.owned = [
                TopicPartitions(topic.topic_id, topic.partitions) for topic in answer.assignment.topic_partitions
            ]
            self.must_acknowledge = True
            self.heartbeat_at = 0.0

    @property
    def count(self) -> int:
        return sum(len(topic.partitions) for topic in self.owned)

    @property
    def progress(self) -> tuple[int, ...]:
        return self.epoch, self.count


class ConsumerGroup(Group[ConsumerMember]):
    pause_seconds = 0.002
    heartbeat_seconds = HEARTBEAT_MS / 1000

    def __init__(self, name: str, broker: Broker, size: int, partitions: int) -> None:
        self.partitions = partitions
        super().__init__(name, [ConsumerMember(self, broker.port, number) for number in range(size)])

    def is_stable(self) -> bool:
        epoch = self.members[0].epoch
        if epoch <= 0 or any(member.epoch != epoch or member.must_acknowledge for member in self.members):
            return False
        counts = [member.count for member in self.members]
        return sum(counts) == self.partitions and max(counts) - min(counts) <= 1

    def run_steady(self, count: int) -> None:
        """Every member sends its next heartbeat when the last one is answered."""
        sent = 0
        while sent < count:
            for member in self.members:
                if member.pending is None:
                    member.send_heartbeat()
                    sent += 1
            self.take_answers(0.01)
        self.settle()


def configure(broker: Broker, group: str, interval_ms: int) -> None:
    entry = AlterableConfig("consumer.assignment.interval.ms", 0, str(interval_ms))
    resource = AlterConfigsResource(GROUP_RESOURCE, group, [entry])
    broker.connect().ask(IncrementalAlterConfigsRequest([resource]), 1)
    time.sleep(0.3)


def measure_joining(broker: Broker, name: str, size: int, partitions: int, interval_ms: int) -> tuple[float, float]:
    """Milliseconds until stable, and of the broker's CPU."""
    group = prepared(broker, name, size, partitions, interval_ms)
    found = group.join_all(broker)
    group.close()
    return found


def measure_heartbeats(broker: Broker, name: str, size: int, partitions: int) -> tuple[float, float]:
    """Heartbeats a second, and microseconds of the broker's CPU for each."""
    group = prepared(broker, name, size, partitions, 0)
    group.join_all(broker)
    group.settle()
    cpu, start = broker.cpu_seconds(), time.perf_counter()
    group.run_steady(STEADY_HEARTBEATS)
    took, used = time.perf_counter() - start, broker.cpu_seconds() - cpu
    group.close()
    return STEADY_HEARTBEATS / took, used * 1e6 / STEADY_HEARTBEATS


def prepared(broker: Broker, name: str, size: int, partitions: int, interval_ms: int) -> ConsumerGroup:
    """Nobody has joined yet."""
    wait_for_groups(broker, [name])
    configure(broker, name, interval_ms)
    return ConsumerGroup(name, broker, size, partitions)


def measure(broker: Broker, number: int, size: int, partitions: int) -> tuple[float, ...]:
    return (
        *measure_joining(broker, f"work{number}", size, partitions, 0),
        *measure_joining(broker, f"default{number}", size, partitions, 1000),
        *measure_heartbeats(broker, f"steady{number}", size, partitions),
    )


def main() -> None:
    parser = parser_of(__doc__)
    add_options(parser)
    parser.add_argument("--heartbeat-ms", type=int, default=HEARTBEAT_MS)
    options = parser.parse_args()
    ConsumerGroup.heartbeat_seconds = options.heartbeat_ms / 1000
    with fresh_brokers(options, {}) as brokers:
        for broker in brokers:
            broker.start()
            create_topic(broker.connect(), TOPIC, options.partitions)
        show_medians(brokers, ROWS, 2, options.rounds, lambda b, n: measure(b, n, options.members, options.partitions))


if __name__ == "__main__":
    main()
