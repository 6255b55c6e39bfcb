"""What each API asks for, in order: the table that its handlers are tested with."""

from __future__ import annotations

import dataclasses
from typing import Any

from moldau.protocol import errors
from moldau.protocol.api_keys import request_class
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from moldau.security.rights import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)

T29 = errors.TOPIC_AUTHORIZATION_FAILED
G30 = errors.GROUP_AUTHORIZATION_FAILED
C31 = errors.CLUSTER_AUTHORIZATION_FAILED
X53 = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
AUTHORIZATION = frozenset({T29, G30, C31, X53})


@dataclasses.dataclass(frozen=True)
class Need:
    """A right, and the error of who has all before it and not this one."""

    operation: int
    resource_type: int
    name: str
    code: int


@dataclasses.dataclass(frozen=True)
class Row:
    request: Message
    version: int
    needs: tuple[Need, ...]
    on_controller: bool = False
    note: str = ""

    @property
    def key(self) -> int:
        return type(self.request).API_KEY

    @property
    def title(self) -> str:
        where = "controller-" if self.on_controller else ""
        return f"{where}{type(self.request).__name__.removesuffix('Request')}-v{self.version}{self.note}"


def topic(operation: int, name: str = "t") -> Need:
    return Need(operation, TOPIC, name, T29)


def group(operation: int, name: str = "g") -> Need:
    return Need(operation, GROUP, name, G30)


def cluster(operation: int, code: int = C31) -> Need:
    return Need(operation, CLUSTER, CLUSTER_NAME, code)


def transactional(operation: int, name: str = "x") -> Need:
    return Need(operation, TRANSACTIONAL_ID, name, X53)


def batch(transactional: bool = False) -> MemoryRecords:
    builder = BatchBuilder()
    builder.append(1_700_000_000_000, None, b"value", [])
    data = bytearray(builder.build())
    if transactional:
        data[22] |= 0x10  # the checksum does not fit any more: what is decided from the attributes comes before it
    return MemoryRecords(bytes(data), 0, len(data))


def make(key: int, /, **fields: Any) -> Message:
    """A request from plain data; nested lists of dictionaries become its parts."""
    cls = request_class(key)
    return build(cls, fields)


def build(cls: type[Message], fields: dict[str, Any]) -> Message:
    made = cls()
    module = __import__(cls.__module__, fromlist=["x"])
    for name, value in fields.items():
        assert name in cls.FIELDS, f"{cls.__name__} has no {name}"
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            value = [build(getattr(module, part), inner) for part, inner in value]
        elif isinstance(value, tuple):
            value = build(getattr(module, value[0]), value[1])
        setattr(made, name, value)
    return made


