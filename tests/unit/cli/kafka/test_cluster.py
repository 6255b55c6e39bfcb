"""kafka-cluster: its id, its table and its errors, against a scripted admin client."""

from __future__ import annotations

import pytest

from moldau.cli.kafka import cluster
from moldau.cli.kafka.frame import guard
from moldau.client.admin.cluster import ClusterDescription
from moldau.client.connection.cluster import Broker
from moldau.client.errors import UnsupportedVersionError, error_for
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin

BROKERS = [Broker(1, "127.0.0.1", 19092, None), Broker(2, "127.0.0.1", 19093, "r1")]


def run(line: str, **answers: object) -> int:
    admin = FakeAdmin(describe_cluster=ClusterDescription("RmRwaD1hQzOeQzJ0qaytQw", 1, BROKERS, {2}), **answers)
    return guard(lambda: cluster.main(line.split(), connect=admin.connect))


def test_the_id_of_the_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cluster-id --bootstrap-server h:1") == 0
    assert capsys.readouterr().out == "Cluster ID: RmRwaD1hQzOeQzJ0qaytQw\n"


def test_the_table_of_brokers_and_of_controllers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list-endpoints -b h:1") == 0
    assert capsys.readouterr().out == (
        "ID         HOST      PORT       RACK       STATE      ENDPOINT_TYPE  \n"
        "1          127.0.0.1 19092      null       unfenced   broker         \n"
        "2          127.0.0.1 19093      r1         fenced     broker         \n"
    )
    assert run("list-endpoints -C h:1") == 0
    assert capsys.readouterr().out == (
        "ID         HOST      PORT       RACK       ENDPOINT_TYPE  \n"
        "1          127.0.0.1 19092      null       controller     \n"
        "2          127.0.0.1 19093      r1         controller     \n"
    )


def test_a_broker_that_is_not_registered_cannot_leave(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = error_for(errors.BROKER_ID_NOT_REGISTERED, "Broker ID 9 is not currently registered")
    assert run("unregister --bootstrap-server h:1 --id 9", unregister_broker=refusal) == 1
    said = "org.apache.kafka.common.errors.BrokerIdNotRegisteredException: Broker ID 9 is not currently registered"
    log, *lines = capsys.readouterr().err.splitlines()
    assert "Unregister broker request for broker ID 9 failed: Broker ID 9 is not currently registered" in log
    assert lines == [said, f"java.util.concurrent.ExecutionException: {said}", f"Caused by: {said}", ""]


def test_a_cluster_without_the_api_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("unregister -b h:1 -i 9", unregister_broker=UnsupportedVersionError("no")) == 0
    assert capsys.readouterr().out == "The target cluster does not support the broker unregistration API.\n"


@pytest.mark.parametrize("line", ["", "nope", "cluster-id", "unregister -b h:1"])
def test_wrong_command_lines_end_with_the_usage(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line) == 1
    assert capsys.readouterr().err.startswith("usage: kafka-cluster")
