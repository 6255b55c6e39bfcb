"""kafka-log-dirs: its JSON and its errors, against a scripted admin client."""

from __future__ import annotations

import pytest

from moldau.cli.kafka import log_dirs
from moldau.cli.kafka.frame import guard
from moldau.client.admin.cluster import ClusterDescription
from moldau.client.admin.log_dirs import LogDirectory, ReplicaOnDisk
from moldau.client.connection.cluster import Broker
from moldau.client.errors import error_for
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin


def run(*arguments: str) -> int:
    names = [("orders", 0), ("orders", 1), ("txn", 0), ("orders", 2), ("orders", 3)]
    replicas = [ReplicaOnDisk(TopicPartition(*name), 5, 0, False) for name in sorted(names)]
    broken = error_for(errors.KAFKA_STORAGE_ERROR)
    admin = FakeAdmin(
        describe_cluster=ClusterDescription("c", 1, [Broker(1, "h", 1, None)], set()),
        describe_log_dirs={
            1: Outcome([LogDirectory("/a", None, -1, -1, replicas), LogDirectory("/b", broken, -1, -1, [])])
        },
    )
    line = ["--bootstrap-server", "h:1", "--describe", *arguments]
    return guard(lambda: log_dirs.main(line, connect=admin.connect))


def test_the_replicas_of_topics_in_the_order_of_java(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--topic-list", "orders,txn") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    rows = ",".join(
        f'{{"partition":"{name}","size":5,"offsetLag":0,"isFuture":false}}'
        for name in ("orders-0", "orders-1", "txn-0", "orders-2", "orders-3")
    )
    assert lines[2] == (
        f'{{"brokers":[{{"broker":1,"logDirs":[{{"partitions":[{rows}],"error":null,"logDir":"/a"}},'
        '{"partitions":[],"error":"org.apache.kafka.common.errors.KafkaStorageException","logDir":"/b"}]}],"version":1}'
    )


def test_a_broker_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--broker-list", "1,9") == 1
    expected = "ERROR: The given brokers do not exist from --broker-list: 9. Current existent brokers: 1\n"
    assert capsys.readouterr() == ("", expected)