def rows(topic_id: bytes) -> list[Row]:
    from moldau.protocol import api_table as api

    produce_data = [("PartitionProduceData", {"index": 0, "records": batch()})]
    txn_data = [("PartitionProduceData", {"index": 0, "records": batch(True)})]
    fetch_part = [("FetchPartition", {"partition": 0, "partition_max_bytes": 1000})]
    named = {"member_id": "m" * 22}
    return [
        Row(
            make(
                api.PRODUCE,
                acks=1,
                timeout_ms=100,
                topic_data=[("TopicProduceData", {"name": "t", "partition_data": produce_data})],
            ),
            9,
            (topic(WRITE),),
        ),
        Row(
            make(
                api.PRODUCE,
                acks=1,
                timeout_ms=100,
                topic_data=[("TopicProduceData", {"topic_id": topic_id, "partition_data": produce_data})],
            ),
            13,
            (topic(WRITE),),
        ),
        Row(
            make(
                api.PRODUCE,
                transactional_id="x",
                acks=1,
                timeout_ms=100,
                topic_data=[("TopicProduceData", {"name": "t", "partition_data": txn_data})],
            ),
            9,
            (transactional(WRITE), topic(WRITE)),
            note="-transactional",
        ),
        *[
            Row(
                make(
                    api.FETCH,
                    max_bytes=1000,
                    topics=[("FetchTopic", {"topic": "t", "topic_id": topic_id, "partitions": fetch_part})],
                ),
                version,
                (topic(READ),),
            )
            for version in (4, 12, 13, 17)
        ],
        Row(
            make(
                api.FETCH,
                replica_id=2,
                max_bytes=1000,
                topics=[("FetchTopic", {"topic": "t", "partitions": fetch_part})],
            ),
            12,
            (cluster(CLUSTER_ACTION, T29),),
            note="-replica",
        ),
        Row(
            make(
                api.LIST_OFFSETS,
                topics=[
                    (
                        "ListOffsetsTopic",
                        {"name": "t", "partitions": [("ListOffsetsPartition", {"timestamp": -1})]},
                    )
                ],
            ),
            7,
            (topic(DESCRIBE),),
        ),
        Row(make(api.METADATA, topics=[("MetadataRequestTopic", {"name": "t"})]), 9, (topic(DESCRIBE),)),
        Row(
            make(api.METADATA, topics=[("MetadataRequestTopic", {"name": None, "topic_id": topic_id})]),
            12,
            (topic(DESCRIBE),),
            note="-by-id",
        ),
        Row(
            make(
                api.METADATA,
                topics=[("MetadataRequestTopic", {"name": "new"})],
                allow_auto_topic_creation=True,
            ),
            9,
            (topic(DESCRIBE, "new"), topic(CREATE, "new")),
            note="-created",
        ),
        *[
            Row(
                make(
                    api.OFFSET_COMMIT,
                    group_id="g",
                    topics=[
                        (
                            "OffsetCommitRequestTopic",
                            {
                                "name": "t",
                                "topic_id": topic_id,
                                "partitions": [("OffsetCommitRequestPartition", {"committed_offset": 3})],
                            },
                        )
                    ],
                ),
                version,
                (group(READ), topic(READ)),
            )
            for version in (2, 9, 10)
        ],
        *[
            Row(
                make(
                    api.OFFSET_FETCH,
                    group_id="g",
                    topics=[("OffsetFetchRequestTopic", {"name": "t", "partition_indexes": [0]})],
                ),
                version,
                (group(DESCRIBE), topic(DESCRIBE)),
            )
            for version in (1, 2, 7)
        ],
        *[
            Row(
                make(
                    api.OFFSET_FETCH,
                    groups=[
                        (
                            "OffsetFetchRequestGroup",
                            {
                                "group_id": "g",
                                "topics": [
                                    (
                                        "OffsetFetchRequestTopics",
                                        {"name": "t", "topic_id": topic_id, "partition_indexes": [0]},
                                    )
                                ],
                            },
                        )
                    ],
                ),
                version,
                (group(DESCRIBE), topic(DESCRIBE)),
            )
            for version in (8, 10)
        ],
        Row(make(api.FIND_COORDINATOR, key="g"), 2, (group(DESCRIBE),)),
        Row(make(api.FIND_COORDINATOR, coordinator_keys=["g"]), 4, (group(DESCRIBE),)),
        Row(make(api.FIND_COORDINATOR, key_type=1, coordinator_keys=["x"]), 4, (transactional(DESCRIBE),)),
        Row(make(api.FIND_COORDINATOR, key_type=2, coordinator_keys=["g"]), 6, (cluster(CLUSTER_ACTION),)),
        Row(
            make(
                api.JOIN_GROUP,
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[("JoinGroupRequestProtocol", {"name": "range"})],
            ),
            5,
            (group(READ),),
        ),
        Row(make(api.HEARTBEAT, group_id="g", member_id="m"), 3, (group(READ),)),
        Row(make(api.LEAVE_GROUP, group_id="g", members=[("MemberIdentity", {"member_id": "m"})]), 4, (group(READ),)),
        Row(make(api.LEAVE_GROUP, group_id="g", member_id="m"), 1, (group(READ),)),
        Row(
            make(api.SYNC_GROUP, group_id="g", member_id="m", protocol_type="consumer", protocol_name="range"),
            5,
            (group(READ),),
        ),
        Row(make(api.DESCRIBE_GROUPS, groups=["g"]), 5, (group(DESCRIBE),)),
        Row(
            make(
                api.CREATE_TOPICS,
                topics=[("CreatableTopic", {"name": "n", "num_partitions": 1, "replication_factor": 1})],
                timeout_ms=100,
                validate_only=True,
            ),
            7,
            (topic(CREATE, "n"), topic(DESCRIBE_CONFIGS, "n")),
        ),
        Row(
            make(api.DELETE_TOPICS, topic_names=["gone"], timeout_ms=100),
            4,
            (topic(DESCRIBE, "gone"),),
            note="-missing",
        ),
        Row(
            make(
                api.DELETE_RECORDS,
                topics=[
                    (
                        "DeleteRecordsTopic",
                        {"name": "t", "partitions": [("DeleteRecordsPartition", {"offset": 0})]},
                    )
                ],
                timeout_ms=100,
            ),
            2,
            (topic(DELETE),),
        ),
        Row(make(api.INIT_PRODUCER_ID, transactional_id="x", transaction_timeout_ms=1000), 4, (transactional(WRITE),)),
        Row(make(api.INIT_PRODUCER_ID, transactional_id=None), 4, (cluster(IDEMPOTENT_WRITE),), note="-idempotent"),
        Row(
            make(
                api.OFFSET_FOR_LEADER_EPOCH,
                topics=[("OffsetForLeaderTopic", {"topic": "t", "partitions": [("OffsetForLeaderPartition", {})]})],
            ),
            4,
            (topic(DESCRIBE),),
        ),
        Row(
            make(
                api.ADD_PARTITIONS_TO_TXN,
                v3_and_below_transactional_id="x",
                v3_and_below_topics=[("AddPartitionsToTxnTopic", {"name": "t", "partitions": [0]})],
            ),
            3,
            (transactional(WRITE), topic(WRITE)),
        ),
        Row(
            make(
                api.ADD_PARTITIONS_TO_TXN,
                transactions=[
                    (
                        "AddPartitionsToTxnTransaction",
                        {
                            "transactional_id": "x",
                            "topics": [("AddPartitionsToTxnTopic", {"name": "t", "partitions": [0]})],
                        },
                    )
                ],
            ),
            5,
            (cluster(CLUSTER_ACTION),),
        ),
        Row(
            make(api.ADD_OFFSETS_TO_TXN, transactional_id="x", group_id="g"),
            3,
            (transactional(WRITE), group(READ)),
        ),
        Row(make(api.END_TXN, transactional_id="x"), 4, (transactional(WRITE),)),
        Row(
            make(
                api.WRITE_TXN_MARKERS,
                markers=[
                    (
                        "WritableTxnMarker",
                        {"topics": [("WritableTxnMarkerTopic", {"name": "gone", "partition_indexes": [0]})]},
                    )
                ],
            ),
            1,
            (cluster(CLUSTER_ACTION),),
        ),
        Row(
            make(
                api.TXN_OFFSET_COMMIT,
                transactional_id="x",
                group_id="g",
                topics=[
                    (
                        "TxnOffsetCommitRequestTopic",
                        {"name": "t", "partitions": [("TxnOffsetCommitRequestPartition", {})]},
                    )
                ],
            ),
            3,
            (transactional(WRITE), group(READ), topic(READ)),
        ),
        Row(
            make(
                api.DESCRIBE_ACLS,
                resource_type_filter=1,
                pattern_type_filter=1,
                operation=1,
                permission_type=1,
                resource_name_filter=None,
                principal_filter=None,
                host_filter=None,
            ),
            3,
            (cluster(DESCRIBE),),
        ),
        Row(
            make(
                api.CREATE_ACLS,
                creations=[
                    (
                        "AclCreation",
                        {
                            "resource_type": 2,
                            "resource_name": "n",
                            "resource_pattern_type": 3,
                            "principal": "User:x",
                            "host": "*",
                            "operation": 3,
                            "permission_type": 3,
                        },
                    )
                ],
            ),
            3,
            (cluster(ALTER),),
        ),
        Row(
            make(
                api.DELETE_ACLS,
                filters=[
                    (
                        "DeleteAclsFilter",
                        {
                            "resource_type_filter": 2,
                            "pattern_type_filter": 3,
                            "operation": 3,
                            "permission_type": 3,
                            "resource_name_filter": "nothing",
                            "principal_filter": None,
                            "host_filter": None,
                        },
                    )
                ],
            ),
            3,
            (cluster(ALTER),),
        ),
        *[
            Row(
                make(
                    api.DESCRIBE_CONFIGS,
                    resources=[("DescribeConfigsResource", {"resource_type": kind, "resource_name": name})],
                ),
                4,
                (need,),
                note=f"-{kind}",
            )
            for kind, name, need in (
                (2, "t", topic(DESCRIBE_CONFIGS)),
                (4, "1", cluster(DESCRIBE_CONFIGS)),
                (8, "1", cluster(DESCRIBE_CONFIGS)),
                (16, "m", cluster(DESCRIBE_CONFIGS)),
                (32, "g", group(DESCRIBE_CONFIGS)),
            )
        ],
        *[
            Row(
                make(
                    api.ALTER_CONFIGS,
                    resources=[("AlterConfigsResource", {"resource_type": kind, "resource_name": name})],
                    validate_only=True,
                ),
                2,
                (need,),
                note=f"-{kind}",
            )
            for kind, name, need in (
                (2, "t", topic(ALTER_CONFIGS)),
                (4, "1", cluster(ALTER_CONFIGS)),
                (16, "m", cluster(ALTER_CONFIGS)),
                (32, "g", group(ALTER_CONFIGS)),
            )
        ],
        *[
            Row(
                make(
                    api.INCREMENTAL_ALTER_CONFIGS,
                    resources=[("AlterConfigsResource", {"resource_type": kind, "resource_name": name})],
                    validate_only=True,
                ),
                1,
                (need,),
                note=f"-{kind}",
            )
            for kind, name, need in (
                (2, "t", topic(ALTER_CONFIGS)),
                (4, "1", cluster(ALTER_CONFIGS)),
                (8, "1", cluster(ALTER_CONFIGS)),
                (32, "g", group(ALTER_CONFIGS)),
            )
        ],
        Row(
            make(
                api.INCREMENTAL_ALTER_CONFIGS,
                resources=[("AlterConfigsResource", {"resource_type": 8, "resource_name": "1"})],
                validate_only=True,
            ),
            1,
            (cluster(CLUSTER_ACTION),),
            on_controller=True,
            note="-logger",
        ),
        Row(
            make(
                api.ALTER_REPLICA_LOG_DIRS,
                dirs=[
                    (
                        "AlterReplicaLogDir",
                        {"path": "/x", "topics": [("AlterReplicaLogDirTopic", {"name": "t", "partitions": [0]})]},
                    )
                ],
            ),
            2,
            (cluster(ALTER),),
        ),
        Row(make(api.DESCRIBE_LOG_DIRS, topics=None), 4, (cluster(DESCRIBE),)),
        Row(
            make(
                api.CREATE_PARTITIONS,
                topics=[("CreatePartitionsTopic", {"name": "t", "count": 3, "assignments": None})],
                timeout_ms=100,
                validate_only=True,
            ),
            3,
            (topic(ALTER),),
        ),
        Row(make(api.DELETE_GROUPS, groups_names=["g"]), 2, (group(DELETE),)),
        Row(make(api.ELECT_LEADERS, topic_partitions=None, timeout_ms=100), 2, (cluster(ALTER),)),
        Row(make(api.ALTER_PARTITION_REASSIGNMENTS, timeout_ms=100), 0, (cluster(ALTER),)),
        Row(make(api.LIST_PARTITION_REASSIGNMENTS, timeout_ms=100, topics=None), 0, (cluster(DESCRIBE),)),
        Row(
            make(
                api.OFFSET_DELETE,
                group_id="g",
                topics=[
                    (
                        "OffsetDeleteRequestTopic",
                        {"name": "t", "partitions": [("OffsetDeleteRequestPartition", {})]},
                    )
                ],
            ),
            0,
            (group(DELETE),),
        ),
        Row(make(api.DESCRIBE_CLIENT_QUOTAS), 1, (cluster(DESCRIBE_CONFIGS),)),
        Row(
            make(
                api.ALTER_CLIENT_QUOTAS,
                entries=[
                    (
                        "EntryData",
                        {
                            "entity": [("EntityData", {"entity_type": "user", "entity_name": "u"})],
                            "ops": [("OpData", {"key": "producer_byte_rate", "value": 1.0})],
                        },
                    )
                ],
                validate_only=True,
            ),
            1,
            (cluster(ALTER_CONFIGS),),
        ),
        Row(make(api.DESCRIBE_USER_SCRAM_CREDENTIALS, users=[("UserName", {"name": "u"})]), 0, (cluster(DESCRIBE),)),
        Row(
            make(
                api.ALTER_USER_SCRAM_CREDENTIALS,
                deletions=[("ScramCredentialDeletion", {"name": "u", "mechanism": 1})],
            ),
            0,
            (cluster(ALTER),),
        ),
        Row(
            make(
                api.DESCRIBE_QUORUM,
                topics=[
                    (
                        "TopicData",
                        {"topic_name": "__cluster_metadata", "partitions": [("PartitionData", {})]},
                    )
                ],
            ),
            2,
            (cluster(DESCRIBE),),
        ),
        Row(make(api.UPDATE_FEATURES, timeout_ms=100), 1, (cluster(ALTER),)),
        Row(make(api.UNREGISTER_BROKER, broker_id=77), 0, (cluster(ALTER),)),
        Row(
            make(
                api.DESCRIBE_PRODUCERS,
                topics=[("TopicRequest", {"name": "t", "partition_indexes": [0]})],
            ),
            0,
            (topic(READ),),
        ),
        Row(make(api.DESCRIBE_TRANSACTIONS, transactional_ids=["x"]), 0, (transactional(DESCRIBE),)),
        Row(make(api.LIST_CONFIG_RESOURCES), 1, (cluster(DESCRIBE_CONFIGS),)),
        Row(
            make(
                api.CONSUMER_GROUP_HEARTBEAT,
                group_id="c",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=["t"],
                topic_partitions=[],
                **named,
            ),
            1,
            (group(READ, "c"), topic(DESCRIBE)),
        ),
        Row(make(api.CONSUMER_GROUP_DESCRIBE, group_ids=["g"]), 0, (group(DESCRIBE),)),
        Row(
            make(api.DESCRIBE_TOPIC_PARTITIONS, topics=[("TopicRequest", {"name": "t"})]),
            0,
            (topic(DESCRIBE),),
        ),
        Row(
            make(
                api.SHARE_GROUP_HEARTBEAT,
                group_id="s",
                member_epoch=0,
                subscribed_topic_names=["t"],
                **named,
            ),
            1,
            (group(READ, "s"), topic(DESCRIBE)),
        ),
        Row(make(api.SHARE_GROUP_DESCRIBE, group_ids=["g"]), 1, (group(DESCRIBE),)),
        Row(
            make(
                api.STREAMS_GROUP_HEARTBEAT,
                group_id="streams",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                topology=(
                    "Topology",
                    {"subtopologies": [("Subtopology", {"subtopology_id": "0", "source_topics": ["t"]})]},
                ),
                active_tasks=[],
                standby_tasks=[],
                warmup_tasks=[],
                process_id="p",
                **named,
            ),
            0,
            (group(READ, "streams"), topic(DESCRIBE)),
        ),
        Row(make(api.STREAMS_GROUP_DESCRIBE, group_ids=["g"]), 0, (group(DESCRIBE),)),
        Row(
            make(
                api.SHARE_FETCH,
                group_id="s",
                share_session_epoch=0,
                max_bytes=1000,
                max_records=10,
                batch_size=10,
                topics=[
                    ("FetchTopic", {"topic_id": topic_id, "partitions": [("FetchPartition", {"partition_index": 0})]})
                ],
                **named,
            ),
            1,
            (group(READ, "s"), topic(READ)),
        ),
        Row(
            make(
                api.SHARE_ACKNOWLEDGE,
                group_id="s",
                share_session_epoch=0,
                **named,
            ),
            1,
            (group(READ, "s"),),
        ),
        Row(
            make(
                api.DESCRIBE_SHARE_GROUP_OFFSETS,
                groups=[
                    (
                        "DescribeShareGroupOffsetsRequestGroup",
                        {
                            "group_id": "s",
                            "topics": [
                                (
                                    "DescribeShareGroupOffsetsRequestTopic",
                                    {"topic_name": "t", "partitions": [0]},
                                )
                            ],
                        },
                    )
                ],
            ),
            0,
            (group(DESCRIBE, "s"), topic(DESCRIBE)),
        ),
        Row(
            make(
                api.ALTER_SHARE_GROUP_OFFSETS,
                group_id="s2",
                topics=[
                    (
                        "AlterShareGroupOffsetsRequestTopic",
                        {
                            "topic_name": "t",
                            "partitions": [("AlterShareGroupOffsetsRequestPartition", {"start_offset": 0})],
                        },
                    )
                ],
            ),
            0,
            (group(READ, "s2"), topic(READ)),
        ),
        Row(
            make(
                api.DELETE_SHARE_GROUP_OFFSETS,
                group_id="s2",
                topics=[("DeleteShareGroupOffsetsRequestTopic", {"topic_name": "t"})],
            ),
            0,
            (group(DELETE, "s2"), topic(READ)),
        ),
        *[
            Row(
                make(
                    key,
                    group_id="s",
                    topics=[(f"{name}Data", {"topic_id": topic_id, "partitions": [("PartitionData", {})]})],
                ),
                0,
                (cluster(CLUSTER_ACTION),),
            )
            for key, name in (
                (api.INITIALIZE_SHARE_GROUP_STATE, "InitializeState"),
                (api.READ_SHARE_GROUP_STATE, "ReadState"),
                (api.WRITE_SHARE_GROUP_STATE, "WriteState"),
                (api.DELETE_SHARE_GROUP_STATE, "DeleteState"),
                (api.READ_SHARE_GROUP_STATE_SUMMARY, "ReadStateSummary"),
            )
        ],
        Row(make(api.ADD_RAFT_VOTER, cluster_id="x"), 0, (cluster(ALTER),)),
        Row(make(api.REMOVE_RAFT_VOTER, cluster_id="x"), 0, (cluster(ALTER),)),
        *[
            Row(make(key), version, (cluster(CLUSTER_ACTION),), on_controller=True)
            for key, version in (
                (api.VOTE, 0),
                (api.BEGIN_QUORUM_EPOCH, 0),
                (api.END_QUORUM_EPOCH, 0),
                (api.FETCH, 17),
                (api.FETCH_SNAPSHOT, 0),
                (api.ALTER_PARTITION, 3),
                (api.ENVELOPE, 0),
                (api.BROKER_REGISTRATION, 1),
                (api.BROKER_HEARTBEAT, 0),
                (api.ALLOCATE_PRODUCER_IDS, 0),
                (api.CONTROLLER_REGISTRATION, 0),
                (api.ASSIGN_REPLICAS_TO_DIRS, 0),
                (api.UPDATE_RAFT_VOTER, 0),
            )
        ],
        Row(make(api.DESCRIBE_CLUSTER, endpoint_type=2), 1, (cluster(ALTER),), on_controller=True),
    ]
