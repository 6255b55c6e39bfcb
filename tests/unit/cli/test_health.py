"""`moldau cluster health` against a scripted cluster in which things are not as they should be."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from moldau.cli.root import root
from moldau.client.connection import cluster
from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
from moldau.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from moldau.protocol.messages.describe_configs_request import DescribeConfigsRequest
from moldau.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from moldau.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.primitives import Message
from tests.unit.client.fake_network import FakeNetwork, ScriptedBroker

ADDRESS = ("localhost", 9092)

Partition = tuple[int, list[int], list[int]]  # leader, replicas, in sync


class Cluster:
    """Three brokers, one topic with min.insync.replicas=2."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.partitions: list[Partition] = [(1, [1, 2, 3], [1, 2, 3])]
        self.fenced: set[int] = set()
        self.leader = 1
        self.behind: set[int] = set()
        broker = ScriptedBroker()
        broker.on(MetadataRequest, self.metadata)
        broker.on(DescribeClusterRequest, self.describe)
        broker.on(DescribeQuorumRequest, self.quorum)
        broker.on(DescribeConfigsRequest, self.configs)
        monkeypatch.setattr(cluster, "socket_network", lambda config: FakeNetwork({ADDRESS: broker}, real_time=True))
        monkeypatch.delenv("MOLDAU_BOOTSTRAP_SERVER", raising=False)

    def metadata(self, request: Message, version: int) -> object:
        rows = [
            MetadataResponsePartition(partition_index=i, leader_id=leader, replica_nodes=replicas, isr_nodes=in_sync)
            for i, (leader, replicas, in_sync) in enumerate(self.partitions)
        ]
        topics = [MetadataResponseTopic(name="t", topic_id=bytes(range(16)), partitions=rows)]
        brokers = [MetadataResponseBroker(node_id=1, host=ADDRESS[0], port=ADDRESS[1])]
        return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=topics)

    def describe(self, request: Message, version: int) -> object:
        brokers = [DescribeClusterBroker(broker_id=i, host="h", port=i, is_fenced=i in self.fenced) for i in (1, 2, 3)]
        return DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=brokers)

    def quorum(self, request: Message, version: int) -> object:
        voters = [
            ReplicaState(replica_id=i, log_end_offset=9, last_caught_up_timestamp=0 if i in self.behind else 60_000)
            for i in (1, 2, 3)
        ]
        row = PartitionData(partition_index=0, leader_id=self.leader, leader_epoch=4, current_voters=voters)
        return DescribeQuorumResponse(topics=[TopicData(topic_name="__cluster_metadata", partitions=[row])])

    def configs(self, request: Message, version: int) -> object:
        entry = DescribeConfigsResourceResult(name="min.insync.replicas", value="2", config_source=1)
        return DescribeConfigsResponse(
            results=[DescribeConfigsResult(resource_type=2, resource_name="t", configs=[entry])]
        )

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(root, ["cluster", "health", *arguments], prog_name="moldau")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def found(world: Cluster, code: int = 3) -> dict[str, list[dict[str, int]]]:
    result = world.run("--format", "json")
    assert result.exit_code == code, result.output
    row: dict[str, list[dict[str, int]]] = json.loads(result.stdout)
    assert bool(row["healthy"]) is (code == 0)
    return row


def test_all_is_well(world: Cluster) -> None:
    assert found(world, 0)["under_replicated_partitions"] == []
    result = world.run()
    assert result.exit_code == 0 and result.stdout.startswith("The cluster is healthy.")


def test_partitions_are_told_by_what_is_wrong_with_them(world: Cluster) -> None:
    world.partitions = [
        (1, [1, 2, 3], [1, 2, 3]),
        (1, [1, 2, 3], [1, 2]),
        (1, [1, 2, 3], [1]),
        (-1, [1, 2, 3], []),
        (1, [1, 2, 3, 4], [1, 2, 3]),
    ]
    row = found(world)
    numbers = {
        name: [item["partition"] for item in row[f"{name}_partitions"]]
        for name in ("offline", "under_min_isr", "at_min_isr", "under_replicated")
    }
    assert numbers == {
        "offline": [3],
        "under_min_isr": [2],
        "at_min_isr": [1],
        "under_replicated": [1, 2, 3, 4],
    }
    text = world.run().stdout
    assert text.startswith("The cluster is not healthy.")
    states = {line.split()[1]: line.split("  ")[-1] for line in text.splitlines() if line.startswith("t ")}
    assert states == {"1": "at min ISR", "2": "under min ISR", "3": "offline", "4": "under replicated"}


def test_a_partition_that_has_all_its_replicas_is_not_at_its_minimum(world: Cluster) -> None:
    world.partitions = [(1, [1, 2], [1, 2]), (1, [1], [1])]
    found(world, 0)


def test_fenced_brokers_and_voters_that_fell_behind(world: Cluster) -> None:
    world.fenced = {2}
    world.behind = {3}
    row = found(world)
    assert (row["fenced_brokers"], row["voters_behind"]) == ([2], [3])
    assert "fenced: 2" in world.run().stdout


def test_no_controller(world: Cluster) -> None:
    world.leader = -1
    assert found(world)["controller"] == -1
