"""Records that are rejected, or were delivered as often as allowed, get dead letters; nobody else does."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from moldau.node.share import dead_letters, states
from moldau.node.share.dead_letter_records import NOT_READABLE, TOO_LARGE
from moldau.node.share.partition import SharePartition
from moldau.node.share.record_states import ARCHIVING
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.protocol.records_data import MemoryRecords
from moldau.storage.validation import COORDINATOR
from tests.unit.node.world import produce_request
from tests.unit.share.letters import TOPIC, headers_of, letters_in, offsets_of
from tests.unit.share.member import acquired, codes
from tests.unit.share.node_world import GROUP, ShareNode
from tests.unit.storage.helpers import marker

GAP, ACCEPT, RELEASE, REJECT = range(4)
ENABLE = "errors.deadletterqueue.group.enable"
NAME = "errors_deadletterqueue_topic_name"
COPY = "errors_deadletterqueue_copy_record_enable"
AUTO_CREATE = "errors_deadletterqueue_auto_create_topics_enable"


def set_level(node: ShareNode, level: int) -> None:
    kind = 1 if level == 2 else 3
    request = UpdateFeaturesRequest(1000, [FeatureUpdateKey("share.version", level, upgrade_type=kind)])
    assert node.world.ask(request, 1).error_code == 0
    node.world.run(200)


def create(node: ShareNode, name: str = TOPIC, partitions: int = 1, **configs: str) -> None:
    values = {ENABLE: "true"} | {key.replace("_", "."): value for key, value in configs.items()}
    rows = [CreatableTopicConfig(key, value) for key, value in values.items()]
    answer = node.world.ask(CreateTopicsRequest([CreatableTopic(name, partitions, 1, configs=rows)], 1000), 7)
    assert answer.topics[0].error_code == 0, answer
    node.world.run(200)


def dead_letter_node(partitions: int = 1, **settings: str) -> ShareNode:
    node = ShareNode(partitions, **settings)
    set_level(node, 2)
    node.configure(**{NAME: TOPIC})
    return node


@pytest.fixture
def node() -> ShareNode:
    found = dead_letter_node(group_share_delivery_count_limit="2")
    create(found)
    return found


def reject(node: ShareNode, *, count: int = 5, value: bytes = b"value") -> Any:
    """The first record of some; the others are accepted."""
    member = node.join()
    node.fill(count, value=value)
    member.fetch(node.place)
    assert codes(member.acknowledge({node.place: [(0, 0, [REJECT]), (1, count - 1, [ACCEPT])]})) == [(0, 0)]
    node.world.run(1000)
    return member


def start_of(node: ShareNode) -> int:
    return node.shared().window.start_offset


# Which records, and what is told of them


def test_a_rejected_record_gets_a_dead_letter(node: ShareNode) -> None:
    reject(node)
    letters = letters_in(node.world.node)
    assert [headers_of(letter) for letter in letters] == [
        {
            "topic": "s",
            "partition": "0",
            "offset": "0",
            "group": GROUP,
            "delivery.count": "1",
            "message": "rejected by client",
        }
    ]
    assert letters[0].key is None and letters[0].value is None, "only the place"
    assert start_of(node) == 5, "all are done with"
    assert node.world.node.shares.counts.dead_letters_total == 1


def test_a_record_that_was_delivered_as_often_as_allowed_gets_one(node: ShareNode) -> None:
    """By release, by a lock that runs out, or with the end of a session."""
    member = node.join()
    node.fill(1, 1, 1)
    for _ in range(2):
        member.fetch(node.place, max_records=1)
        member.acknowledge({node.place: [(0, 0, [RELEASE])]})
    node.world.run(500)
    assert offsets_of(letters_in(node.world.node)) == [0]
    for _ in range(2):
        assert acquired(member.fetch(node.place, max_records=1))[0][1] == 1
        node.world.run(31_000)
    assert offsets_of(letters_in(node.world.node)) == [0, 1]
    for _ in range(2):
        assert acquired(member.fetch(node.place, max_records=1))[0][1] == 2
        member.fetch(epoch=-1)
        node.world.run(500)
    letters = letters_in(node.world.node)
    assert offsets_of(letters) == [0, 1, 2]
    assert {headers_of(letter)["message"] for letter in letters} == {"delivery count exceeded"}
    assert {headers_of(letter)["delivery.count"] for letter in letters} == {"2"}


def test_gaps_and_accepted_records_get_none(node: ShareNode) -> None:
    member = node.join()
    node.fill(4)
    member.fetch(node.place)
    member.acknowledge({node.place: [(0, 1, [GAP]), (2, 3, [ACCEPT])]})
    node.world.run(1000)
    assert letters_in(node.world.node) == [] and start_of(node) == 4


@pytest.mark.parametrize("copies", ["true", "false"])
def test_a_transaction_marker_that_is_given_up_with_its_records_gets_none(node: ShareNode, copies: str) -> None:
    """It is locked with the records around it, and a member that dies says nothing of it."""
    node.configure(**{COPY: copies})
    member = node.join()
    node.fill(1)
    partition = node.world.node.replicas.find("s", 0)
    assert partition is not None
    records = MemoryRecords(marker(7, 0, commit=True))
    partition.append_as_leader(records, 1, node.world.now_ms, COORDINATOR)
    node.fill(1)
    for _ in range(2):
        rows = acquired(member.fetch(node.place))
        assert (rows[0][1], rows[-1][2]) == (0, 2)
        node.world.run(31_000)
    assert offsets_of(letters_in(node.world.node)) == [0, 2]
    assert start_of(node) == 3, "nobody waits for a letter of the marker"


def test_records_are_copied_if_the_group_wants_that(node: ShareNode) -> None:
    node.configure(**{COPY: "true"})
    reject(node, value=b"the value")
    (letter,) = letters_in(node.world.node)
    assert letter.value == b"the value"
    assert letter.headers[-6][0] == "__dlq.errors.topic", "behind those of the record"


def test_many_letters_go_in_batches_that_the_topic_takes() -> None:
    node = dead_letter_node(group_share_delivery_count_limit="2")
    create(node, max_message_bytes="1000")
    node.configure(**{COPY: "true"})
    member = node.join()
    node.fill(*[10] * 10, value=b"v" * 100)
    member.fetch(node.place)
    member.acknowledge({node.place: [(0, 99, [REJECT])]})
    node.world.run(3000)
    letters = letters_in(node.world.node)
    assert offsets_of(letters) == list(range(100)) and start_of(node) == 100
    assert {letter.value for letter in letters} == {b"v" * 100}


def test_a_record_that_is_too_large_for_the_topic_is_not_copied() -> None:
    node = dead_letter_node()
    create(node, max_message_bytes="600")
    node.configure(**{COPY: "true"})
    reject(node, value=b"v" * 2000)
    (letter,) = letters_in(node.world.node)
    assert letter.value is None and headers_of(letter)["message"].endswith(TOO_LARGE)


def test_a_letter_that_no_batch_can_hold_is_given_up() -> None:
    node = dead_letter_node()
    create(node, max_message_bytes="80")
    reject(node)
    assert letters_in(node.world.node) == [] and start_of(node) == 5
    assert node.world.node.shares.counts.dead_letters_dropped_total == 1


def test_a_smaller_limit_than_this_broker_knows_is_found_out(node: ShareNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader of the dead letter topic says what it takes."""
    node.configure(**{COPY: "true"})
    create(node, "dlq.small", max_message_bytes="900")
    node.configure(**{NAME: "dlq.small"})
    small = dead_letters.BATCH_BYTES_MAX
    monkeypatch.setattr(dead_letters, "min", lambda *_: small, raising=False)
    member = node.join()
    node.fill(10, value=b"v" * 200)
    node.fill(1, value=b"v" * 2000)
    member.fetch(node.place)
    member.acknowledge({node.place: [(0, 10, [REJECT])]})
    monkeypatch.setattr(dead_letters.DeadLetters, "_try_later", failing("no letter has to wait"))
    node.world.run(3000)
    letters = letters_in(node.world.node, "dlq.small")
    assert offsets_of(letters) == list(range(11)) and start_of(node) == 11
    assert [letter.value is None for letter in letters] == [False] * 10 + [True]


