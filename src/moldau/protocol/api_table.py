"""Every api: its key as a constant, and a row with its versions and listeners (generated).

Written by tools/generate_messages.py from schemas/messages. A row: key, name, lowest and highest version,
first flexible version, highest stable version, on broker listeners, on controller listeners.
"""

from __future__ import annotations

from typing import Final

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DELETE_RECORDS: Final = 21
INIT_PRODUCER_ID: Final = 22
OFFSET_FOR_LEADER_EPOCH: Final = 23
ADD_PARTITIONS_TO_TXN: Final = 24
ADD_OFFSETS_TO_TXN: Final = 25
END_TXN: Final = 26
WRITE_TXN_MARKERS: Final = 27
TXN_OFFSET_COMMIT: Final = 28
DESCRIBE_ACLS: Final = 29
CREATE_ACLS: Final = 30
DELETE_ACLS: Final = 31
DESCRIBE_CONFIGS: Final = 32
ALTER_CONFIGS: Final = 33
ALTER_REPLICA_LOG_DIRS: Final = 34
DESCRIBE_LOG_DIRS: Final = 35
SASL_AUTHENTICATE: Final = 36
CREATE_PARTITIONS: Final = 37
CREATE_DELEGATION_TOKEN: Final = 38
RENEW_DELEGATION_TOKEN: Final = 39
EXPIRE_DELEGATION_TOKEN: Final = 40
DESCRIBE_DELEGATION_TOKEN: Final = 41
DELETE_GROUPS: Final = 42
ELECT_LEADERS: Final = 43
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
OFFSET_DELETE: Final = 47
DESCRIBE_CLIENT_QUOTAS: Final = 48
ALTER_CLIENT_QUOTAS: Final = 49
DESCRIBE_USER_SCRAM_CREDENTIALS: Final = 50
ALTER_USER_SCRAM_CREDENTIALS: Final = 51
VOTE: Final = 52
BEGIN_QUORUM_EPOCH: Final = 53
END_QUORUM_EPOCH: Final = 54
DESCRIBE_QUORUM: Final = 55
ALTER_PARTITION: Final = 56
UPDATE_FEATURES: Final = 57
ENVELOPE: Final = 58
FETCH_SNAPSHOT: Final = 59
DESCRIBE_CLUSTER: Final = 60
DESCRIBE_PRODUCERS: Final = 61
BROKER_REGISTRATION: Final = 62
BROKER_HEARTBEAT: Final = 63
UNREGISTER_BROKER: Final = 64
DESCRIBE_TRANSACTIONS: Final = 65
LIST_TRANSACTIONS: Final = 66
ALLOCATE_PRODUCER_IDS: Final = 67
CONSUMER_GROUP_HEARTBEAT: Final = 68
CONSUMER_GROUP_DESCRIBE: Final = 69
CONTROLLER_REGISTRATION: Final = 70
GET_TELEMETRY_SUBSCRIPTIONS: Final = 71
PUSH_TELEMETRY: Final = 72
ASSIGN_REPLICAS_TO_DIRS: Final = 73
LIST_CONFIG_RESOURCES: Final = 74
DESCRIBE_TOPIC_PARTITIONS: Final = 75
SHARE_GROUP_HEARTBEAT: Final = 76
SHARE_GROUP_DESCRIBE: Final = 77
SHARE_FETCH: Final = 78
SHARE_ACKNOWLEDGE: Final = 79
ADD_RAFT_VOTER: Final = 80
REMOVE_RAFT_VOTER: Final = 81
UPDATE_RAFT_VOTER: Final = 82
INITIALIZE_SHARE_GROUP_STATE: Final = 83
READ_SHARE_GROUP_STATE: Final = 84
WRITE_SHARE_GROUP_STATE: Final = 85
DELETE_SHARE_GROUP_STATE: Final = 86
READ_SHARE_GROUP_STATE_SUMMARY: Final = 87
STREAMS_GROUP_HEARTBEAT: Final = 88
STREAMS_GROUP_DESCRIBE: Final = 89
DESCRIBE_SHARE_GROUP_OFFSETS: Final = 90
ALTER_SHARE_GROUP_OFFSETS: Final = 91
DELETE_SHARE_GROUP_OFFSETS: Final = 92

