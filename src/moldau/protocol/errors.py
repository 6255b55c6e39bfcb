"""Every error code of the protocol: constants, the table, and the exception that carries a code below the line."""

from __future__ import annotations

from typing import Final, NamedTuple

from mypy_extensions import mypyc_attr

UNKNOWN_SERVER_ERROR: Final = -1
NONE: Final = 0
OFFSET_OUT_OF_RANGE: Final = 1
CORRUPT_MESSAGE: Final = 2
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
INVALID_FETCH_SIZE: Final = 4
LEADER_NOT_AVAILABLE: Final = 5
NOT_LEADER_OR_FOLLOWER: Final = 6
REQUEST_TIMED_OUT: Final = 7
BROKER_NOT_AVAILABLE: Final = 8
REPLICA_NOT_AVAILABLE: Final = 9
MESSAGE_TOO_LARGE: Final = 10
STALE_CONTROLLER_EPOCH: Final = 11
OFFSET_METADATA_TOO_LARGE: Final = 12
NETWORK_EXCEPTION: Final = 13
COORDINATOR_LOAD_IN_PROGRESS: Final = 14
COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
INVALID_TOPIC_EXCEPTION: Final = 17
RECORD_LIST_TOO_LARGE: Final = 18
NOT_ENOUGH_REPLICAS: Final = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = 20
INVALID_REQUIRED_ACKS: Final = 21
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_GROUP_PROTOCOL: Final = 23
INVALID_GROUP_ID: Final = 24
UNKNOWN_MEMBER_ID: Final = 25
INVALID_SESSION_TIMEOUT: Final = 26
REBALANCE_IN_PROGRESS: Final = 27
INVALID_COMMIT_OFFSET_SIZE: Final = 28
TOPIC_AUTHORIZATION_FAILED: Final = 29
GROUP_AUTHORIZATION_FAILED: Final = 30
CLUSTER_AUTHORIZATION_FAILED: Final = 31
INVALID_TIMESTAMP: Final = 32
UNSUPPORTED_SASL_MECHANISM: Final = 33
ILLEGAL_SASL_STATE: Final = 34
UNSUPPORTED_VERSION: Final = 35
TOPIC_ALREADY_EXISTS: Final = 36
INVALID_PARTITIONS: Final = 37
INVALID_REPLICATION_FACTOR: Final = 38
INVALID_REPLICA_ASSIGNMENT: Final = 39
INVALID_CONFIG: Final = 40
NOT_CONTROLLER: Final = 41
INVALID_REQUEST: Final = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT: Final = 43
POLICY_VIOLATION: Final = 44
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = 45
DUPLICATE_SEQUENCE_NUMBER: Final = 46
INVALID_PRODUCER_EPOCH: Final = 47
INVALID_TXN_STATE: Final = 48
INVALID_PRODUCER_ID_MAPPING: Final = 49
INVALID_TRANSACTION_TIMEOUT: Final = 50
CONCURRENT_TRANSACTIONS: Final = 51
TRANSACTION_COORDINATOR_FENCED: Final = 52
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
SECURITY_DISABLED: Final = 54
OPERATION_NOT_ATTEMPTED: Final = 55
KAFKA_STORAGE_ERROR: Final = 56
LOG_DIR_NOT_FOUND: Final = 57
SASL_AUTHENTICATION_FAILED: Final = 58
UNKNOWN_PRODUCER_ID: Final = 59
REASSIGNMENT_IN_PROGRESS: Final = 60
DELEGATION_TOKEN_AUTH_DISABLED: Final = 61
DELEGATION_TOKEN_NOT_FOUND: Final = 62
DELEGATION_TOKEN_OWNER_MISMATCH: Final = 63
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: Final = 64
DELEGATION_TOKEN_AUTHORIZATION_FAILED: Final = 65
DELEGATION_TOKEN_EXPIRED: Final = 66
INVALID_PRINCIPAL_TYPE: Final = 67
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69
FETCH_SESSION_ID_NOT_FOUND: Final = 70
INVALID_FETCH_SESSION_EPOCH: Final = 71
LISTENER_NOT_FOUND: Final = 72
TOPIC_DELETION_DISABLED: Final = 73
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75
UNSUPPORTED_COMPRESSION_TYPE: Final = 76
STALE_BROKER_EPOCH: Final = 77
OFFSET_NOT_AVAILABLE: Final = 78
MEMBER_ID_REQUIRED: Final = 79
PREFERRED_LEADER_NOT_AVAILABLE: Final = 80
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82
ELIGIBLE_LEADERS_NOT_AVAILABLE: Final = 83
ELECTION_NOT_NEEDED: Final = 84
NO_REASSIGNMENT_IN_PROGRESS: Final = 85
GROUP_SUBSCRIBED_TO_TOPIC: Final = 86
INVALID_RECORD: Final = 87
UNSTABLE_OFFSET_COMMIT: Final = 88
THROTTLING_QUOTA_EXCEEDED: Final = 89
PRODUCER_FENCED: Final = 90
RESOURCE_NOT_FOUND: Final = 91
DUPLICATE_RESOURCE: Final = 92
UNACCEPTABLE_CREDENTIAL: Final = 93
INCONSISTENT_VOTER_SET: Final = 94
INVALID_UPDATE_VERSION: Final = 95
FEATURE_UPDATE_FAILED: Final = 96
PRINCIPAL_DESERIALIZATION_FAILURE: Final = 97
SNAPSHOT_NOT_FOUND: Final = 98
POSITION_OUT_OF_RANGE: Final = 99
UNKNOWN_TOPIC_ID: Final = 100
DUPLICATE_BROKER_REGISTRATION: Final = 101
BROKER_ID_NOT_REGISTERED: Final = 102
INCONSISTENT_TOPIC_ID: Final = 103
INCONSISTENT_CLUSTER_ID: Final = 104
TRANSACTIONAL_ID_NOT_FOUND: Final = 105
FETCH_SESSION_TOPIC_ID_ERROR: Final = 106
INELIGIBLE_REPLICA: Final = 107
NEW_LEADER_ELECTED: Final = 108
OFFSET_MOVED_TO_TIERED_STORAGE: Final = 109
FENCED_MEMBER_EPOCH: Final = 110
UNRELEASED_INSTANCE_ID: Final = 111
UNSUPPORTED_ASSIGNOR: Final = 112
STALE_MEMBER_EPOCH: Final = 113
MISMATCHED_ENDPOINT_TYPE: Final = 114
UNSUPPORTED_ENDPOINT_TYPE: Final = 115
UNKNOWN_CONTROLLER_ID: Final = 116
UNKNOWN_SUBSCRIPTION_ID: Final = 117
TELEMETRY_TOO_LARGE: Final = 118
INVALID_REGISTRATION: Final = 119
TRANSACTION_ABORTABLE: Final = 120
INVALID_RECORD_STATE: Final = 121
SHARE_SESSION_NOT_FOUND: Final = 122
INVALID_SHARE_SESSION_EPOCH: Final = 123
FENCED_STATE_EPOCH: Final = 124
INVALID_VOTER_KEY: Final = 125
DUPLICATE_VOTER: Final = 126
VOTER_NOT_FOUND: Final = 127
INVALID_REGULAR_EXPRESSION: Final = 128
REBOOTSTRAP_REQUIRED: Final = 129
STREAMS_INVALID_TOPOLOGY: Final = 130
STREAMS_INVALID_TOPOLOGY_EPOCH: Final = 131
STREAMS_TOPOLOGY_FENCED: Final = 132
SHARE_SESSION_LIMIT_REACHED: Final = 133

