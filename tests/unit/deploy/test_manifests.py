"""The files under deploy/ fit together: every node they describe gets a configuration that works, and a quorum."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.container.settings import settings_of
from moldau.cli.server import parse_arguments
from moldau.config.broker_config import BrokerConfig
from moldau.config.unserved import check_served

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
HEALTH = ["/opt/kafka/bin/healthcheck"]


def load_all(name: str) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def configure(environment: dict[str, str]) -> BrokerConfig:
    config = BrokerConfig(settings_of(environment, False, "/data", "/secrets").values, warn=False)
    check_served(config)
    assert not config.unknown
    return config


def check_cluster(configs: list[BrokerConfig], hosts: list[str]) -> None:
    """Three nodes that know each other: one set of voters, each of them one of the nodes, at its controller's port."""
    assert len({repr(config.voters) for config in configs}) == 1
    assert [voter.id for voter in configs[0].voters] == [config.node_id for config in configs]
    for voter, config, host in zip(configs[0].voters, configs, hosts, strict=True):
        assert (voter.host, voter.port) == (host, config.controller_listeners()[0].port)
        assert config.get_int("min.insync.replicas") == 2
        for topic in ("default", "offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
            assert config.get_int(f"{topic}.replication.factor") == 3
    advertised = [(each.host, each.port) for config in configs for each in config.advertised()]
    assert len(set(advertised)) == len(advertised), "clients can tell the nodes apart"


def test_compose_has_three_nodes_that_find_each_other() -> None:
    (compose,) = load_all("compose.yaml")
    names = sorted(compose["services"])
    configs, data = [], set()
    for name in names:
        service = compose["services"][name]
        environment = {
            variable: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(value))
            for variable, value in service["environment"].items()
        }
        config = configure(environment)
        configs.append(config)
        assert service["read_only"] and service["tmpfs"] == ["/tmp"]
        ((volume, folder),) = [entry.split(":") for entry in service["volumes"]]
        assert config.log_dirs == [folder] and volume in compose["volumes"]
        data.add(volume)
        address, outside, inside = service["ports"][0].split(":")
        assert address == "127.0.0.1", "nothing is encrypted, so nobody from outside may come"
        assert ("localhost", int(outside)) in [(each.host, each.port) for each in config.advertised()]
        assert int(inside) in [each.port for each in config.broker_listeners()]
    assert len(data) == 3
    check_cluster(configs, names)


def test_the_stateful_set_has_three_nodes_that_find_each_other() -> None:
    (stateful,) = load_all("kubernetes/statefulset.yaml")
    spec = stateful["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    name, service = stateful["metadata"]["name"], spec["serviceName"]
    configs = []
    for index in range(spec["replicas"]):
        known = {
            "metadata.name": f"{name}-{index}",
            "metadata.namespace": "default",
            "metadata.labels['apps.kubernetes.io/pod-index']": str(index),
        }
        environment: dict[str, str] = {}
        for variable in container["env"]:
            text = variable.get("value") or known[variable["valueFrom"]["fieldRef"]["fieldPath"]]
            assert isinstance(text, str), "a number would be refused"
            for other, value in environment.items():
                text = text.replace(f"$({other})", value)
            environment[variable["name"]] = text
        configs.append(configure(environment))
    check_cluster(configs, [f"{name}-{index}.{service}" for index in range(3)])
    assert [each.host for each in configs[0].advertised()] == [f"{name}-0.{service}.default.svc"]

    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {
        "clients": configs[0].advertised()[0].port,
        "controllers": configs[0].controller_listeners()[0].port,
    }
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    claims = [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]]
    assert set(mounts) == {*claims, *(volume["name"] for volume in pod["volumes"])}
    # A volume of its own file system has lost+found in it; a folder below is the node's alone.
    assert configs[0].log_dirs[0].startswith(f"{mounts['data']}/")


def test_what_belongs_to_the_stateful_set_selects_its_pods() -> None:
    (stateful,) = load_all("kubernetes/statefulset.yaml")
    services = {each["metadata"]["name"]: each["spec"] for each in load_all("kubernetes/services.yaml")}
    (budget,) = load_all("kubernetes/disruption-budget.yaml")
    spec = stateful["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == budget["spec"]["selector"]["matchLabels"]
    assert all(service["selector"] == labels for service in services.values())
    headless = services[spec["serviceName"]]
    assert headless["clusterIP"] == "None"
    assert headless["publishNotReadyAddresses"], "controllers look for each other before they are ready"
    assert spec["podManagementPolicy"] == "Parallel"
    assert budget["spec"]["maxUnavailable"] == 1
    (names,) = load_all("kubernetes/kustomization.yaml")
    assert sorted(names["resources"]) == ["disruption-budget.yaml", "services.yaml", "statefulset.yaml"]


def test_the_pod_is_confined_and_watched() -> None:
    (stateful,) = load_all("kubernetes/statefulset.yaml")
    pod = stateful["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["enableServiceLinks"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["startupProbe"]["exec"]["command"] == container["readinessProbe"]["exec"]["command"] == HEALTH
    assert container["livenessProbe"]["tcpSocket"]["port"] in [port["name"] for port in container["ports"]]
    assert (DEPLOY / "container/bin/healthcheck").exists()


def test_kubernetes_schemas_accept_the_manifests() -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    for name in ("services", "statefulset", "disruption-budget"):
        for document in load_all(f"kubernetes/{name}.yaml"):
            validator.validate(document, validator.latest_version(), strict=True)


def unit() -> dict[str, list[str]]:
    settings: dict[str, list[str]] = {}
    for line in (DEPLOY / "moldau.service").read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            settings.setdefault(name, []).append(value)
    return settings


def test_the_unit_starts_a_server_that_tells_when_it_is_ready() -> None:
    settings = unit()
    assert settings["Type"] == ["notify"]
    command, server, *arguments = settings["ExecStart"][0].split()
    assert (command, server) == ("/opt/moldau/bin/moldau", "server")
    assert parse_arguments(arguments).file == "/etc/moldau/server.properties"
    assert settings["TimeoutStartSec"] == ["infinity"]
    assert int(settings["TimeoutStopSec"][0]) > 40, "a node may take 40 s to hand over"
    assert int(settings["LimitNOFILE"][0]) >= 1 << 20


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "moldau.service").read_text().replace("/opt/moldau/bin/moldau", sys.executable)
    (tmp_path / "moldau.service").write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "moldau.service")]
    verified = subprocess.run(command, capture_output=True, text=True)
    if "Failed to initialize manager" in verified.stderr:
        pytest.skip("systemd-analyze does not work here")
    assert (verified.returncode, verified.stderr) == (0, "")


def test_scripts_that_are_executed_are_executable() -> None:
    for folder in ("apache", "confluent", "bin"):
        for path in (DEPLOY / "container" / folder).iterdir():
            assert bool(path.stat().st_mode & 0o111) == (path.name != "bash-config"), path
            subprocess.run(["bash", "-n", str(path)], check=True)
