"""Two instances of a Kafka Streams application in one streams group (KIP-1071): standby tasks, and one is killed."""

from __future__ import annotations

import random
import time
from pathlib import Path

from moldau.client import Admin, NewTopic
from moldau.client.admin import TOPIC, ConfigResource, StreamsGroupDescription
from tests.interop.nodes import MoldauNode
from tests.interop.test_streams import PARTITIONS, Application, CountReader, Text, skip_without_streams
from tests.pace import patience, wait_until

GROUP = "word-count"
LINES = 400
SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.streams.min.session.timeout.ms": "3000",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.num.standby.replicas": "1",
}


def describe(admin: Admin) -> StreamsGroupDescription:
    return admin.describe_streams_groups([GROUP])[GROUP].get()


def tasks(group: StreamsGroupDescription, role: str) -> list[tuple[str, int]]:
    return sorted(
        (subtopology, index)
        for member in group.members
        for subtopology, indexes in getattr(member.assignment, role).items()
        for index in indexes
    )


def is_settled(admin: Admin, processes: int) -> bool:
    group = describe(admin)
    return group.state == "Stable" and len({member.process_id for member in group.members}) == processes


def test_a_standby_takes_over_when_an_instance_is_killed(tmp_path: Path, kafka_tools: None) -> None:
    skip_without_streams()
    node = MoldauNode(tmp_path / "node", SETTINGS)
    node.format()
    node.start()
    try:
        run_with_a_kill(node, tmp_path)
    finally:
        node.kill()


def run_with_a_kill(node: MoldauNode, folder: Path) -> None:
    with Admin(node.bootstrap) as admin:
        for outcome in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("text", "counts")]).values():
            outcome.get()
        text, reader = Text(node.bootstrap, random.Random(7)), CountReader(node.bootstrap)
        first, second = (Application(node.bootstrap, folder / name, "streams", 1) for name in ("first", "second"))
        reader.start()
        try:
            first.start()
            text.write(LINES)
            await_counted(reader, text, first)
            second.start()
            wait_until(lambda: is_settled(admin, 2), patience(60))
            group = describe(admin)
            both = [(name, index) for name in ("0", "1") for index in range(PARTITIONS)]
            assert tasks(group, "active") == both
            assert tasks(group, "standby") == [("1", index) for index in range(PARTITIONS)]
            text.write(LINES)
            await_counted(reader, text, second)
            first.kill()
            text.write(LINES)
            wait_until(lambda: is_settled(admin, 1), patience(60))
            await_counted(reader, text, second)
            assert tasks(describe(admin), "active") == both
            check_internal_topics(admin, describe(admin))
        finally:
            first.kill()
            second.kill()
            text.close()
            reader.finish()
        assert not reader.problems, reader.problems[:5]
        assert dict(reader.counts) == dict(text.counts)
        wait_until(lambda: describe(admin).state == "Empty", patience(30))
        assert admin.list_groups(types=["streams"]).found[0].group_id == GROUP
        admin.delete_streams_groups([GROUP])[GROUP].get()


def check_internal_topics(admin: Admin, group: StreamsGroupDescription) -> None:
    """They have the names, partitions and configs that Kafka Streams gives them."""
    (store,) = [one for one in group.subtopologies if one.state_changelog_topics]
    changelog, repartition = store.state_changelog_topics[0], store.repartition_source_topics[0]
    assert changelog.name == f"{GROUP}-counts-changelog" and changelog.partitions == PARTITIONS
    assert repartition.name == f"{GROUP}-counts-repartition" and repartition.partitions == PARTITIONS
    resources = [ConfigResource(TOPIC, name) for name in (changelog.name, repartition.name)]
    described = admin.describe_configs(resources, names=["cleanup.policy"]).values()
    assert [entry.value for found in described for entry in found.get()] == ["compact", "delete"]


def await_counted(reader: CountReader, text: Text, application: Application) -> None:
    end = time.monotonic() + patience(90)
    while reader.total < text.counts.total():
        assert not reader.problems, reader.problems[:5]
        application.check()
        assert time.monotonic() < end, f"{reader.total} of {text.counts.total()}\n{application.output()}"
        time.sleep(0.05)