# Code, name, what a client may do, and the text for a response that has none of its own. A client may "retry" at once,
# "refresh" what it knows (a coordinator, say) and retry, or refresh its "metadata" and retry; "-": it must give up.
TABLE: Final = """
 -1  UNKNOWN_SERVER_ERROR                   -         The server met an unexpected failure.
  0  NONE                                   -
  1  OFFSET_OUT_OF_RANGE                    -         The log has no record at this offset.
  2  CORRUPT_MESSAGE                        retry     The record batch is damaged: checksum, size or format is wrong.
  3  UNKNOWN_TOPIC_OR_PARTITION             metadata  This server does not host this topic-partition.
  4  INVALID_FETCH_SIZE                     -         The fetch size is not valid.
  5  LEADER_NOT_AVAILABLE                   metadata  There is no leader for this topic-partition at the moment.
  6  NOT_LEADER_OR_FOLLOWER                 metadata  This broker does not lead, or does not replicate, the partition.
  7  REQUEST_TIMED_OUT                      retry     The request timed out.
  8  BROKER_NOT_AVAILABLE                   -         The broker is not available.
  9  REPLICA_NOT_AVAILABLE                  metadata  The replica is not available on this broker.
 10  MESSAGE_TOO_LARGE                      -         The record batch is larger than the server accepts.
 11  STALE_CONTROLLER_EPOCH                 -         The controller has moved to another broker.
 12  OFFSET_METADATA_TOO_LARGE              -         The metadata of the committed offset is too large.
 13  NETWORK_EXCEPTION                      metadata  The server closed the connection before it responded.
 14  COORDINATOR_LOAD_IN_PROGRESS           retry     The coordinator is still loading.
 15  COORDINATOR_NOT_AVAILABLE              refresh   The coordinator is not available.
 16  NOT_COORDINATOR                        refresh   This broker is not the right coordinator.
 17  INVALID_TOPIC_EXCEPTION                -         The topic name is not valid, or the topic cannot be used so.
 18  RECORD_LIST_TOO_LARGE                  -         The record batch is larger than a segment can be.
 19  NOT_ENOUGH_REPLICAS                    retry     Fewer replicas are in sync than required; nothing was written.
 20  NOT_ENOUGH_REPLICAS_AFTER_APPEND       retry     Written, but to fewer in-sync replicas than required.
 21  INVALID_REQUIRED_ACKS                  -         Required acks must be -1, 0 or 1.
 22  ILLEGAL_GENERATION                     -         The generation is not that of the group.
 23  INCONSISTENT_GROUP_PROTOCOL            -         The protocols of the member do not go with those of the group.
 24  INVALID_GROUP_ID                       -         The group id is not valid.
 25  UNKNOWN_MEMBER_ID                      -         The coordinator does not know this member.
 26  INVALID_SESSION_TIMEOUT                -         The session timeout is outside of the range that is allowed.
 27  REBALANCE_IN_PROGRESS                  -         The group is rebalancing; join again.
 28  INVALID_COMMIT_OFFSET_SIZE             -         The committed offset is too large to be stored.
 29  TOPIC_AUTHORIZATION_FAILED             -         Not authorized to access this topic.
 30  GROUP_AUTHORIZATION_FAILED             -         Not authorized to access this group.
 31  CLUSTER_AUTHORIZATION_FAILED           -         Not authorized for this operation on the cluster.
 32  INVALID_TIMESTAMP                      -         The timestamp of a record is out of the accepted range.
 33  UNSUPPORTED_SASL_MECHANISM             -         The broker does not support this SASL mechanism.
 34  ILLEGAL_SASL_STATE                     -         The request is not valid in this state of the SASL exchange.
 35  UNSUPPORTED_VERSION                    -         This version of the api is not supported.
 36  TOPIC_ALREADY_EXISTS                   -         A topic of this name already exists.
 37  INVALID_PARTITIONS                     -         The number of partitions is not valid.
 38  INVALID_REPLICATION_FACTOR             -         The replication factor is below 1 or above the available brokers.
 39  INVALID_REPLICA_ASSIGNMENT             -         The replica assignment is not valid.
 40  INVALID_CONFIG                         -         The configuration is not valid.
 41  NOT_CONTROLLER                         retry     This is not the active controller.
 42  INVALID_REQUEST                        -         The request is not valid.
 43  UNSUPPORTED_FOR_MESSAGE_FORMAT         -         The message format of the log does not support the request.
 44  POLICY_VIOLATION                       -         The request violates the configured policy.
 45  OUT_OF_ORDER_SEQUENCE_NUMBER           -         The sequence number is not the next one of this producer.
 46  DUPLICATE_SEQUENCE_NUMBER              -         The sequence number was received before.
 47  INVALID_PRODUCER_EPOCH                 -         The producer's epoch is old; a newer producer took over.
 48  INVALID_TXN_STATE                      -         The operation is not valid in this state of the transaction.
 49  INVALID_PRODUCER_ID_MAPPING            -         The producer id is not the one of this transactional id.
 50  INVALID_TRANSACTION_TIMEOUT            -         The transaction timeout is larger than the broker allows.
 51  CONCURRENT_TRANSACTIONS                retry     The previous operation on this transactional id is not finished.
 52  TRANSACTION_COORDINATOR_FENCED         -         The marker comes from a coordinator that was replaced.
 53  TRANSACTIONAL_ID_AUTHORIZATION_FAILED  -         Not authorized to use this transactional id.
 54  SECURITY_DISABLED                      -         Security features are disabled.
 55  OPERATION_NOT_ATTEMPTED                -         Not attempted, because another operation of the request failed.
 56  KAFKA_STORAGE_ERROR                    metadata  The log directory could not be read or written.
 57  LOG_DIR_NOT_FOUND                      -         The broker has no such log directory.
 58  SASL_AUTHENTICATION_FAILED             -         SASL authentication failed.
 59  UNKNOWN_PRODUCER_ID                    -         The broker has no state for this producer id.
 60  REASSIGNMENT_IN_PROGRESS               -         A partition reassignment is in progress.
 61  DELEGATION_TOKEN_AUTH_DISABLED         -         Delegation tokens are not enabled.
 62  DELEGATION_TOKEN_NOT_FOUND             -         The server does not know this delegation token.
 63  DELEGATION_TOKEN_OWNER_MISMATCH        -         The delegation token belongs to another principal.
 64  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED   -         Delegation token requests are not allowed on this connection.
 65  DELEGATION_TOKEN_AUTHORIZATION_FAILED  -         Not authorized for this delegation token.
 66  DELEGATION_TOKEN_EXPIRED               -         The delegation token has expired.
 67  INVALID_PRINCIPAL_TYPE                 -         The type of the principal is not supported.
 68  NON_EMPTY_GROUP                        -         The group is not empty.
 69  GROUP_ID_NOT_FOUND                     -         There is no group of this id.
 70  FETCH_SESSION_ID_NOT_FOUND             retry     The fetch session is not known.
 71  INVALID_FETCH_SESSION_EPOCH            retry     The epoch of the fetch session is not the expected one.
 72  LISTENER_NOT_FOUND                     metadata  The leader has no listener of the kind that was asked on.
 73  TOPIC_DELETION_DISABLED                -         Deleting topics is disabled.
 74  FENCED_LEADER_EPOCH                    metadata  The leader epoch in the request is older than the broker's.
 75  UNKNOWN_LEADER_EPOCH                   retry     The leader epoch in the request is newer than the broker's.
 76  UNSUPPORTED_COMPRESSION_TYPE           -         The client's version does not support this compression type.
 77  STALE_BROKER_EPOCH                     -         The broker epoch has changed.
 78  OFFSET_NOT_AVAILABLE                   retry     The new leader's high watermark has not caught up yet.
 79  MEMBER_ID_REQUIRED                     -         Join again with the member id from this response.
 80  PREFERRED_LEADER_NOT_AVAILABLE         metadata  The preferred leader is not available.
 81  GROUP_MAX_SIZE_REACHED                 -         The group has as many members as it may have.
 82  FENCED_INSTANCE_ID                     -         Another member with the same group instance id took over.
 83  ELIGIBLE_LEADERS_NOT_AVAILABLE         metadata  No replica that may become leader is available.
 84  ELECTION_NOT_NEEDED                    metadata  The partition needs no leader election.
 85  NO_REASSIGNMENT_IN_PROGRESS            -         No partition reassignment is in progress.
 86  GROUP_SUBSCRIBED_TO_TOPIC              -         The group subscribes to the topic; its offsets cannot be deleted.
 87  INVALID_RECORD                         -         The broker refused a record of the batch.
 88  UNSTABLE_OFFSET_COMMIT                 retry     There are offsets of a transaction that is still open.
 89  THROTTLING_QUOTA_EXCEEDED              retry     The throttling quota was exceeded.
 90  PRODUCER_FENCED                        -         A newer producer with the same transactional id took over.
 91  RESOURCE_NOT_FOUND                     -         The request names a resource that does not exist.
 92  DUPLICATE_RESOURCE                     -         The request names the same resource twice.
 93  UNACCEPTABLE_CREDENTIAL                -         The credential does not meet the requirements.
 94  INCONSISTENT_VOTER_SET                 -         One of the two is not in the set of voters, or the sets differ.
 95  INVALID_UPDATE_VERSION                 -         The version of the update is not valid.
 96  FEATURE_UPDATE_FAILED                  -         The features could not be updated.
 97  PRINCIPAL_DESERIALIZATION_FAILURE      -         The principal of a forwarded request could not be read.
 98  SNAPSHOT_NOT_FOUND                     -         The snapshot was not found.
 99  POSITION_OUT_OF_RANGE                  -         The position lies outside of the snapshot.
100  UNKNOWN_TOPIC_ID                       metadata  This server does not host a topic of this id.
101  DUPLICATE_BROKER_REGISTRATION          -         The broker id is in use by another broker.
102  BROKER_ID_NOT_REGISTERED               -         The broker id is not registered.
103  INCONSISTENT_TOPIC_ID                  metadata  The topic id in the log is not the one in the request.
104  INCONSISTENT_CLUSTER_ID                -         The cluster id in the request is not that of this server.
105  TRANSACTIONAL_ID_NOT_FOUND             -         The transactional id was not found.
106  FETCH_SESSION_TOPIC_ID_ERROR           retry     The fetch session mixes topic ids and topic names.
107  INELIGIBLE_REPLICA                     -         The new in-sync replicas contain one that may not be in sync.
108  NEW_LEADER_ELECTED                     -         The in-sync replicas were changed and a new leader was elected.
109  OFFSET_MOVED_TO_TIERED_STORAGE         -         The offset is in tiered storage.
110  FENCED_MEMBER_EPOCH                    -         The coordinator fenced the epoch of the member; it must rejoin.
111  UNRELEASED_INSTANCE_ID                 -         Another member of the group still uses this instance id.
112  UNSUPPORTED_ASSIGNOR                   -         The group does not support the assignor of the member.
113  STALE_MEMBER_EPOCH                     -         The member's epoch is old; it must ask for the current one.
114  MISMATCHED_ENDPOINT_TYPE               -         The request came to an endpoint of the wrong type.
115  UNSUPPORTED_ENDPOINT_TYPE              -         This type of endpoint is not supported yet.
116  UNKNOWN_CONTROLLER_ID                  -         There is no controller of this id.
117  UNKNOWN_SUBSCRIPTION_ID                -         The telemetry subscription has changed; ask for it again.
118  TELEMETRY_TOO_LARGE                    -         The telemetry is larger than the broker accepts.
119  INVALID_REGISTRATION                   -         The controller refused the registration of the broker.
120  TRANSACTION_ABORTABLE                  -         The transaction cannot go on; it can be aborted.
121  INVALID_RECORD_STATE                   -         The record is not in a state in which it can be acknowledged.
122  SHARE_SESSION_NOT_FOUND                retry     The share session is not known.
123  INVALID_SHARE_SESSION_EPOCH            retry     The epoch of the share session is not the expected one.
124  FENCED_STATE_EPOCH                     -         The share coordinator refused the request: the epoch is old.
125  INVALID_VOTER_KEY                      -         The voter key is not that of the receiver.
126  DUPLICATE_VOTER                        -         The voter is in the set of voters already.
127  VOTER_NOT_FOUND                        -         The voter is not in the set of voters.
128  INVALID_REGULAR_EXPRESSION             -         The regular expression is not valid.
129  REBOOTSTRAP_REQUIRED                   -         The client's metadata is out of date; it must bootstrap again.
130  STREAMS_INVALID_TOPOLOGY               -         The topology is not valid.
131  STREAMS_INVALID_TOPOLOGY_EPOCH         -         The epoch of the topology is not valid.
132  STREAMS_TOPOLOGY_FENCED                -         The epoch of the topology is old.
133  SHARE_SESSION_LIMIT_REACHED            retry     The broker holds as many share sessions as it may.
"""

