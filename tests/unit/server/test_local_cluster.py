"""The plan of a cluster on one machine: roles, ports and settings, and that a cluster with data keeps its shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.server.config_file import built_in_values
from moldau.server.local_cluster import LocalCluster, plan_cluster, read_plan, write_files

CLUSTER_ID = "M" + "A" * 21


def plan(folder: Path, brokers: int | None = None, controllers: int | None = None, port: int = 9092) -> LocalCluster:
    return plan_cluster(folder, brokers, controllers, "127.0.0.1", port, CLUSTER_ID)


@pytest.mark.parametrize(("brokers", "voters"), [(1, 1), (2, 1), (3, 3), (4, 3), (7, 3)])
def test_so_many_of_the_brokers_are_controllers_as_survive_most_failures(
    tmp_path: Path, brokers: int, voters: int
) -> None:
    cluster = plan(tmp_path, brokers)
    assert len(cluster.brokers()) == brokers
    assert [node.node_id for node in cluster.controllers()] == list(range(1, voters + 1))


def test_separate_controllers_have_ids_and_ports_of_their_own(tmp_path: Path) -> None:
    cluster = plan(tmp_path, 2, 3)
    assert [(node.name, node.roles) for node in cluster.nodes] == [
        ("node-1", "broker"),
        ("node-2", "broker"),
        ("controller-101", "controller"),
        ("controller-102", "controller"),
        ("controller-103", "controller"),
    ]
    assert [node.port for node in cluster.nodes] == [9092, 9093, 0, 0, 0]
    assert [node.controller_port for node in cluster.controllers()] == [19092, 19093, 19094]


@pytest.mark.parametrize(("brokers", "controllers"), [(1, None), (3, None), (5, None), (2, 1), (3, 3)])
def test_every_node_gets_settings_that_a_server_takes(tmp_path: Path, brokers: int, controllers: int | None) -> None:
    cluster = plan(tmp_path, brokers, controllers)
    for node in cluster.nodes:
        config = BrokerConfig(cluster.values(node))
        assert (config.is_broker, config.is_controller) == (node.is_broker, node.is_controller)
        assert len(config.voters) == len(cluster.controllers())
        assert config.get_int("default.replication.factor") == min(3, brokers)
        assert config.get_int("min.insync.replicas") == (2 if brokers >= 3 else 1)
        assert (config.rack is not None) == node.is_broker


def test_a_name_for_clients_elsewhere_makes_brokers_listen_everywhere_and_controllers_not(tmp_path: Path) -> None:
    cluster = plan_cluster(tmp_path, 1, None, "kafka.example.org", 9092, CLUSTER_ID)
    values = cluster.values(cluster.nodes[0])
    assert values["listeners"] == "PLAINTEXT://:9092,CONTROLLER://127.0.0.1:19092"
    assert values["advertised.listeners"] == "PLAINTEXT://kafka.example.org:9092"
    assert cluster.bootstrap_servers == "kafka.example.org:9092"


def test_a_cluster_with_data_grows_by_brokers_and_keeps_everything_else(tmp_path: Path) -> None:
    write_files(plan(tmp_path, 1, port=0), [])
    first = plan(tmp_path)
    assert len(first.nodes) == 1
    grown = plan(tmp_path, 3)
    assert grown.nodes[0] == first.nodes[0]
    assert [node.roles for node in grown.nodes] == ["broker,controller", "broker", "broker"], "its voters never change"
    assert len({node.port for node in grown.nodes}) == 3
    with pytest.raises(ConfigError, match="separate controllers"):
        plan(tmp_path, 1, 3)
    write_files(grown, [])
    with pytest.raises(ConfigError, match="has 3 brokers"):
        plan(tmp_path, 2)


def test_files_are_formatted_once_and_settings_of_the_user_win(tmp_path: Path) -> None:
    cluster = plan(tmp_path, 2, port=0)
    write_files(cluster, ["num.partitions=7"])
    written = [(cluster.data_directory(node) / "meta.properties").read_text() for node in cluster.nodes]
    assert all(f"cluster.id={CLUSTER_ID}" in text for text in written)
    write_files(cluster, ["num.partitions=8"])
    assert [(cluster.data_directory(node) / "meta.properties").read_text() for node in cluster.nodes] == written
    assert "num.partitions=8" in cluster.properties_file(cluster.nodes[1]).read_text()


def test_a_damaged_plan_is_not_replaced_by_another(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"nodes": []}')
    with pytest.raises(ConfigError, match="damaged"):
        read_plan(tmp_path, "127.0.0.1")


def test_a_group_need_not_wait_for_more_members(tmp_path: Path) -> None:
    """Who starts nodes by hand starts the members of a group by hand too."""
    key = "group.initial.rebalance.delay.ms"
    assert [plan(tmp_path, 1).values(node)[key] for node in plan(tmp_path, 1).nodes] == ["0"]
    assert built_in_values()[key] == "0"
