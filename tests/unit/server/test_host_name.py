"""What other nodes are told where a listener names no host."""

from __future__ import annotations

import socket

import pytest

from moldau.config.broker_config import BrokerConfig
from moldau.server.process import host_name_for


def config(listeners: str = "PLAINTEXT://:9092,CONTROLLER://:9093", **changes: str) -> BrokerConfig:
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@one:9093,2@two:9093",
    }
    values.update({name.replace("_", "."): text for name, text in changes.items()})
    return BrokerConfig({name: text for name, text in values.items() if text}, warn=False)


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda: "one.example")
    monkeypatch.setattr(socket, "gethostname", lambda: "one")


def test_one_of_several_nodes_is_called_by_the_machines_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert host_name_for(config()) == "one.example"
    broker = {"process_roles": "broker", "controller_quorum_voters": "2@two:9093"}
    assert host_name_for(config("PLAINTEXT://:9092", **broker)) == "one.example"
    monkeypatch.setattr(socket, "getfqdn", lambda: "localhost.localdomain")
    assert host_name_for(config()) == "one"


def test_nobody_asks_a_name_server_for_a_node_that_is_alone_or_names_its_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise AssertionError("asked")

    monkeypatch.setattr(socket, "getfqdn", fail)
    assert host_name_for(config(controller_quorum_voters="1@one:9093")) == "localhost"
    alone = {"controller_quorum_voters": "", "controller_quorum_bootstrap_servers": "localhost:9093"}
    assert host_name_for(config(**alone)) == "localhost"
    assert host_name_for(config("PLAINTEXT://a:9092,CONTROLLER://a:9093")) == "localhost"