# The classes that Kafka's own clients throw, where the name does not follow from that of the error.
EXCEPTIONS: Final[dict[str, str]] = {
    "UNKNOWN_SERVER_ERROR": "UnknownServerException",
    "CORRUPT_MESSAGE": "CorruptRecordException",
    "REQUEST_TIMED_OUT": "TimeoutException",
    "MESSAGE_TOO_LARGE": "RecordTooLargeException",
    "STALE_CONTROLLER_EPOCH": "ControllerMovedException",
    "OFFSET_METADATA_TOO_LARGE": "OffsetMetadataTooLarge",
    "NETWORK_EXCEPTION": "NetworkException",
    "INVALID_TOPIC_EXCEPTION": "InvalidTopicException",
    "RECORD_LIST_TOO_LARGE": "RecordBatchTooLargeException",
    "TOPIC_AUTHORIZATION_FAILED": "TopicAuthorizationException",
    "GROUP_AUTHORIZATION_FAILED": "GroupAuthorizationException",
    "CLUSTER_AUTHORIZATION_FAILED": "ClusterAuthorizationException",
    "TOPIC_ALREADY_EXISTS": "TopicExistsException",
    "INVALID_CONFIG": "InvalidConfigurationException",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "OutOfOrderSequenceException",
    "DUPLICATE_SEQUENCE_NUMBER": "DuplicateSequenceException",
    "INVALID_PRODUCER_ID_MAPPING": "InvalidPidMappingException",
    "INVALID_TRANSACTION_TIMEOUT": "InvalidTxnTimeoutException",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "TransactionalIdAuthorizationException",
    "KAFKA_STORAGE_ERROR": "KafkaStorageException",
    "SASL_AUTHENTICATION_FAILED": "SaslAuthenticationException",
    "DELEGATION_TOKEN_AUTH_DISABLED": "DelegationTokenDisabledException",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": "UnsupportedByAuthenticationException",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": "DelegationTokenAuthorizationException",
    "NON_EMPTY_GROUP": "GroupNotEmptyException",
    "PRINCIPAL_DESERIALIZATION_FAILURE": "PrincipalDeserializationException",
    "FETCH_SESSION_TOPIC_ID_ERROR": "FetchSessionTopicIdException",
    "INVALID_REGULAR_EXPRESSION": "InvalidRegularExpression",
}


