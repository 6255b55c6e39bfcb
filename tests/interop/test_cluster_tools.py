"""The tools of a cluster against three nodes: ours and the real ones say the same while replicas move and nodes fail.

What changes something is done by each to a topic of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from moldau.cli.root import root
from moldau.client import Admin, NewTopic, Producer
from moldau.client.connection.cluster import PartitionMetadata
from tests.interop import golden
from tests.interop.conftest import require_kafka
from tests.interop.golden import Done
from tests.interop.kafka_oracle import TOOL_CLASSES, KafkaNode, java_command
from tests.interop.nodes import MoldauNode, Node, free_ports
from tests.pace import patience

HOST = "127.0.0.1"
SECONDS = patience(40)
# So slow that a move goes on for as long as a test looks at it.
SLOW = "2000"


class ThreeNodes:
    """Three combined nodes; the third can be stopped, the first is asked."""

    def __init__(self, folder: Path, kind: type[Node]) -> None:
        ports = free_ports(3)
        voters = ",".join(f"{number}@{HOST}:{port}" for number, port in enumerate(ports, 1))
        self.nodes = [self._node(folder, kind, number, ports[number - 1], voters) for number in (1, 2, 3)]
        self.bootstrap = self.nodes[0].bootstrap
        self.folder = folder

    def _node(self, folder: Path, kind: type[Node], number: int, port: int, voters: str) -> Node:
        node = kind(folder / f"node{number}")
        node.controller_port = port
        node.write_properties(
            {
                "node.id": str(number),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{HOST}:{port}",
                "offsets.topic.num.partitions": "1",
                "broker.session.timeout.ms": "6000",
                "auto.leader.rebalance.enable": "false",
            }
        )
        return node

    def start(self) -> None:
        for node in self.nodes:
            node.cluster_id = self.nodes[0].cluster_id
            node.format()
        for node in self.nodes:
            node.start_process()
        for node in self.nodes:
            node.wait_until_ready()
        self.wait_for(lambda admin: len(admin.describe_cluster().brokers) == 3)

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()

    def wait_for(self, condition: Callable[[Admin], object]) -> None:
        deadline = time.monotonic() + SECONDS
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            while not condition(admin):
                assert time.monotonic() < deadline, "the cluster does not come to where it should"
                time.sleep(0.2)

    def fill(self, topic: str, assignment: list[list[int]], count: int = 300, **configs: str) -> None:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            settings = {name.replace("_", "."): value for name, value in configs.items()}
            admin.create_topics([NewTopic(topic, configs=settings, assignment=assignment)])[topic].get()
        with Producer(bootstrap_servers=self.bootstrap, acks="all") as producer:
            for number in range(count):
                producer.send(topic, b"%d" % number * 500, partition=number % len(assignment))
            producer.flush()


@pytest.fixture(scope="module", params=[KafkaNode, MoldauNode], ids=["kafka", "moldau"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodes]:
    require_kafka()
    nodes = ThreeNodes(tmp_path_factory.mktemp("three"), request.param)
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.stop()


class Tools:
    """Runs command lines with the real tools or with ours; what differs from run to run is masked."""

    def __init__(self, cluster: ThreeNodes, folder: Path, run: golden.Runner) -> None:
        self.cluster = cluster
        self.folder = folder
        self._run = run

    def run(self, tool: str, *arguments: str) -> Done:
        done = self._run(tool, ["--bootstrap-server", self.cluster.bootstrap, *arguments], "", self.folder)
        return Done(done.code, self._mask(done.out), self._mask(done.err))

    def _mask(self, text: str) -> str:
        text = golden.mask(text, self.cluster.nodes[0], self.folder)
        text = re.sub(r"TopicId: \S+", "TopicId: ID", text).replace(str(self.cluster.folder), "$FOLDER")
        text = re.sub(r"(MaxFollowerLag\w*: +)-?\d+", r"\1N", text)
        if "Proposed partition" in text:
            # Where to begin is left to chance; how many replicas there are is not.
            head, _, plan = text.partition("Proposed partition reassignment configuration\n")
            rows = [(row["partition"], len(set(row["replicas"]))) for row in json.loads(plan)["partitions"]]
            text = f"{head}{rows}\n"
        return text

    def write(self, name: str, content: object) -> None:
        (self.folder / name).write_text(json.dumps(content))


@pytest.fixture
def sides(cluster: ThreeNodes, tmp_path: Path) -> Iterator[list[Tools]]:
    """The real tools, then ours."""
    real = golden.RealTools(tmp_path)
    yield [Tools(cluster, tmp_path, real.run), Tools(cluster, tmp_path, golden.run_ours)]
    real.close()


def same(sides: list[Tools], tool: str, *arguments: str, code: int = 0) -> str:
    """What both print of something that they do not change."""
    real, ours = (side.run(tool, *arguments) for side in sides)
    assert ours == real
    assert real.code == code, real
    return real.out + real.err


def plan(topic: str, *rows: list[int]) -> dict[str, object]:
    partitions = [{"topic": topic, "partition": index, "replicas": row} for index, row in enumerate(rows)]
    return {"version": 1, "partitions": partitions}


def reassign(cluster: ThreeNodes, tools: Tools, topic: str) -> list[Done]:
    """From a plan to its end, with everything that can be asked on the way."""
    cluster.fill(topic, [[1, 2], [2, 3]], 8000)
    tools.write("topics.json", {"version": 1, "topics": [{"topic": topic}]})
    tools.write("plan.json", plan(topic, [3, 1], [2, 1]))
    tools.write("more.json", plan(topic, [3, 1], [1, 2, 3]))
    seen = []

    def run(*arguments: str, tool: str = "reassign-partitions", code: int = 0) -> str:
        done = tools.run(tool, *arguments)
        assert done.code == code, done
        seen.append(Done(code, done.out.replace(topic, "NAME"), done.err))
        return seen[-1].out

    generate = ("--generate", "--topics-to-move-json-file", "topics.json", "--broker-list")
    execute = ("--execute", "--reassignment-json-file")
    verify = ("--verify", "--reassignment-json-file", "plan.json")
    assert "[(0, 2), (1, 2)]" in run(*generate, "1,2,3")
    run(*generate, "3", code=1)
    tools.write("grow.json", plan(topic, [1, 2, 3], [2, 3, 1]))
    run(*execute, "grow.json", "--disallow-replication-factor-change", code=1)
    run(*execute, "plan.json", "--throttle", SLOW, "--disallow-replication-factor-change")
    listed = run("--list").splitlines()
    assert len(listed) == 3 and "adding: 3. removing: 2." in listed[1]
    assert run(*verify).count("is still in progress.") == 2
    run(*execute, "plan.json", code=1)
    run(*execute, "more.json", "--additional", "--throttle", SLOW)
    run("--describe", "--topic", topic, tool="topics")
    run("--describe", "--entity-type", "topics", "--entity-name", topic, tool="configs")
    assert "Successfully cancelled partition reassignments for: NAME-0,NAME-1\n" in run(
        "--cancel", "--reassignment-json-file", "more.json"
    )
    assert "No partition reassignments found." in run("--list")
    run(*verify)
    run(*execute, "plan.json", "--throttle", "100000000")
    cluster.wait_for(lambda admin: not admin.list_partition_reassignments())
    assert run(*verify).count("is completed.") == 2
    described = ("--describe", "--entity-type", "topics", "--entity-name", topic)
    # The broker that is asked hears of the throttle's end a moment later.
    cluster.wait_for(lambda _: "throttled" not in tools.run("configs", *described).out)
    run(*described, tool="configs")
    run("--describe", "--topic", topic, tool="topics")
    return seen


def test_a_reassignment_from_plan_to_end(cluster: ThreeNodes, sides: list[Tools]) -> None:
    real, ours = (reassign(cluster, side, f"moved-{number}") for number, side in enumerate(sides))
    for mine, theirs in zip(ours, real, strict=True):
        assert mine == theirs


def test_a_node_that_is_down_is_seen_by_all_views(cluster: ThreeNodes, sides: list[Tools]) -> None:
    cluster.fill("whole", [[1, 2, 3]], 10)
    cluster.fill("short", [[3, 1]], 10, min_insync_replicas="2")
    cluster.fill("scarce", [[3, 1, 2]], 10, min_insync_replicas="2")
    cluster.fill("alone", [[3]], 10)
    third = cluster.nodes[2]
    third.stop()
    cluster.wait_for(lambda admin: first_partition(admin, "alone").leader < 0)
    views = {
        "--under-replicated-partitions": {"whole", "short", "scarce", "alone"},
        "--under-min-isr-partitions": {"short", "alone"},
        "--at-min-isr-partitions": {"scarce"},
        "--unavailable-partitions": {"alone"},
    }
    for view, names in views.items():
        said = same(sides, "topics", "--describe", view)
        seen = set(re.findall(r"Topic: (whole|short|scarce|alone)\b", said))
        assert seen == names, view
    elect = ("--election-type", "preferred", "--topic")
    same(sides, "leader-election", *elect, "short", "--partition", "0", code=1)
    same(sides, "leader-election", "--election-type", "unclean", "--topic", "alone", "--partition", "0", code=1)
    same(sides, "metadata-quorum", "describe", "--status")
    third.start()
    cluster.wait_for(
        lambda admin: len(admin.describe_topics(["short"])["short"].get().partitions[0].in_sync_replicas) == 2
    )
    for side, topic in zip(sides, ("short", "scarce"), strict=True):
        cluster.wait_for(partial(is_in_sync, topic, 3))
        done = side.run("leader-election", *elect, topic, "--partition", "0")
        sentence = f"Successfully completed leader election (PREFERRED) for partitions {topic}-0\n"
        assert done == Done(0, sentence, "")
    already = same(sides, "leader-election", *elect, "short", "--partition", "0")
    assert already == "Valid replica already elected for partitions short-0\n"
    cluster.wait_for(partial(is_in_sync, "whole", 3))


def first_partition(admin: Admin, topic: str) -> PartitionMetadata:
    return admin.describe_topics([topic])[topic].get().partitions[0]


def is_in_sync(topic: str, broker: int, admin: Admin) -> bool:
    return broker in first_partition(admin, topic).in_sync_replicas


def test_replicas_are_compared(cluster: ThreeNodes) -> None:
    """The real tool and ours, each until it has compared everything."""
    cluster.fill("compared", [[1, 2, 3], [2, 3, 1]], 50)
    flags = ["--broker-list", cluster.bootstrap, "--topics-include", "compared", "--report-interval-ms", "500"]
    flags += ["--time", "-2", "--max-wait-ms", "200"]
    for command in (
        java_command(TOOL_CLASSES["replica-verification"], *flags),
        [*MoldauNode.command(), "kafka-replica-verification", *flags],
    ):
        said = run_for_a_while(command, ": max lag is 0 for partition compared-")
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}: verification process is started\n", said)
        last = said.splitlines()[-1]
        assert re.fullmatch(r"[\d :,-]+: max lag is 0 for partition compared-\d at offset 25 among 2 partitions", last)


def run_for_a_while(command: list[str], awaited: str) -> str:
    """The output of a command that never ends, until it has said something."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    said = ""
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        said += line
        if awaited in line:
            break
    process.kill()
    timer.cancel()
    errors = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    process.wait()
    assert awaited in said, said + errors
    return said


