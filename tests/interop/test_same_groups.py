"""Moldau and Apache Kafka find coordinators, keep offsets, and list, describe and delete groups alike."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.interop.conftest import Same
from tests.interop.group_offsets import Commits, commit, fetch, find_coordinator, new_group, stored_records
from tests.interop.peers import Peer
from tests.interop.wire import plain
from tests.pace import patience_ms, wait_until


@pytest.fixture
def group() -> str:
    return new_group()


# FindCoordinator


@pytest.mark.parametrize("version", range(7))
def test_the_coordinator_of_a_group_is_found(same: Same, group: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        find_coordinator(peer, group)
        request = FindCoordinatorRequest(coordinator_keys=[group, "", "a", "ü\U0001f600"])
        if version < 4:
            request = FindCoordinatorRequest(key=group)
        answer = plain(peer.ask(request, version))
        for row in answer["coordinators"] or [answer]:
            assert row["port"] == peer.node.port
            row["port"] = "<port>"
        return answer

    same(scenario)


# Share coordinators (2) exist from version 6 on.
@pytest.mark.parametrize(
    ("key_type", "version"),
    [*((key, version) for key in (3, -1) for version in range(1, 7)), *((2, v) for v in range(1, 6))],
)
def test_key_types_that_do_not_exist_are_refused(same: Same, version: int, key_type: int) -> None:
    def scenario(peer: Peer) -> Any:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"])
        if version < 4:
            request = FindCoordinatorRequest(key="x", key_type=key_type)
        return plain(peer.ask(request, version))

    same(scenario)


def test_the_offsets_topic_has_the_settings_of_kafka(same: Same, group: str) -> None:
    """Fifty partitions, compacted."""

    def scenario(peer: Peer) -> Any:
        find_coordinator(peer, group)
        described = peer.metadata("__consumer_offsets")
        request = DescribeConfigsRequest(resources=[DescribeConfigsResource(2, "__consumer_offsets", None)])
        configs = peer.ask(request, 4).results[0].configs
        changed = sorted((c.name, c.value, c.config_source) for c in configs if c.config_source == 1)
        return len(described.partitions), described.is_internal, changed

    same(scenario)


# Commit and fetch


@pytest.mark.parametrize("version", range(2, 11))
def test_offsets_are_committed_and_fetched(same: Same, group: str, topic: str, version: int) -> None:
    """The answers, and the records in the log, byte for byte but for times and ids."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic, 3)
        find_coordinator(peer, group)
        offsets = {topic: [(0, 5, 0, "text"), (1, 0, -1, None), (2, 1 << 40, 7, "")]}
        committed = plain(commit(peer, group, offsets, version))
        seen = plain(fetch(peer, group, {topic: [0, 1, 2]}))
        return committed, seen, log_of(peer, group)

    _, _, log = same(scenario)
    assert len(log) == 3


def log_of(peer: Peer, group: str) -> Any:
    return [(plain(k), plain(v, {"commit_timestamp"}), batch) for k, v, batch in stored_records(peer, group)]


@pytest.mark.parametrize("version", range(2, 5))
def test_old_clients_may_set_an_end(same: Same, group: str, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        find_coordinator(peer, group)
        answer = plain(commit(peer, group, {topic: [(0, 5, -1, "text")]}, version, retention_time_ms=100_000))
        stored = stored_records(peer, group)
        value: Any = stored[0][1]
        assert 99_000 < value.expire_timestamp - value.commit_timestamp < 101_000
        return answer, plain(value, {"commit_timestamp", "expire_timestamp"}), stored[0][2]

    same(scenario)


# Stable offsets can be asked for from version 7 on.
@pytest.mark.parametrize(("stable", "version"), [(False, v) for v in range(1, 11)] + [(True, v) for v in range(7, 11)])
def test_fetches_of_all_versions(same: Same, group: str, topic: str, version: int, stable: bool) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, 2)
        find_coordinator(peer, group)
        commit(peer, group, {topic: [(0, 5, 1, "text")]})
        seen = [plain(fetch(peer, group, {topic: [1, 0, 7], "missing": [0]}, version, stable))]
        seen.append(plain(fetch(peer, group, {}, version, stable)))
        if version >= 2:
            seen.append(plain(fetch(peer, group, None, version, stable)))
        seen.append(plain(fetch(peer, f"{group}-unknown", {topic: [0]}, version, stable)))
        return seen

    same(scenario)


@pytest.mark.parametrize("version", range(8, 11))
def test_several_groups_at_once(same: Same, topic: str, version: int) -> None:
    groups = [new_group() for _ in range(5)]

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        for number, group in enumerate(groups):
            find_coordinator(peer, group)
            commit(peer, group, {topic: [(0, number, -1, "")]})
        rows = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in [*groups, groups[0]]]
        answer = plain(peer.ask(OffsetFetchRequest(groups=rows), version))
        answer["groups"] = sorted(answer["groups"], key=lambda row: str(row["group_id"]))
        return answer

    same(scenario)


