"""Moldau and Apache Kafka answer questions about features, the quorum and log directories alike."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.protocol.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from moldau.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tests.interop.batches import batch
from tests.interop.conftest import Same
from tests.interop.peers import Peer
from tests.interop.wire import CLOSED, plain
from tests.pace import patience_ms

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def update(
    peer: Peer, *rows: tuple[str, int, int], version: int = 2, validate: bool = True, controller: bool = False
) -> Any:
    if version == 0:
        keys = [FeatureUpdateKey(name, level, kind != UPGRADE) for name, level, kind in rows]
        request = UpdateFeaturesRequest(timeout_ms=patience_ms(10_000), feature_updates=keys)
    else:
        keys = [FeatureUpdateKey(name, level, upgrade_type=kind) for name, level, kind in rows]
        request = UpdateFeaturesRequest(timeout_ms=patience_ms(10_000), feature_updates=keys, validate_only=validate)
    answer = peer.ask(request, version, controller=controller)
    return answer if answer == CLOSED else plain(answer)


@pytest.mark.parametrize(
    "rows",
    [
        [("metadata.version", 31, UPGRADE)],
        [("metadata.version", 30, UPGRADE)],
        [("metadata.version", 6, SAFE_DOWNGRADE)],
        [("metadata.version", 29, UPGRADE)],
        [("metadata.version", 0, SAFE_DOWNGRADE)],
        [("no.such.feature", 1, UPGRADE)],
        [("group.version", 2, UPGRADE)],
        [("group.version", 0, UPGRADE)],
        [("group.version", 0, SAFE_DOWNGRADE)],
        [("group.version", 1, UPGRADE)],
        [("transaction.version", -1, SAFE_DOWNGRADE)],
        [("group.version", 1, 9)],
        [("", 1, UPGRADE)],
        [("group.version", 0, SAFE_DOWNGRADE), ("no.such.feature", 1, UPGRADE)],
        [],
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_updates_of_features_are_checked(same: Same, rows: list[tuple[str, int, int]], version: int) -> None:
    same(lambda peer: update(peer, *rows, version=version))


def test_an_update_that_is_refused_in_the_first_version(same: Same) -> None:
    same(lambda peer: update(peer, ("no.such.feature", 1, UPGRADE), version=0))


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_described(same: Same, version: int) -> None:
    """Leader, voters and observers; offsets and times are only told apart from none."""
    hidden = {
        "high_watermark",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
        "leader_epoch",
        "port",
    }

    def ask(peer: Peer, topic: str, partitions: list[int], controller: bool = False) -> Any:
        rows = [TopicData(topic, [PartitionData(index) for index in partitions])]
        return plain(peer.ask(DescribeQuorumRequest(topics=rows), version, controller=controller), hidden)

    def scenario(peer: Peer) -> Any:
        return [
            ask(peer, "__cluster_metadata", [0]),
            ask(peer, "__cluster_metadata", [0], controller=True),
            ask(peer, "__cluster_metadata", [1]),
            ask(peer, "another", [0]),
            plain(peer.ask(DescribeQuorumRequest(topics=[]), version)),
        ]

    same(scenario)


@pytest.mark.parametrize("version", range(1, 6))
def test_log_directories_are_described(same: Same, topic: str, version: int) -> None:
    hidden = {"log_dir", "total_bytes", "usable_bytes"}

    def scenario(peer: Peer) -> Any:
        peer.create(topic, 2)
        peer.produce(topic, batch([b"x" * 1000]), partition=1)
        answers = []
        for asked in (
            [DescribableLogDirTopic(topic, [0, 1])],
            [DescribableLogDirTopic(topic, [1, 5])],
            [DescribableLogDirTopic("missing", [0])],
            [],
        ):
            answer = plain(peer.ask(DescribeLogDirsRequest(topics=asked), version), hidden)
            for row in answer["results"]:
                for found in row["topics"]:
                    found["partitions"] = sorted(found["partitions"], key=lambda item: int(item["partition_index"]))
            answers.append(answer)
        everything = peer.ask(DescribeLogDirsRequest(topics=None), version)
        names = {found.name for row in everything.results for found in row.topics}
        return answers, topic in names, "__cluster_metadata" in names

    same(scenario)