class ErrorRow(NamedTuple):
    """One error code."""

    code: int
    name: str
    # A client may send the request again,
    retriable: bool
    # after it has refreshed what it knows, be it metadata or a coordinator,
    refresh: bool
    # because its metadata is stale.
    metadata: bool
    # The class that Kafka's own clients throw; empty for none.
    exception: str
    # What to say when there is nothing more precise.
    text: str


@mypyc_attr(allow_interpreted_subclasses=True)
class KafkaError(Exception):
    """An expected failure, for a response with its code."""

    def __init__(self, code: int, message: str | None = None) -> None:
        self.code: int = code
        self.message: str = default_text(code) if message is None else message
        super().__init__(self.message)

    @property
    def name(self) -> str:
        return error_name(self.code)

    def __repr__(self) -> str:
        return f"KafkaError({self.name}, {self.message!r})"


def parse_row(line: str) -> ErrorRow:
    code, name, action, *words = line.split()
    exception = EXCEPTIONS.get(name) or "".join(word.capitalize() for word in name.split("_")) + "Exception"
    return ErrorRow(
        code=int(code),
        name=name,
        retriable=action != "-",
        refresh=action in ("refresh", "metadata"),
        metadata=action == "metadata",
        exception="" if name == "NONE" else exception,
        text=" ".join(words),
    )


ERRORS: Final[tuple[ErrorRow, ...]] = tuple(parse_row(line) for line in TABLE.strip().splitlines())
BY_CODE: Final[dict[int, ErrorRow]] = {row.code: row for row in ERRORS}
BY_NAME: Final[dict[str, ErrorRow]] = {row.name: row for row in ERRORS}


def error_row(code: int) -> ErrorRow:
    """The row of a code; a code that is not in the table counts as UNKNOWN_SERVER_ERROR."""
    return BY_CODE.get(code) or BY_CODE[UNKNOWN_SERVER_ERROR]


def error_name(code: int) -> str:
    row = BY_CODE.get(code)
    return f"UNKNOWN_{code}" if row is None else row.name


def default_text(code: int) -> str:
    return error_row(code).text
