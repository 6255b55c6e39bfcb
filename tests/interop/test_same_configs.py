"""Moldau and Apache Kafka describe, check and change settings alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages import alter_configs_request as plain_alter
from moldau.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from tests.interop.batches import batch
from tests.interop.conftest import Same
from tests.interop.peers import Peer
from tests.interop.wire import plain
from tests.pace import moment, patience

UNKNOWN, TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 0, 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
# These differ because the two nodes listen on other ports and write to other folders.
OF_THE_NODE = {
    "log.dirs",
    "log.dir",
    "listeners",
    "advertised.listeners",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
}


def describe(peer: Peer, kind: int, name: str, *keys: str, version: int = 4, **fields: Any) -> Any:
    """Settings by name; values that only this node can have are masked, as is the wording of the documentation."""
    resource = DescribeConfigsResource(kind, name, fields.pop("keys", list(keys) or None))
    answer = plain(peer.ask(DescribeConfigsRequest(resources=[resource], **fields), version))
    for result in answer["results"]:
        rows = {}
        for row in sorted(result["configs"], key=lambda entry: str(entry["name"])):
            if row["name"] in OF_THE_NODE:
                row["value"] = "<of the node>"
                row["synonyms"] = len(row["synonyms"])
            rows[row["name"]] = row
        result["configs"] = rows
    return answer


def wait_for(peer: Peer, kind: int, name: str, key: str, value: str | None) -> None:
    """A change reaches the broker a moment after the controller has answered."""
    deadline = time.monotonic() + patience(10)
    while time.monotonic() < deadline:
        row = describe(peer, kind, name, key)["results"][0]["configs"].get(key)
        if row is not None and row["value"] == value:
            return
        time.sleep(0.02)
    raise AssertionError(f"{peer.node.name}: {key} did not become {value}")


def alter(
    peer: Peer, kind: int, name: str, *changes: tuple[str, int, str | None], validate: bool = False, version: int = 1
) -> Any:
    rows = [AlterableConfig(key, operation, value) for key, operation, value in changes]
    request = IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(kind, name, rows)], validate_only=validate)
    return plain(peer.ask(request, version))


@pytest.mark.parametrize("version", range(1, 5))
def test_all_settings_of_a_topic(same: Same, topic: str, version: int) -> None:
    """Values, sources, synonyms, types, what is read-only and what is secret."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic, retention_ms="1234", cleanup_policy="compact,delete")
        return describe(peer, TOPIC, topic, version=version, include_synonyms=True)

    configs = same(scenario)["results"][0]["configs"]
    assert configs["retention.ms"]["value"] == "1234"


def test_every_topic_setting_is_documented(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return describe(peer, TOPIC, topic, version=4, include_documentation=True)

    same(scenario)


@pytest.mark.parametrize("version", [1, 4])
def test_all_settings_of_a_broker(same: Same, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        return describe(peer, BROKER, "1", version=version, include_synonyms=True)

    assert len(same(scenario)["results"][0]["configs"]) > 200


def test_settings_of_all_brokers_together(same: Same) -> None:
    same(lambda peer: describe(peer, BROKER, "", include_synonyms=True))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TOPIC, "missing"),
        (TOPIC, ""),
        (TOPIC, "bad name"),
        (BROKER, "2"),
        (BROKER, "one"),
        (BROKER, "-1"),
        (UNKNOWN, "x"),
        (77, "x"),
        (BROKER_LOGGER, "2"),
        (BROKER_LOGGER, ""),
        (CLIENT_METRICS, ""),
        (CLIENT_METRICS, "none"),
        (GROUP, ""),
        (GROUP, "none"),
    ],
)
def test_describing_what_is_not_there(same: Same, kind: int, name: str) -> None:
    def scenario(peer: Peer) -> Any:
        return describe(peer, kind, name)

    same(scenario)


