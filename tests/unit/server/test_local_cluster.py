"""The plan of a cluster on one machine: roles, ports and settings, and that a cluster with data keeps its shape."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.config.unserved import check_served
from moldau.security.der import read_certificate
from moldau.security.exposure.check import check_exposure
from moldau.security.exposure.listeners import view_listeners
from moldau.security.keystores import pem_certificates
from moldau.security.sasl_settings import check_logins
from moldau.server.config_file import built_in_values, read_values
from moldau.server.local_cluster import LocalCluster, lock_cluster, plan_cluster, read_plan, write_files
from moldau.server.secured_cluster import ClusterSecurity
from moldau.server.security_facts import gather_facts
from moldau.server.signing import SigningError, find_signer

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


# Secured clusters


def secured(folder: Path, brokers: int = 3, controllers: int | None = None, host: str = "127.0.0.1") -> LocalCluster:
    return plan_cluster(folder, brokers, controllers, host, 9092, CLUSTER_ID, True)


@pytest.fixture
def signs() -> None:
    try:
        find_signer()
    except SigningError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("brokers", "controllers"), [(1, None), (3, None), (2, 1), (3, 3)])
def test_every_node_of_a_secured_cluster_asks_who_is_there(
    tmp_path: Path, brokers: int, controllers: int | None
) -> None:
    cluster = secured(tmp_path, brokers, controllers)
    for node in cluster.nodes:
        config = BrokerConfig(cluster.values(node), warn=False)
        check_served(config)
        check_logins(config)
        assert {view.name for view in view_listeners(config) if view.is_anonymous or not view.is_encrypted} == set()
        assert len(config.listeners) == 2 * node.is_broker + node.is_controller
    ports = [port for node in cluster.nodes for port in (node.port, node.controller_port, node.internal_port) if port]
    assert len(set(ports)) == len(ports) == 2 * brokers + len(cluster.controllers())


def test_only_clients_can_come_from_elsewhere(tmp_path: Path) -> None:
    cluster = secured(tmp_path, 1, host="kafka.test")
    values = cluster.values(cluster.nodes[0])
    assert values["listeners"] == "CLIENTS://:9092,INTERNAL://127.0.0.1:29092,CONTROLLER://127.0.0.1:19092"
    assert values["advertised.listeners"] == "CLIENTS://kafka.test:9092,INTERNAL://127.0.0.1:29092"


@pytest.mark.parametrize("host", ["127.0.0.1", "kafka.test"])
def test_our_own_check_finds_nothing_bad_in_a_secured_cluster(tmp_path: Path, signs: None, host: str) -> None:
    cluster = secured(tmp_path / "data", 2, 1, host)
    security = ClusterSecurity(cluster.directory)
    security.prepare(host)
    write_files(cluster, [], security.first_users())
    for node in cluster.nodes:
        path = str(cluster.properties_file(node))
        config = BrokerConfig(read_values(path, environment={}), warn=False)
        found = check_exposure(config, gather_facts(config, path), int(time.time()))
        assert {finding.severity for finding in found} <= {"note"}, found


@pytest.mark.parametrize("is_there", [False, True])
def test_only_folders_of_its_own_are_closed_to_others(tmp_path: Path, signs: None, is_there: bool) -> None:
    """A folder that somebody has made stays open to whom it was; what is put into it is closed."""
    folder = tmp_path / "data"
    if is_there:
        folder.mkdir()
        folder.chmod(0o755)
    old = os.umask(0o022)
    try:
        cluster, security = secured(folder, 1), ClusterSecurity(folder)
        lock_cluster(folder, is_secured=True)
        security.prepare(cluster.host)
        write_files(cluster, [], security.first_users())
    finally:
        os.umask(old)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir()) if path.is_dir()}
    assert modes.pop(folder) == (0o755 if is_there else 0o700)
    assert set(modes) == {security.directory, cluster.properties_file(cluster.nodes[0]).parent}
    assert set(modes.values()) == {0o700}


def test_a_second_start_keeps_passwords_authority_and_ports(tmp_path: Path, signs: None) -> None:
    first, security = secured(tmp_path / "data", 1), ClusterSecurity(tmp_path / "data")
    security.prepare(first.host)
    write_files(first, [], security.first_users())
    kept = {file.name: file.read_bytes() for file in security.directory.iterdir()}
    again = ClusterSecurity(tmp_path / "data")
    again.prepare(first.host)
    assert {file.name: file.read_bytes() for file in again.directory.iterdir()} == kept
    assert again.first_users() == security.first_users()
    assert secured(tmp_path / "data", 1).nodes == first.nodes
    assert len(security.state.admin_password) >= 32
    assert security.state.admin_password != security.state.user_password
    assert security.state.admin_password not in repr(security.state)


def test_a_name_that_clients_are_told_gets_into_the_certificate(tmp_path: Path, signs: None) -> None:
    security = ClusterSecurity(tmp_path / "data")
    security.prepare("127.0.0.1")
    authority = security.authority.read_bytes()
    security.prepare("kafka.test")
    text = (security.directory / "moldau-node.crt").read_text()
    assert {"kafka.test", "localhost"} <= set(read_certificate(pem_certificates(text, "")[0]).host_names())
    assert security.authority.read_bytes() == authority


def test_a_cluster_stays_secured_or_open(tmp_path: Path) -> None:
    write_files(plan(tmp_path / "open", 1), [])
    with pytest.raises(ConfigError, match="made without --secure and stays so"):
        secured(tmp_path / "open", 1)
    write_files(secured(tmp_path / "closed", 1), [])
    with pytest.raises(ConfigError, match="is secured: start it with --secure"):
        plan(tmp_path / "closed", 1)


def test_the_plan_of_an_open_cluster_is_as_it_was(tmp_path: Path) -> None:
    """Older versions go on with it."""
    write_files(plan(tmp_path, 1), [])
    stored = json.loads((tmp_path / "cluster.json").read_text())
    assert set(stored) == {"cluster_id", "nodes"}
    assert set(stored["nodes"][0]) == {"node_id", "is_broker", "is_controller", "port", "controller_port"}


def test_a_damaged_state_is_not_replaced_by_other_passwords(tmp_path: Path, signs: None) -> None:
    security = ClusterSecurity(tmp_path / "data")
    security.prepare("127.0.0.1")
    (security.directory / "state.json").write_text("{")
    with pytest.raises(ConfigError, match="is damaged"):
        ClusterSecurity(tmp_path / "data").prepare("127.0.0.1")
