"""Dead letters of a share group, on a node with real disks and sockets that is killed in between (KIP-1191)."""

from __future__ import annotations

import time

from moldau.client import AcknowledgeType, Admin, Consumer, ConsumerRecord, ShareConsumer, TopicPartition
from moldau.client.admin import GROUP, ConfigChange, ConfigResource, FeatureUpdate
from tests.interop.conftest import NodeFactory
from tests.interop.test_client_share import EXPLICIT, QUICK, SECONDS, member, prepare, take

LETTERS = "dlq.jobs"
SETTINGS = {**QUICK, "errors.deadletterqueue.auto.create.topics.enable": "true"}
READER = {"auto.offset.reset": "earliest", "allow.auto.create.topics": "false"}


def set_up(server: str) -> None:
    group = ConfigResource(GROUP, "g-jobs")
    with Admin(server) as admin:
        admin.update_features({"share.version": FeatureUpdate(2)})["share.version"].get()
        changes = [
            ConfigChange("errors.deadletterqueue.topic.name", LETTERS),
            ConfigChange("errors.deadletterqueue.copy.record.enable", "true"),
            ConfigChange("share.delivery.count.limit", "2"),
        ]
        admin.incremental_alter_configs({group: changes})[group].get()


def letters(server: str, count: int, worker: ShareConsumer) -> list[ConsumerRecord]:
    """Polls until so many records have one, and lets the worker poll too: a group works only while somebody fetches.
    The reader creates no topic: one that it made would not have the setting that lets dead letters in."""
    found: list[ConsumerRecord] = []
    records: set[str] = set()
    deadline = time.monotonic() + SECONDS
    with Consumer(server, config=READER) as consumer:
        consumer.assign([TopicPartition(LETTERS, 0)])
        while len(records) < count:
            assert time.monotonic() < deadline, f"{len(records)} of {count} records have dead letters"
            assert worker.poll(200) == [], "nothing is delivered again"
            found += consumer.poll(200)
            records = {told(letter)[0] for letter in found}
    return found


def told(letter: ConsumerRecord) -> tuple[str, str, str]:
    headers = {name: (value or b"").decode() for name, value in letter.headers}
    prefix = "__dlq.errors."
    assert (headers[prefix + "topic"], headers[prefix + "partition"]) == ("jobs", "0")
    assert headers[prefix + "group"] == "g-jobs"
    return headers[prefix + "offset"], headers[prefix + "delivery.count"], headers[prefix + "message"]


def test_rejected_and_released_records_are_in_the_dead_letter_topic(start_moldau: NodeFactory) -> None:
    node = start_moldau(SETTINGS)
    prepare(node.bootstrap, "jobs", 6)
    set_up(node.bootstrap)
    with member(node.bootstrap, "jobs", config=EXPLICIT) as consumer:
        for record in take(consumer, 6):
            kinds = {0: AcknowledgeType.REJECT, 1: AcknowledgeType.RELEASE}
            consumer.acknowledge(record, kinds.get(record.offset, AcknowledgeType.ACCEPT))
        consumer.commit()
        (again,) = take(consumer, 1)
        assert again.offset == 1
        consumer.acknowledge(again, AcknowledgeType.RELEASE)
        consumer.commit()
        found = letters(node.bootstrap, 2, consumer)
    assert [(letter.value, *told(letter)) for letter in found] == [
        (b"0", "0", "1", "rejected by client"),
        (b"1", "1", "2", "delivery count exceeded"),
    ]


def test_a_broker_that_is_killed_keeps_what_it_promised(start_moldau: NodeFactory) -> None:
    """The answer to a rejection is a promise: at least one dead letter each, after the restart if need be."""
    node = start_moldau(SETTINGS)
    prepare(node.bootstrap, "jobs", 200)
    set_up(node.bootstrap)
    with member(node.bootstrap, "jobs", config=EXPLICIT) as consumer:
        for record in take(consumer, 200):
            consumer.acknowledge(record, AcknowledgeType.REJECT)
        consumer.commit()
        node.kill()
        node.start()
    with member(node.bootstrap, "jobs") as consumer:
        found = {told(letter)[0] for letter in letters(node.bootstrap, 200, consumer)}
    assert found == {str(offset) for offset in range(200)}