def test_chosen_settings(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return [
            describe(peer, TOPIC, topic, "retention.ms", "no.such.config", "retention.ms"),
            describe(peer, BROKER, "1", "log.retention.ms", "log.retention.hours", include_synonyms=True),
            describe(peer, TOPIC, topic, keys=[]),
        ]

    same(scenario)


def test_a_topic_setting_is_changed_and_taken_back(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        answers = [alter(peer, TOPIC, topic, ("retention.ms", SET, "999"), ("segment.bytes", SET, "1048577"))]
        wait_for(peer, TOPIC, topic, "retention.ms", "999")
        answers.append(describe(peer, TOPIC, topic, "retention.ms", "segment.bytes", include_synonyms=True))
        answers.append(alter(peer, TOPIC, topic, ("retention.ms", DELETE, None), ("flush.ms", DELETE, None)))
        wait_for(peer, TOPIC, topic, "retention.ms", "604800000")
        answers.append(describe(peer, TOPIC, topic, "retention.ms", include_synonyms=True))
        return answers

    same(scenario)


def test_lists_grow_and_shrink(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        answers = [alter(peer, TOPIC, topic, ("cleanup.policy", APPEND, "compact"))]
        wait_for(peer, TOPIC, topic, "cleanup.policy", "delete,compact")
        answers.append(alter(peer, TOPIC, topic, ("cleanup.policy", APPEND, "compact")))
        answers.append(describe(peer, TOPIC, topic, "cleanup.policy"))
        answers.append(alter(peer, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")))
        wait_for(peer, TOPIC, topic, "cleanup.policy", "compact")
        answers.append(alter(peer, TOPIC, topic, ("cleanup.policy", SUBTRACT, "compact")))
        answers.append(describe(peer, TOPIC, topic, "cleanup.policy"))
        answers.append(alter(peer, TOPIC, topic, ("retention.ms", APPEND, "1")))
        return answers

    same(scenario)


@pytest.mark.parametrize(
    "changes",
    [
        [("no.such.config", SET, "1")],
        [("no.such.config", DELETE, None)],
        [("retention.ms", SET, "abc")],
        [("retention.ms", SET, None)],
        [("retention.ms", SET, "")],
        [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
        [("retention.ms", SET, "1"), ("cleanup.policy", SET, "shred")],
        [("", SET, "1")],
        [("min.insync.replicas", SET, "0")],
        [("min.insync.replicas", SET, "3")],
        [("segment.bytes", SET, "13")],
        [("compression.type", SET, "brotli")],
        [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")],
        [],
    ],
)
def test_changes_to_a_topic_are_checked(same: Same, topic: str, changes: list[tuple[str, int, str | None]]) -> None:
    """A request that is refused changes nothing."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        answer = alter(peer, TOPIC, topic, *changes)
        return answer, describe(peer, TOPIC, topic, "retention.ms", "cleanup.policy")

    same(scenario)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(TOPIC, "missing"), (TOPIC, ""), (TOPIC, "bad name"), (BROKER, "7"), (BROKER, "x"), (UNKNOWN, "x"), (99, "x")],
)
def test_changes_to_what_is_not_there(same: Same, kind: int, name: str) -> None:
    def scenario(peer: Peer) -> Any:
        return [
            alter(peer, kind, name, ("retention.ms", SET, "1")),
            alter(peer, kind, name, ("retention.ms", DELETE, None)),
        ]

    same(scenario)


def test_validating_changes_nothing(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        answers = [alter(peer, TOPIC, topic, ("retention.ms", SET, "5"), validate=True)]
        answers.append(alter(peer, TOPIC, topic, ("retention.ms", SET, "x"), validate=True))
        answers.append(describe(peer, TOPIC, topic, "retention.ms"))
        return answers

    same(scenario)


def broker_row(peer: Peer, key: str) -> Any:
    return describe(peer, BROKER, "1", key, include_synonyms=True)["results"][0]["configs"].get(key)


def settle(reached: Callable[[], bool]) -> None:
    """Waits a moment for the broker to take over a change; some are never seen in what it describes."""
    deadline = time.monotonic() + moment(1)
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.retention.ms", "777777"),
        ("log.retention.ms", "soon"),
        ("message.max.bytes", "2000000"),
        ("node.id", "7"),
        ("process.roles", "broker"),
        ("no.such.config", "1"),
        ("num.io.threads", "9"),
        ("num.io.threads", "0"),
        ("num.io.threads", "900"),
        ("log.cleaner.threads", "2"),
        ("max.connections", "100"),
        ("max.connections", "-1"),
        ("advertised.listeners", "PLAINTEXT://elsewhere:1"),
        ("min.insync.replicas", "2"),
        ("leader.replication.throttled.rate", "1000"),
        ("compression.type", "brotli"),
        ("unclean.leader.election.enable", "maybe"),
        ("log.segment.bytes", "1"),
    ],
)
def test_changes_to_a_broker(same: Same, name: str, key: str, value: str) -> None:
    """What may change while it runs is changed and taken back; the rest is refused."""

    def scenario(peer: Peer) -> Any:
        before = broker_row(peer, key)
        answers = [alter(peer, BROKER, name, (key, SET, value))]
        if answers[0]["responses"][0]["error_code"] == 0:
            settle(lambda: broker_row(peer, key) != before)
            answers.append(describe(peer, BROKER, "1", key, include_synonyms=True))
        answers.append(alter(peer, BROKER, name, (key, DELETE, None)))
        if name == "" and key == "min.insync.replicas":  # this one cannot be taken back, only set
            alter(peer, BROKER, name, (key, SET, "1"))
        settle(lambda: broker_row(peer, key) == before)
        answers.append(describe(peer, BROKER, "1", key))
        return answers

    same(scenario)


def test_a_broker_setting_reaches_topics_without_one(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        alter(peer, BROKER, "", ("log.retention.ms", SET, "888888"))
        wait_for(peer, TOPIC, topic, "retention.ms", "888888")
        answer = describe(peer, TOPIC, topic, "retention.ms", include_synonyms=True)
        alter(peer, BROKER, "", ("log.retention.ms", DELETE, None))
        wait_for(peer, TOPIC, topic, "retention.ms", "604800000")
        return answer

    same(scenario)


def test_a_change_takes_effect_at_once(same: Same, topic: str) -> None:
    """The next batch is judged by the new limit."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        codes = [peer.produce(topic, batch([b"x" * 5000])).error_code]
        alter(peer, TOPIC, topic, ("max.message.bytes", SET, "1000"))
        wait_for(peer, TOPIC, topic, "max.message.bytes", "1000")
        codes.append(peer.produce(topic, batch([b"x" * 5000])).error_code)
        alter(peer, TOPIC, topic, ("max.message.bytes", DELETE, None))
        wait_for(peer, TOPIC, topic, "max.message.bytes", "1048588")
        codes.append(peer.produce(topic, batch([b"x" * 5000])).error_code)
        return codes

    assert same(scenario) == [0, errors.MESSAGE_TOO_LARGE, 0]


@pytest.mark.parametrize("version", range(3))
def test_the_old_request_replaces_all_settings(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, retention_ms="5", segment_ms="60000")

        def replace(*pairs: tuple[str, str | None], validate: bool = False) -> Any:
            rows = [plain_alter.AlterableConfig(key, value) for key, value in pairs]
            resource = plain_alter.AlterConfigsResource(TOPIC, topic, rows)
            return plain(
                peer.ask(plain_alter.AlterConfigsRequest(resources=[resource], validate_only=validate), version)
            )

        answers = [replace(("retention.ms", "6"))]
        wait_for(peer, TOPIC, topic, "segment.ms", "604800000")
        answers.append(describe(peer, TOPIC, topic, "retention.ms", "segment.ms"))
        answers += [replace(("retention.ms", "x")), replace(("no.such.config", "1")), replace(("retention.ms", None))]
        answers += [replace(("retention.ms", "9"), validate=True), replace()]
        wait_for(peer, TOPIC, topic, "retention.ms", "604800000")
        return answers

    same(scenario)


def test_resources_with_settings_are_listed(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        answers = []
        for version, kinds in (
            (0, []),
            (1, []),
            (1, [TOPIC]),
            (1, [BROKER]),
            (1, [BROKER_LOGGER]),
            (1, [GROUP]),
            (1, [99]),
        ):
            answer = plain(peer.ask(ListConfigResourcesRequest(resource_types=kinds), version))
            rows = answer["config_resources"]
            # Topics, groups and the like of other tests may be on one of the two alone.
            own = (None, BROKER, BROKER_LOGGER)
            kept = [row for row in rows if row.get("resource_type") in own or row["resource_name"] == topic]
            answer["config_resources"] = sorted(kept, key=repr)
            answers.append(answer)
        return answers

    same(scenario)