@pytest.mark.parametrize("version", [2, 5, 8, 9, 10])
def test_what_does_not_exist_cannot_be_committed(same: Same, group: str, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, 2)
        find_coordinator(peer, group)
        offsets: Commits = {
            "missing": [(0, 5, 0, "")],
            topic: [(5, 1, 0, ""), (0, 2, 0, ""), (-1, 3, 0, "")],
            "missing-too": [(0, 5, 0, "")],
        }
        seen = [plain(commit(peer, group, offsets, version))]
        seen.append(plain(commit(peer, group, {"missing": [(0, 5, 0, "")]}, version)))
        seen.append(plain(commit(peer, group, {topic: []}, version)))
        seen.append(plain(commit(peer, group, {}, version)))
        return seen, plain(fetch(peer, group, None))

    same(scenario)


@pytest.mark.parametrize("version", [2, 8, 9, 10])
def test_commits_of_who_is_no_member(same: Same, group: str, topic: str, version: int) -> None:
    """A generation needs a group, and a member in it."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        find_coordinator(peer, group)
        offsets: Any = {topic: [(0, 5, 0, "")]}
        seen = [commit(peer, group, offsets, version, generation_id_or_member_epoch=3, member_id="m")]
        seen.append(commit(peer, group, offsets, version, generation_id_or_member_epoch=0, member_id=""))
        seen.append(commit(peer, group, offsets, version, generation_id_or_member_epoch=-1, member_id="m"))
        seen.append(commit(peer, group, offsets, version, generation_id_or_member_epoch=3, member_id="m"))
        seen.append(commit(peer, group, offsets, version, generation_id_or_member_epoch=-2, member_id=""))
        if version >= 7:
            seen.append(commit(peer, group, offsets, version, group_instance_id="static"))
        return plain(seen)

    same(scenario)


@pytest.mark.parametrize("version", [9, 10])
def test_fetches_of_who_is_no_member(same: Same, group: str, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        find_coordinator(peer, group)
        wanted: Any = {topic: [0]}
        seen = [fetch(peer, group, wanted, version, member_id="m", member_epoch=3)]
        commit(peer, group, {topic: [(0, 5, 0, "")]})
        seen.append(fetch(peer, group, wanted, version, member_id="m", member_epoch=3))
        seen.append(fetch(peer, group, None, version, member_id="m", member_epoch=-1))
        return plain(seen)

    same(scenario)


def test_metadata_may_have_4096_characters(same: Same, group: str, topic: str) -> None:
    """Characters as Java counts them."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic, 5)
        find_coordinator(peer, group)
        texts = ["x" * 4096, "x" * 4097, "ü" * 4096, "\U0001f600" * 2048, "\U0001f600" * 2049]
        offsets: Any = {topic: [(index, 1, 0, text) for index, text in enumerate(texts)]}
        return plain(commit(peer, group, offsets)), plain(fetch(peer, group, {topic: [0, 1, 2, 3, 4]}))

    same(scenario)


def test_an_empty_group_id_may_have_offsets(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        find_coordinator(peer, "")
        return plain(commit(peer, "", {topic: [(0, 5, 0, "")]})), plain(fetch(peer, "", {topic: [0]}))

    same(scenario)


def test_offsets_go_with_their_topic(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        peer.create(f"{topic}-kept")
        find_coordinator(peer, group)
        commit(peer, group, {topic: [(0, 5, 0, "")], f"{topic}-kept": [(0, 6, 0, "")]})
        peer.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=patience_ms(5000)), 6)
        wait_until(lambda: len(stored_records(peer, group)) == 3)
        return plain(fetch(peer, group, None)), log_of(peer, group)

    same(scenario)


# OffsetDelete


def delete_offsets(peer: Peer, group: str, topics: dict[str, list[int]]) -> Any:
    rows = [
        OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(index) for index in indexes])
        for name, indexes in topics.items()
    ]
    return plain(peer.ask(OffsetDeleteRequest(group_id=group, topics=rows), 0))


def test_offsets_are_deleted(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, 3)
        find_coordinator(peer, group)
        commit(peer, group, {topic: [(0, 5, 0, ""), (1, 6, 0, "")]})
        seen = [delete_offsets(peer, group, {topic: [0, 2, 9], "missing": [0]})]
        seen.append(plain(fetch(peer, group, None)))
        seen.append(delete_offsets(peer, group, {"missing": [0]}))
        seen.append(delete_offsets(peer, group, {topic: [1]}))
        seen.append(plain(fetch(peer, group, None)))
        seen.append(listed(peer, group, 5))
        seen.append(delete_offsets(peer, f"{group}-unknown", {topic: [1]}))
        seen.append(delete_offsets(peer, f"{group}-unknown", {"missing": [1]}))
        return seen, log_of(peer, group)

    same(scenario)


# ListGroups, DescribeGroups, DeleteGroups


