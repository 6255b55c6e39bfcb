"""Input that makes no sense is refused before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.client.admin import (
    TOPIC,
    AbortTransaction,
    Admin,
    ConfigChange,
    ConfigResource,
    FeatureUpdate,
    NewTopic,
    RaftEndpoint,
    TopicPartitionReplica,
)
from moldau.client.errors import ClosedError
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from tests.unit.client.fake_network import HOME, FakeNetwork, ScriptedBroker

ID = bytes(range(16))
FIRST = TopicPartition("a", 0)
NOT_A_PARTITION = TopicPartition("a", -1)


def set_up() -> tuple[Admin, ScriptedBroker]:
    broker = ScriptedBroker()
    return Admin("broker:9092", config=wired(network=FakeNetwork({HOME: broker}))), broker


WRONG: dict[str, tuple[type[Exception], Callable[[Any], object]]] = {
    "one name instead of a list": (TypeError, lambda admin: admin.delete_topics("topic")),
    "one group instead of a list": (TypeError, lambda admin: admin.delete_consumer_groups("group")),
    "an empty name": (ValueError, lambda admin: admin.describe_topics([""])),
    "a name that is a number": (TypeError, lambda admin: admin.describe_topics([5])),
    "a group that is a number": (TypeError, lambda admin: admin.describe_consumer_groups([5])),
    "an id that is too short": (ValueError, lambda admin: admin.delete_topics_by_id([b"x"])),
    "ids that are one id": (TypeError, lambda admin: admin.describe_topics_by_id(ID)),
    "a topic that is only a name": (TypeError, lambda admin: admin.create_topics(["a"])),
    "a negative number of partitions": (ValueError, lambda admin: admin.create_topics([NewTopic("a", -2)])),
    "numbers and an assignment": (ValueError, lambda admin: admin.create_topics([NewTopic("a", 1, 1, {}, [[1]])])),
    "no partitions at all": (ValueError, lambda admin: admin.create_partitions({"a": 0})),
    "a count that is true": (TypeError, lambda admin: admin.create_partitions({"a": True})),
    "a negative partition": (ValueError, lambda admin: admin.describe_producers([NOT_A_PARTITION])),
    "partitions as a string": (TypeError, lambda admin: admin.elect_leaders(0, "a-0")),
    "an offset below everything": (ValueError, lambda admin: admin.delete_records({FIRST: -2})),
    "a committed offset below zero": (ValueError, lambda admin: admin.alter_consumer_group_offsets("g", {FIRST: -1})),
    "a share offset below zero": (ValueError, lambda admin: admin.alter_share_group_offsets("g", {FIRST: -1})),
    "an unknown kind of election": (ValueError, lambda admin: admin.elect_leaders(2, [FIRST])),
    "an unknown operation": (
        ValueError,
        lambda admin: admin.incremental_alter_configs({ConfigResource(TOPIC, "a"): [ConfigChange("x", "1", 9)]}),
    ),
    "configs of a topic without a name": (
        ValueError,
        lambda admin: admin.describe_configs([ConfigResource(TOPIC, "")]),
    ),
    "a downgrade to nothing that is none": (
        ValueError,
        lambda admin: admin.update_features({"group.version": FeatureUpdate(0)}),
    ),
    "a voter without endpoints": (ValueError, lambda admin: admin.add_raft_voter(1, ID, [])),
    "a voter at port 0": (ValueError, lambda admin: admin.add_raft_voter(1, ID, [RaftEndpoint("C", "h", 0)])),
    "a voter without a directory": (ValueError, lambda admin: admin.remove_raft_voter(1, b"")),
    "a negative broker": (ValueError, lambda admin: admin.unregister_broker(-1)),
    "a replica without a broker": (
        ValueError,
        lambda admin: admin.alter_replica_log_dirs({TopicPartitionReplica("a", 0, -1): "d"}),
    ),
    "a marker without a producer": (ValueError, lambda admin: admin.abort_transaction(AbortTransaction(FIRST, -1, 0))),
    "a timeout below zero": (ValueError, lambda admin: admin.list_topics(timeout_ms=-1)),
}


@pytest.mark.parametrize("case", WRONG)
def test_input_that_makes_no_sense_is_not_sent(case: str) -> None:
    admin, broker = set_up()
    error, call = WRONG[case]
    with pytest.raises(error):
        call(admin)
    assert broker.seen == []


NOTHING: dict[str, Callable[[Admin], object]] = {
    "create_topics": lambda admin: admin.create_topics([]),
    "delete_topics": lambda admin: admin.delete_topics([]),
    "describe_topics": lambda admin: admin.describe_topics([]),
    "describe_topics_by_id": lambda admin: admin.describe_topics_by_id([]),
    "create_partitions": lambda admin: admin.create_partitions({}),
    "delete_records": lambda admin: admin.delete_records({}),
    "describe_configs": lambda admin: admin.describe_configs([]),
    "describe_log_dirs": lambda admin: admin.describe_log_dirs([]),
    "describe_consumer_groups": lambda admin: admin.describe_consumer_groups([]),
    "list_consumer_group_offsets": lambda admin: admin.list_consumer_group_offsets({}),
    "describe_transactions": lambda admin: admin.describe_transactions([]),
    "create_acls": lambda admin: admin.create_acls([]),
    "alter_client_quotas": lambda admin: admin.alter_client_quotas({}),
    "alter_user_scram_credentials": lambda admin: admin.alter_user_scram_credentials([]),
    "alter_partition_reassignments": lambda admin: admin.alter_partition_reassignments({}),
}


@pytest.mark.parametrize("method", NOTHING)
def test_nothing_is_sent_about_nothing(method: str) -> None:
    admin, broker = set_up()
    assert NOTHING[method](admin) == {} and broker.seen == []


@pytest.mark.parametrize("method", NOTHING)
def test_a_closed_client_says_so_from_every_method(method: str) -> None:
    admin, _ = set_up()
    admin.close()
    with pytest.raises(ClosedError):
        NOTHING[method](admin)