def failing(text: str) -> Any:
    def fail(*_: Any) -> None:
        raise AssertionError(text)

    return fail


# Where they go


def test_partitions_go_to_partitions() -> None:
    node = dead_letter_node(3)
    create(node, partitions=2)
    member = node.join()
    for index in range(3):
        node.fill(1, partition=index)
        place = (node.topic_id, index)
        member.fetch(place)
        member.acknowledge({place: [(0, 0, [REJECT])]})
    node.world.run(1000)
    told = [[headers_of(letter)["partition"] for letter in letters_in(node.world.node, TOPIC, n)] for n in range(2)]
    assert told == [["0", "2"], ["1"]]


def test_without_the_feature_or_a_topic_there_are_none() -> None:
    node = ShareNode()
    create(node)
    node.configure(**{NAME: TOPIC})
    reject(node)
    assert letters_in(node.world.node) == [] and start_of(node) == 5, "share.version is 1"
    set_level(node, 2)
    node.configure(**{NAME: ""})
    member = node.member("m2")
    node.fill(1)
    member.fetch(node.place)
    member.acknowledge({node.place: [(5, 5, [REJECT])]})
    node.world.run(1000)
    assert letters_in(node.world.node) == [] and start_of(node) == 6
    node.configure(**{NAME: TOPIC})
    node.fill(1)
    member.fetch(node.place)
    member.acknowledge({node.place: [(6, 6, [REJECT])]})
    node.world.run(1000)
    assert offsets_of(letters_in(node.world.node)) == [6], "settings hold from the next use on"