def listed(peer: Peer, group: str, version: int, **filters: Any) -> Any:
    """The answer, with the groups of this test alone."""
    answer = plain(peer.ask(ListGroupsRequest(**filters), version))
    answer["groups"] = [row for row in answer["groups"] if row["group_id"].startswith(group)]
    return answer


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(same: Same, group: str, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        find_coordinator(peer, group)
        commit(peer, group, {topic: [(0, 5, 0, "")]})
        seen = [listed(peer, group, version)]
        if version >= 4:
            for states in (["Empty"], ["eMPTY", "Stable"], ["Stable"], ["nonsense"], [""]):
                seen.append(listed(peer, group, version, states_filter=states))
        if version >= 5:
            for types in (["classic"], ["CLASSIC"], ["consumer"], ["nonsense"], [""], ["share", "classic"]):
                seen.append(listed(peer, group, version, types_filter=types))
        return seen

    assert len(same(scenario)[0]["groups"]) == 1


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described(same: Same, group: str, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        find_coordinator(peer, group)
        commit(peer, group, {topic: [(0, 5, 0, "")]})
        request = DescribeGroupsRequest(groups=[group, f"{group}-unknown", ""])
        seen = [plain(peer.ask(request, version))]
        if version >= 3:
            request.include_authorized_operations = True
            seen.append(plain(peer.ask(request, version)))
        for answer in seen:
            answer["groups"] = sorted(answer["groups"], key=lambda row: str(row["group_id"]))
        return seen

    same(scenario)


@pytest.mark.parametrize("version", range(3))
def test_groups_are_deleted(same: Same, group: str, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, 2)
        find_coordinator(peer, group)
        commit(peer, group, {topic: [(0, 5, 0, ""), (1, 5, 0, "")]})
        names = [group, f"{group}-unknown", "", group]
        answer = plain(peer.ask(DeleteGroupsRequest(groups_names=names), version))
        answer["results"] = sorted(answer["results"], key=lambda row: str(row["group_id"]))
        return answer, listed(peer, group, 5), plain(fetch(peer, group, None)), log_of(peer, group)

    answer, *_ = same(scenario)
    assert answer["results"][1]["error_code"] == 0
    assert answer["results"][2]["error_code"] == errors.GROUP_ID_NOT_FOUND


# Settings of groups

GROUP_RESOURCE = 32
SET, DELETE, APPEND = 0, 1, 2
# A change reaches the broker a moment after the controller has answered.
SETTLED_SECONDS = 0.2


def alter(peer: Peer, group: str, *changes: tuple[str, int, str | None], validate_only: bool = False) -> Any:
    rows = [AlterableConfig(name, operation, value) for name, operation, value in changes]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, group, rows)], validate_only)
    return plain(peer.ask(request, 1))


def described_configs(peer: Peer, group: str, version: int = 4) -> Any:
    resource = DescribeConfigsResource(GROUP_RESOURCE, group, None)
    request = DescribeConfigsRequest([resource], include_synonyms=True, include_documentation=False)
    answer = plain(peer.ask(request, version))
    for result in answer["results"]:
        result["configs"] = sorted(result["configs"], key=lambda row: str(row["name"]))
    return answer


@pytest.mark.parametrize(
    "changes",
    [
        [("consumer.session.timeout.ms", SET, "50000")],
        [("consumer.session.timeout.ms", SET, "50000"), ("consumer.heartbeat.interval.ms", SET, "6000")],
        [("consumer.session.timeout.ms", SET, "1")],
        [("consumer.session.timeout.ms", SET, "60001")],
        [("consumer.session.timeout.ms", SET, "many")],
        [("consumer.session.timeout.ms", SET, None)],
        [("consumer.session.timeout.ms", APPEND, "50000")],
        [("consumer.heartbeat.interval.ms", SET, "15000"), ("consumer.session.timeout.ms", SET, "45000")],
        [("consumer.heartbeat.interval.ms", SET, "4999")],
        [("consumer.assignment.interval.ms", SET, "0")],
        [("consumer.assignment.interval.ms", SET, "15001")],
        [("share.auto.offset.reset", SET, "earliest")],
        [("share.auto.offset.reset", SET, "nonsense")],
        [("streams.num.standby.replicas", SET, "1")],
        [("streams.num.standby.replicas", SET, "3")],
        [("nonsense", SET, "1")],
        [("nonsense", DELETE, None)],
        [("consumer.session.timeout.ms", DELETE, None)],
    ],
)
def test_settings_of_a_group_are_changed(same: Same, group: str, changes: Any) -> None:
    def scenario(peer: Peer) -> Any:
        seen = [alter(peer, group, *changes, validate_only=True), described_configs(peer, group)]
        seen.append(alter(peer, group, *changes))
        time.sleep(SETTLED_SECONDS)
        seen.append(described_configs(peer, group))
        alter(peer, group, *((name, DELETE, None) for name, _, _ in changes))
        time.sleep(SETTLED_SECONDS)
        seen.append(described_configs(peer, group))
        return seen

    same(scenario)


@pytest.mark.parametrize("version", range(1, 5))
def test_settings_of_a_group_are_described(same: Same, group: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        alter(peer, group, ("consumer.session.timeout.ms", SET, "50000"))
        time.sleep(SETTLED_SECONDS)
        return described_configs(peer, group, version)

    same(scenario)


def test_a_group_without_a_name_has_no_settings(same: Same) -> None:
    same(lambda peer: [alter(peer, "", ("consumer.session.timeout.ms", SET, "50000")), described_configs(peer, "")])