ROWS: Final[tuple[tuple[int, str, int, int, int, int, bool, bool], ...]] = (
    (PRODUCE, "Produce", 3, 13, 9, 13, True, False),
    (FETCH, "Fetch", 4, 18, 12, 18, True, True),
    (LIST_OFFSETS, "ListOffsets", 1, 11, 6, 11, True, False),
    (METADATA, "Metadata", 0, 13, 9, 13, True, False),
    (OFFSET_COMMIT, "OffsetCommit", 2, 10, 8, 10, True, False),
    (OFFSET_FETCH, "OffsetFetch", 1, 10, 6, 10, True, False),
    (FIND_COORDINATOR, "FindCoordinator", 0, 6, 3, 6, True, False),
    (JOIN_GROUP, "JoinGroup", 0, 9, 6, 9, True, False),
    (HEARTBEAT, "Heartbeat", 0, 4, 4, 4, True, False),
    (LEAVE_GROUP, "LeaveGroup", 0, 5, 4, 5, True, False),
    (SYNC_GROUP, "SyncGroup", 0, 5, 4, 5, True, False),
    (DESCRIBE_GROUPS, "DescribeGroups", 0, 6, 5, 6, True, False),
    (LIST_GROUPS, "ListGroups", 0, 5, 3, 5, True, False),
    (SASL_HANDSHAKE, "SaslHandshake", 0, 1, 2, 1, True, True),
    (API_VERSIONS, "ApiVersions", 0, 4, 3, 4, True, True),
    (CREATE_TOPICS, "CreateTopics", 2, 7, 5, 7, True, True),
    (DELETE_TOPICS, "DeleteTopics", 1, 6, 4, 6, True, True),
    (DELETE_RECORDS, "DeleteRecords", 0, 2, 2, 2, True, False),
    (INIT_PRODUCER_ID, "InitProducerId", 0, 6, 2, 5, True, False),
    (OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 2, 4, 4, 4, True, False),
    (ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", 0, 5, 3, 5, True, False),
    (ADD_OFFSETS_TO_TXN, "AddOffsetsToTxn", 0, 4, 3, 4, True, False),
    (END_TXN, "EndTxn", 0, 5, 3, 5, True, False),
    (WRITE_TXN_MARKERS, "WriteTxnMarkers", 1, 2, 1, 2, True, False),
    (TXN_OFFSET_COMMIT, "TxnOffsetCommit", 0, 5, 3, 5, True, False),
    (DESCRIBE_ACLS, "DescribeAcls", 1, 3, 2, 3, True, True),
    (CREATE_ACLS, "CreateAcls", 1, 3, 2, 3, True, True),
    (DELETE_ACLS, "DeleteAcls", 1, 3, 2, 3, True, True),
    (DESCRIBE_CONFIGS, "DescribeConfigs", 1, 4, 4, 4, True, True),
    (ALTER_CONFIGS, "AlterConfigs", 0, 2, 2, 2, True, True),
    (ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirs", 1, 2, 2, 2, True, False),
    (DESCRIBE_LOG_DIRS, "DescribeLogDirs", 1, 5, 2, 5, True, False),
    (SASL_AUTHENTICATE, "SaslAuthenticate", 0, 2, 2, 2, True, True),
    (CREATE_PARTITIONS, "CreatePartitions", 0, 3, 2, 3, True, True),
    (CREATE_DELEGATION_TOKEN, "CreateDelegationToken", 1, 3, 2, 3, True, True),
    (RENEW_DELEGATION_TOKEN, "RenewDelegationToken", 1, 2, 2, 2, True, True),
    (EXPIRE_DELEGATION_TOKEN, "ExpireDelegationToken", 1, 2, 2, 2, True, True),
    (DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationToken", 1, 3, 2, 3, True, True),
    (DELETE_GROUPS, "DeleteGroups", 0, 2, 2, 2, True, False),
    (ELECT_LEADERS, "ElectLeaders", 0, 2, 2, 2, True, True),
    (INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", 0, 1, 1, 1, True, True),
    (ALTER_PARTITION_REASSIGNMENTS, "AlterPartitionReassignments", 0, 1, 0, 1, True, True),
    (LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignments", 0, 0, 0, 0, True, True),
    (OFFSET_DELETE, "OffsetDelete", 0, 0, 1, 0, True, False),
    (DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", 0, 1, 1, 1, True, False),
    (ALTER_CLIENT_QUOTAS, "AlterClientQuotas", 0, 1, 1, 1, True, True),
    (DESCRIBE_USER_SCRAM_CREDENTIALS, "DescribeUserScramCredentials", 0, 0, 0, 0, True, True),
    (ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentials", 0, 0, 0, 0, True, True),
    (VOTE, "Vote", 0, 2, 0, 2, False, True),
    (BEGIN_QUORUM_EPOCH, "BeginQuorumEpoch", 0, 1, 1, 1, False, True),
    (END_QUORUM_EPOCH, "EndQuorumEpoch", 0, 1, 1, 1, False, True),
    (DESCRIBE_QUORUM, "DescribeQuorum", 0, 2, 0, 2, True, True),
    (ALTER_PARTITION, "AlterPartition", 2, 3, 2, 3, False, True),
    (UPDATE_FEATURES, "UpdateFeatures", 0, 2, 0, 2, True, True),
    (ENVELOPE, "Envelope", 0, 0, 0, 0, False, True),
    (FETCH_SNAPSHOT, "FetchSnapshot", 0, 1, 0, 1, False, True),
    (DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, 0, 2, True, True),
    (DESCRIBE_PRODUCERS, "DescribeProducers", 0, 0, 0, 0, True, False),
    (BROKER_REGISTRATION, "BrokerRegistration", 0, 4, 0, 4, False, True),
    (BROKER_HEARTBEAT, "BrokerHeartbeat", 0, 2, 0, 2, False, True),
    (UNREGISTER_BROKER, "UnregisterBroker", 0, 0, 0, 0, True, True),
    (DESCRIBE_TRANSACTIONS, "DescribeTransactions", 0, 0, 0, 0, True, False),
    (LIST_TRANSACTIONS, "ListTransactions", 0, 2, 0, 2, True, False),
    (ALLOCATE_PRODUCER_IDS, "AllocateProducerIds", 0, 0, 0, 0, False, True),
    (CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat", 0, 1, 0, 1, True, False),
    (CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", 0, 1, 0, 1, True, False),
    (CONTROLLER_REGISTRATION, "ControllerRegistration", 0, 0, 0, 0, False, True),
    (GET_TELEMETRY_SUBSCRIPTIONS, "GetTelemetrySubscriptions", 0, 0, 0, 0, True, False),
    (PUSH_TELEMETRY, "PushTelemetry", 0, 0, 0, 0, True, False),
    (ASSIGN_REPLICAS_TO_DIRS, "AssignReplicasToDirs", 0, 0, 0, 0, False, True),
    (LIST_CONFIG_RESOURCES, "ListConfigResources", 0, 1, 0, 1, True, False),
    (DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitions", 0, 0, 0, 0, True, False),
    (SHARE_GROUP_HEARTBEAT, "ShareGroupHeartbeat", 1, 1, 1, 1, True, False),
    (SHARE_GROUP_DESCRIBE, "ShareGroupDescribe", 1, 1, 1, 1, True, False),
    (SHARE_FETCH, "ShareFetch", 1, 2, 1, 2, True, False),
    (SHARE_ACKNOWLEDGE, "ShareAcknowledge", 1, 2, 1, 2, True, False),
    (ADD_RAFT_VOTER, "AddRaftVoter", 0, 1, 0, 1, True, True),
    (REMOVE_RAFT_VOTER, "RemoveRaftVoter", 0, 0, 0, 0, True, True),
    (UPDATE_RAFT_VOTER, "UpdateRaftVoter", 0, 0, 0, 0, False, True),
    (INITIALIZE_SHARE_GROUP_STATE, "InitializeShareGroupState", 0, 0, 0, 0, True, False),
    (READ_SHARE_GROUP_STATE, "ReadShareGroupState", 0, 0, 0, 0, True, False),
    (WRITE_SHARE_GROUP_STATE, "WriteShareGroupState", 0, 1, 0, 1, True, False),
    (DELETE_SHARE_GROUP_STATE, "DeleteShareGroupState", 0, 0, 0, 0, True, False),
    (READ_SHARE_GROUP_STATE_SUMMARY, "ReadShareGroupStateSummary", 0, 1, 0, 1, True, False),
    (STREAMS_GROUP_HEARTBEAT, "StreamsGroupHeartbeat", 0, 0, 0, 0, True, False),
    (STREAMS_GROUP_DESCRIBE, "StreamsGroupDescribe", 0, 0, 0, 0, True, False),
    (DESCRIBE_SHARE_GROUP_OFFSETS, "DescribeShareGroupOffsets", 0, 1, 0, 1, True, False),
    (ALTER_SHARE_GROUP_OFFSETS, "AlterShareGroupOffsets", 0, 0, 0, 0, True, False),
    (DELETE_SHARE_GROUP_OFFSETS, "DeleteShareGroupOffsets", 0, 0, 0, 0, True, False),
)