def test_the_topic_must_allow_dead_letters() -> None:
    node = dead_letter_node()
    create(node, **{ENABLE: "false"})
    reject(node)
    assert letters_in(node.world.node) == [] and start_of(node) == 5, "nobody is held up"
    assert node.world.node.shares.counts.dead_letters_dropped_total == 1


def test_a_topic_that_is_missing_is_created_only_if_that_is_allowed() -> None:
    node = dead_letter_node()
    member = reject(node)
    assert TOPIC not in node.world.node.image.topics_by_name and start_of(node) == 5
    node.configure_broker(**{AUTO_CREATE: "true"})
    node.fill(1)
    member.fetch(node.place)
    member.acknowledge({node.place: [(5, 5, [REJECT])]})
    node.world.run(2000)
    assert offsets_of(letters_in(node.world.node)) == [5] and start_of(node) == 6
    found = node.world.node.image.config(2, TOPIC)
    assert found == {ENABLE: "true", "message.timestamp.type": "CreateTime"}


def test_the_prefix_of_the_cluster_counts(node: ShareNode) -> None:
    node.configure_broker(errors_deadletterqueue_topic_name_prefix="other.")
    reject(node)
    assert letters_in(node.world.node) == []
    node.configure_broker(errors_deadletterqueue_topic_name_prefix="")
    assert alter_name(node, "any") == 0


def alter_name(node: ShareNode, name: str) -> int:
    entry = AlterableConfig("errors.deadletterqueue.topic.name", 0, name)
    answer = node.world.ask(IncrementalAlterConfigsRequest([AlterConfigsResource(32, GROUP, [entry])]), 1)
    code: int = answer.responses[0].error_code
    return code


@pytest.mark.parametrize("name", ["__dlq", "dlq.a b", "dlq." + "x" * 250, "orders"])
def test_a_name_that_cannot_be_is_refused(node: ShareNode, name: str) -> None:
    assert alter_name(node, name) == errors.INVALID_CONFIG


# What fails