# The commands people like, against the same cluster.


def ours(cluster: ThreeNodes, *arguments: str, code: int = 0) -> str:
    from click.testing import CliRunner

    result = CliRunner().invoke(root, [*arguments, "-b", cluster.bootstrap], prog_name="moldau")
    assert result.exit_code == code, result.output
    return result.stdout


def test_partitions_are_moved_and_led_by_moldau_partition(cluster: ThreeNodes) -> None:
    cluster.fill("liked", [[1, 2], [2, 3]], 8000)
    planned = json.loads(
        ours(cluster, "partition", "reassign", "liked", "--brokers", "1,2,3", "--dry-run", "--format", "json")
    )
    assert [len(set(row["replicas"])) for row in planned["partitions"]] == [2, 2]
    rows = json.loads(ours(cluster, "partition", "reassign", "liked:0", "--to", "3,1", "--format", "json"))
    assert rows == [{"topic": "liked", "partition": 0, "from": [1, 2], "to": [3, 1], "done": True}]
    assert ours(cluster, "partition", "reassign", "liked:0", "--to", "3,1") == "Nothing has to move.\n"
    (row, _) = json.loads(ours(cluster, "partition", "describe", "liked", "--format", "json"))
    assert (row["replicas"], sorted(row["in_sync_replicas"])) == ([3, 1], [1, 3])
    if row["state"] == "not-preferred":
        assert ours(cluster, "partition", "elect-leader", "liked:0") == "Partition liked-0 is led by 3 now.\n"
    (row,) = json.loads(ours(cluster, "partition", "describe", "liked:0", "--only", "ok", "--format", "json"))
    assert row["leader"] == 3
    assert "already" in ours(cluster, "partition", "elect-leader", "liked")
    started = ours(cluster, "partition", "reassign", "liked:1", "--to", "1,2", "--throttle", SLOW, "--no-wait")
    assert started.startswith("Started to move 1 partition;")
    (row,) = json.loads(ours(cluster, "partition", "describe", "--only", "moving", "--format", "json"))
    assert (row["topic"], row["adding_replicas"], row["removing_replicas"], row["state"]) == (
        "liked",
        [1],
        [3],
        "moving",
    )
    assert ours(cluster, "partition", "reassign", "liked", "--cancel") == "Called off 1 move.\n"
    assert ours(cluster, "partition", "reassign", "liked", "--cancel") == "Nothing is being moved.\n"
    assert "There is no broker 9" in _error(cluster, "partition", "reassign", "liked", "--to", "9")


def _error(cluster: ThreeNodes, *arguments: str) -> str:
    from click.testing import CliRunner

    result = CliRunner().invoke(root, [*arguments, "-b", cluster.bootstrap], prog_name="moldau")
    assert result.exit_code == 1
    return result.stderr


def test_the_quorum_is_described(cluster: ThreeNodes) -> None:
    quorum = json.loads(ours(cluster, "quorum", "describe", "--format", "json"))
    assert sorted(row["id"] for row in quorum["replicas"]) == [1, 2, 3]
    assert sorted(row["role"] for row in quorum["replicas"]) == ["leader", "voter", "voter"]
    text = ours(cluster, "quorum", "describe")
    assert "votes needed" in text and "2 of 3" in text
    assert json.loads(ours(cluster, "cluster", "health", "--format", "json"))["healthy"]
