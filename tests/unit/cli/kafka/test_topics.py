"""kafka-topics: what it prints, where, and its exit codes, against a scripted admin client."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.kafka import topics
from moldau.cli.kafka.frame import guard
from moldau.cli.kafka.java_order import hash_map_order, string_hash
from moldau.client.admin import ConfigEntry
from moldau.client.admin.cluster import ClusterDescription
from moldau.client.connection.cluster import Broker, PartitionMetadata, TopicMetadata
from moldau.client.errors import NoBrokerError, error_for
from moldau.client.results import Outcome
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin

SERVER = ["--bootstrap-server", "localhost:9092"]
TOPIC_ID = bytes(15) + b"\1"


def run(admin: FakeAdmin, *arguments: str) -> int:
    return guard(lambda: topics.main([*SERVER, *arguments], connect=admin.connect))


def topic(name: str, *isrs: list[int], leader: int = 1) -> TopicMetadata:
    partitions = {
        index: PartitionMetadata(name, index, leader if isr else -1, 0, [1, 2], isr, [], [] if isr else [2], [])
        for index, isr in enumerate(isrs)
    }
    return TopicMetadata(name, TOPIC_ID, name.startswith("__"), partitions)


def describing(*found: TopicMetadata, **configs: str) -> FakeAdmin:
    entries = [ConfigEntry("min.insync.replicas", "2", 5, False, False, [], None)]
    entries += [
        ConfigEntry(name.replace("_", "."), value, 1, False, False, [], None) for name, value in configs.items()
    ]
    by_name = {item.name: item for item in found}
    return FakeAdmin(
        list_topics=sorted(found),
        describe_topics=lambda names, partitions_per_page=2000: {name: Outcome(by_name[name]) for name in names},
        describe_configs=lambda resources: {item: Outcome(entries) for item in resources},
        describe_cluster=ClusterDescription("c", 1, [Broker(1, "h", 1, None), Broker(2, "h", 2, None)], set()),
        list_partition_reassignments={},
    )


def test_list_prints_an_empty_line_when_there_is_no_topic(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeAdmin(list_topics=[]), "--list") == 0
    assert capsys.readouterr().out == "\n"


def test_list_takes_a_regular_expression_and_leaves_out_internal_topics(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(list_topics=[topic("__consumer_offsets"), topic("orders"), topic("other"), topic("x")])
    assert run(admin, "--list", "--exclude-internal", "--topic", "or.*,x") == 0
    assert capsys.readouterr().out == "orders\nx\n"


def test_describe_shows_configs_and_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    admin = describing(topic("orders", [1, 2], []), retention_ms="1")
    assert run(admin, "--describe", "--topic", "orders") == 0
    assert capsys.readouterr().out == (
        "Topic: orders\tTopicId: AAAAAAAAAAAAAAAAAAAAAQ\tPartitionCount: 2\tReplicationFactor: 2"
        "\tConfigs: retention.ms=1\n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: \n"
        "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 1,2\tIsr: \tElr: 2\tLastKnownElr: \n"
    )


def test_describe_asks_for_as_many_partitions_at_once_as_the_user_wants() -> None:
    admin = describing(topic("orders", [1]))
    assert run(admin, "--describe", "--topic", "orders", "--partition-size-limit-per-response", "7") == 0
    asked = [named for name, _, named in admin.calls if name == "describe_topics"]
    assert asked == [{"partitions_per_page": 7}]


@pytest.mark.parametrize(
    ("report", "partitions"),
    [
        ("--under-replicated-partitions", [1, 2]),
        ("--unavailable-partitions", [2]),
        ("--under-min-isr-partitions", [1, 2]),
        ("--at-min-isr-partitions", [0]),
    ],
)
def test_reports_show_partitions_alone(report: str, partitions: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(describing(topic("orders", [1, 2], [1], [])), "--describe", report) == 0
    shown = [int(line.split("\t")[2].removeprefix("Partition: ")) for line in capsys.readouterr().out.splitlines()]
    assert shown == partitions


def test_overrides_show_topics_that_have_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(describing(topic("orders", [1])), "--describe", "--topics-with-overrides") == 0
    assert capsys.readouterr().out == ""


def test_an_error_of_the_broker_goes_to_both_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = error_for(errors.TOPIC_ALREADY_EXISTS, "Topic 'orders' already exists.")
    admin = FakeAdmin(create_topics=lambda *_, **__: {"orders": Outcome(error=refusal)})
    assert run(admin, "--create", "--topic", "orders") == 1
    shown = capsys.readouterr()
    assert shown.out == "Error while executing topic command : Topic 'orders' already exists.\n"
    assert shown.err[26:] == (
        "ERROR org.apache.kafka.common.errors.TopicExistsException: Topic 'orders' already exists.\n"
        " (org.apache.kafka.tools.TopicCommand)\n"
    )
    assert run(admin, "--create", "--topic", "orders", "--if-not-exists") == 0
    assert capsys.readouterr().out == ""


def test_nobody_there_is_a_timeout(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeAdmin(list_topics=NoBrokerError("gone")), "--list") == 1
    expected = "Error while executing topic command : Timed out waiting for a node assignment. Call: listTopics\n"
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--create --topic t --partitions 0", "The partitions must be greater than 0"),
        ("--create --topic t --replication-factor 0", "The replication factor must be between 1 and 32767 inclusive"),
        ("--create --topic t --replica-assignment 1:1", "Partition replica lists may not contain duplicate entries: 1"),
        ("--create --topic t --replica-assignment 1:2,3", "Partition 1 has different replication factor: [3]"),
        ("--create --topic t --config no.such.config=1", "Unknown topic config name: no.such.config"),
        ("--delete --topic nope", "Topic 'nope' does not exist as expected"),
        ("--alter --topic nope --partitions 2", "Topic 'nope' does not exist as expected"),
        ("--describe --topic nope", "Topic 'nope' does not exist as expected"),
    ],
)
def test_what_is_wrong_is_said(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeAdmin(list_topics=[]), *arguments.split()) == 1
    assert capsys.readouterr().out == f"Error while executing topic command : {said}\n"


@pytest.mark.parametrize(
    ("arguments", "first_line"),
    [
        ("--create", 'Missing required argument "[topic]"'),
        (
            "--list --describe",
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete",
        ),
        ("--list --partitions 1", 'Option "[partitions]" can\'t be used with option "[list]"'),
        ("--no-such-flag", "no-such-flag is not a recognized option"),
    ],
)
def test_wrong_options_end_with_the_usage(arguments: str, first_line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeAdmin(), *arguments.split()) == 1
    assert capsys.readouterr().err.splitlines()[0] == first_line


def test_create_sends_what_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Any] = []

    def create(new: list[Any], **_: Any) -> dict[str, Outcome[None]]:
        asked.extend(new)
        return {"a.b": Outcome()}

    line = "--create --topic a.b --config retention.ms=5 --replica-assignment 1:2,2:1"
    assert run(FakeAdmin(create_topics=create), *line.split()) == 0
    assert asked == [("a.b", -1, -1, {"retention.ms": "5"}, [[1, 2], [2, 1]])]
    assert capsys.readouterr().out.splitlines()[1:] == ["Created topic a.b."]


def test_keys_come_in_the_order_of_a_java_hash_map() -> None:
    names = ["compacted", "defaults", "manual", "orders", "with.dot"]
    assert hash_map_order(names, len(names)) == ["orders", "defaults", "manual", "with.dot", "compacted"]
    assert string_hash("Aa") == string_hash("BB") == 2112