def test_nothing_is_archived_before_its_letter_is_written(node: ShareNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes; the acknowledgement does not wait for it."""
    failed = []

    def append(self: Any, box: Any, batch: Any, answer: Any, now_ms: int) -> None:
        failed.append(now_ms)
        answer.done(errors.NOT_ENOUGH_REPLICAS, now_ms)

    with monkeypatch.context() as patch:
        patch.setattr(dead_letters.DeadLetters, "_append", append)
        reject(node)
        assert start_of(node) == 0 and node.shared().window.archiving == 1
        node.world.run(300_000)
        assert start_of(node) == 0
    pauses = [later - before for before, later in pairwise(failed)]
    assert pauses[0] < 1500 and 25_000 < pauses[-1] < 35_000, pauses
    node.world.run(31_000)
    assert start_of(node) == 5 and offsets_of(letters_in(node.world.node)) == [0]


def test_a_full_window_waits_for_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """So much memory, and no more."""
    node = dead_letter_node()
    create(node)
    node.configure(share_partition_max_record_locks="100")
    member = node.join()
    node.fill(*[10] * 20)
    with monkeypatch.context() as patch:
        patch.setattr(
            dead_letters.DeadLetters,
            "_append",
            lambda self, box, batch, answer, now_ms: answer.done(errors.NOT_ENOUGH_REPLICAS, now_ms),
        )
        for first in range(0, 100, 10):
            assert acquired(member.fetch(node.place, max_records=10)) == [(0, first, first + 9, 1)]
            member.acknowledge({node.place: [(first, first + 9, [REJECT])]})
        assert acquired(member.fetch(max_wait_ms=1000)) == []
    assert acquired(member.fetch(max_wait_ms=40_000, max_records=10)) == [(0, 100, 109, 1)], "it goes on by itself"
    assert offsets_of(letters_in(node.world.node)) == list(range(100))


def test_a_restart_in_between_writes_the_letter(node: ShareNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-20672: the record was ARCHIVING, which is stored."""
    with monkeypatch.context() as patch:
        patch.setattr(dead_letters.DeadLetters, "_begin", lambda self, sending, now_ms: None)
        reject(node)
        assert letters_in(node.world.node) == []
        node.restart()
    node.world.run(1000)
    member = node.member("m9")
    member.fetch(node.place, max_wait_ms=100)
    node.world.run(1000)
    letters = letters_in(node.world.node)
    assert offsets_of(letters) == [0] and headers_of(letters[0])["message"] == "rejected by client"
    assert start_of(node) == 5


def test_letters_are_written_when_the_last_member_is_gone(node: ShareNode) -> None:
    member = node.join()
    node.fill(1)
    member.fetch(node.place)
    member.acknowledge({node.place: [(0, 0, [REJECT])]}, epoch=-1)
    member.leave()
    node.world.run(2000)
    assert offsets_of(letters_in(node.world.node)) == [0]
    assert node.world.node.shares.found == {}, "and then it is forgotten"
    assert len(node.world.node.dead_letters) == 0


def test_no_letter_of_a_record_that_may_be_delivered_again(node: ShareNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that ran out for the last time is stored before the letter is written, if need be at the second try."""
    member = node.join()
    node.fill(1)
    for _ in range(2):
        member.fetch(node.place)
        if _ == 0:
            member.acknowledge({node.place: [(0, 0, [RELEASE])]})
    original = SharePartition._on_written
    with monkeypatch.context() as patch:
        patch.setattr(
            SharePartition,
            "_on_written",
            lambda self, result, now_ms: original(self, KafkaError(errors.COORDINATOR_NOT_AVAILABLE), now_ms),
        )
        node.world.run(40_000)
        assert node.shared().window.batches[0].runs[0].state == ARCHIVING
        assert letters_in(node.world.node) == []
    node.world.run(2000)
    assert offsets_of(letters_in(node.world.node)) == [0] and start_of(node) == 1
    assert states.ATTEMPTS_MAX > 1


def test_a_record_that_is_gone_still_gets_its_letter(node: ShareNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log begins behind it, so that nothing can be copied."""
    node.configure(**{COPY: "true"})
    with monkeypatch.context() as patch:
        patch.setattr(dead_letters.DeadLetters, "_begin", lambda self, sending, now_ms: None)
        member = reject(node)
        partition = DeleteRecordsPartition(0, 3)
        node.world.ask(DeleteRecordsRequest([DeleteRecordsTopic("s", [partition])], 1000), 2)
        node.fill(1)
        assert acquired(member.fetch()) == [(0, 5, 5, 1)]
        node.restart()
    node.world.run(500)
    member = node.member("m9")
    member.fetch(node.place, max_wait_ms=100)
    node.world.run(1000)
    (letter,) = letters_in(node.world.node)
    assert headers_of(letter)["message"] == "rejected by client" + NOT_READABLE and letter.value is None
    assert start_of(node) == 5


def test_letters_of_a_topic_that_is_deleted_are_forgotten(node: ShareNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "find_letter_box", raising(dead_letters.NoLeader("nobody leads")))
    reject(node)
    assert len(node.world.node.dead_letters) == 1
    node.world.ask(DeleteTopicsRequest([DeleteTopicState("s")], timeout_ms=1000), 6)
    node.world.run(40_000)
    assert len(node.world.node.dead_letters) == 0


def raising(error: Exception) -> Any:
    def fail(*_: Any) -> None:
        raise error

    return fail


def test_a_compacted_topic_takes_none_without_keys() -> None:
    """They are archived without, and the log says why."""
    node = dead_letter_node()
    create(node, cleanup_policy="compact")
    reject(node)
    assert letters_in(node.world.node) == [] and start_of(node) == 5
    assert node.world.node.shares.counts.dead_letters_dropped_total == 1


def test_a_topic_of_dead_letters_is_one_like_others(node: ShareNode) -> None:
    """Whoever may write to topics may write to it."""
    from tests.unit.node.world import batch

    answer = node.world.ask(produce_request(TOPIC, 0, batch(node.world.now_ms, 1)), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
