"""Every error code of the protocol: constants, the table, and the exception that carries a code below the line."""

from __future__ import annotations

from typing import Final, NamedTuple

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


class ErrorRow(NamedTuple):
    """One error code."""

    code: int
    name: str
    # A client may send the request again.
    retriable: bool
    # ... after it has refreshed what it knows, be it metadata or a coordinator.
    refresh: bool
    # ... because its metadata is stale.
    metadata: bool
    # The class that Kafka's own clients throw; empty for none.
    exception: str
    # What a client shows when the response brings no message of its own.
    text: str


class KafkaError(Exception):
    """An expected failure, to be answered with its code."""

    def __init__(self, code: int, message: str | None = None) -> None:
        self.code: int = code
        self.message: str = default_text(code) if message is None else message
        super().__init__(self.message)

    @property
    def name(self) -> str:
        return error_name(self.code)

    def __repr__(self) -> str:
        return f"KafkaError({self.name}, {self.message!r})"


ERRORS: Final[tuple[ErrorRow, ...]] = (
    ErrorRow(UNKNOWN_SERVER_ERROR, "UNKNOWN_SERVER_ERROR", False, False, False, "UnknownServerException", ""),
    ErrorRow(NONE, "NONE", False, False, False, "", ""),
    ErrorRow(OFFSET_OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE", False, False, False, "OffsetOutOfRangeException", ""),
    ErrorRow(CORRUPT_MESSAGE, "CORRUPT_MESSAGE", True, False, False, "CorruptRecordException", ""),
    ErrorRow(
        UNKNOWN_TOPIC_OR_PARTITION,
        "UNKNOWN_TOPIC_OR_PARTITION",
        True,
        True,
        True,
        "UnknownTopicOrPartitionException",
        "",
    ),
    ErrorRow(INVALID_FETCH_SIZE, "INVALID_FETCH_SIZE", False, False, False, "InvalidFetchSizeException", ""),
    ErrorRow(LEADER_NOT_AVAILABLE, "LEADER_NOT_AVAILABLE", True, True, True, "LeaderNotAvailableException", ""),
    ErrorRow(NOT_LEADER_OR_FOLLOWER, "NOT_LEADER_OR_FOLLOWER", True, True, True, "NotLeaderOrFollowerException", ""),
    ErrorRow(REQUEST_TIMED_OUT, "REQUEST_TIMED_OUT", True, False, False, "TimeoutException", ""),
    ErrorRow(BROKER_NOT_AVAILABLE, "BROKER_NOT_AVAILABLE", False, False, False, "BrokerNotAvailableException", ""),
    ErrorRow(REPLICA_NOT_AVAILABLE, "REPLICA_NOT_AVAILABLE", True, True, True, "ReplicaNotAvailableException", ""),
    ErrorRow(MESSAGE_TOO_LARGE, "MESSAGE_TOO_LARGE", False, False, False, "RecordTooLargeException", ""),
    ErrorRow(STALE_CONTROLLER_EPOCH, "STALE_CONTROLLER_EPOCH", False, False, False, "ControllerMovedException", ""),
    ErrorRow(OFFSET_METADATA_TOO_LARGE, "OFFSET_METADATA_TOO_LARGE", False, False, False, "OffsetMetadataTooLarge", ""),
    ErrorRow(NETWORK_EXCEPTION, "NETWORK_EXCEPTION", True, True, True, "NetworkException", ""),
    ErrorRow(
        COORDINATOR_LOAD_IN_PROGRESS,
        "COORDINATOR_LOAD_IN_PROGRESS",
        True,
        False,
        False,
        "CoordinatorLoadInProgressException",
        "",
    ),
    ErrorRow(
        COORDINATOR_NOT_AVAILABLE,
        "COORDINATOR_NOT_AVAILABLE",
        True,
        True,
        False,
        "CoordinatorNotAvailableException",
        "",
    ),
    ErrorRow(NOT_COORDINATOR, "NOT_COORDINATOR", True, True, False, "NotCoordinatorException", ""),
    ErrorRow(INVALID_TOPIC_EXCEPTION, "INVALID_TOPIC_EXCEPTION", False, False, False, "InvalidTopicException", ""),
    ErrorRow(RECORD_LIST_TOO_LARGE, "RECORD_LIST_TOO_LARGE", False, False, False, "RecordBatchTooLargeException", ""),
    ErrorRow(NOT_ENOUGH_REPLICAS, "NOT_ENOUGH_REPLICAS", True, False, False, "NotEnoughReplicasException", ""),
    ErrorRow(
        NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        True,
        False,
        False,
        "NotEnoughReplicasAfterAppendException",
        "",
    ),
    ErrorRow(INVALID_REQUIRED_ACKS, "INVALID_REQUIRED_ACKS", False, False, False, "InvalidRequiredAcksException", ""),
    ErrorRow(ILLEGAL_GENERATION, "ILLEGAL_GENERATION", False, False, False, "IllegalGenerationException", ""),
    ErrorRow(
        INCONSISTENT_GROUP_PROTOCOL,
        "INCONSISTENT_GROUP_PROTOCOL",
        False,
        False,
        False,
        "InconsistentGroupProtocolException",
        "",
    ),
    ErrorRow(INVALID_GROUP_ID, "INVALID_GROUP_ID", False, False, False, "InvalidGroupIdException", ""),
    ErrorRow(UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID", False, False, False, "UnknownMemberIdException", ""),
    ErrorRow(
        INVALID_SESSION_TIMEOUT, "INVALID_SESSION_TIMEOUT", False, False, False, "InvalidSessionTimeoutException", ""
    ),
    ErrorRow(REBALANCE_IN_PROGRESS, "REBALANCE_IN_PROGRESS", False, False, False, "RebalanceInProgressException", ""),
    ErrorRow(
        INVALID_COMMIT_OFFSET_SIZE,
        "INVALID_COMMIT_OFFSET_SIZE",
        False,
        False,
        False,
        "InvalidCommitOffsetSizeException",
        "",
    ),
    ErrorRow(
        TOPIC_AUTHORIZATION_FAILED, "TOPIC_AUTHORIZATION_FAILED", False, False, False, "TopicAuthorizationException", ""
    ),
    ErrorRow(
        GROUP_AUTHORIZATION_FAILED, "GROUP_AUTHORIZATION_FAILED", False, False, False, "GroupAuthorizationException", ""
    ),
    ErrorRow(
        CLUSTER_AUTHORIZATION_FAILED,
        "CLUSTER_AUTHORIZATION_FAILED",
        False,
        False,
        False,
        "ClusterAuthorizationException",
        "",
    ),
    ErrorRow(INVALID_TIMESTAMP, "INVALID_TIMESTAMP", False, False, False, "InvalidTimestampException", ""),
    ErrorRow(
        UNSUPPORTED_SASL_MECHANISM,
        "UNSUPPORTED_SASL_MECHANISM",
        False,
        False,
        False,
        "UnsupportedSaslMechanismException",
        "",
    ),
    ErrorRow(ILLEGAL_SASL_STATE, "ILLEGAL_SASL_STATE", False, False, False, "IllegalSaslStateException", ""),
    ErrorRow(UNSUPPORTED_VERSION, "UNSUPPORTED_VERSION", False, False, False, "UnsupportedVersionException", ""),
    ErrorRow(TOPIC_ALREADY_EXISTS, "TOPIC_ALREADY_EXISTS", False, False, False, "TopicExistsException", ""),
    ErrorRow(INVALID_PARTITIONS, "INVALID_PARTITIONS", False, False, False, "InvalidPartitionsException", ""),
    ErrorRow(
        INVALID_REPLICATION_FACTOR,
        "INVALID_REPLICATION_FACTOR",
        False,
        False,
        False,
        "InvalidReplicationFactorException",
        "",
    ),
    ErrorRow(
        INVALID_REPLICA_ASSIGNMENT,
        "INVALID_REPLICA_ASSIGNMENT",
        False,
        False,
        False,
        "InvalidReplicaAssignmentException",
        "",
    ),
    ErrorRow(INVALID_CONFIG, "INVALID_CONFIG", False, False, False, "InvalidConfigurationException", ""),
    ErrorRow(NOT_CONTROLLER, "NOT_CONTROLLER", True, False, False, "NotControllerException", ""),
    ErrorRow(INVALID_REQUEST, "INVALID_REQUEST", False, False, False, "InvalidRequestException", ""),
    ErrorRow(
        UNSUPPORTED_FOR_MESSAGE_FORMAT,
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        False,
        False,
        False,
        "UnsupportedForMessageFormatException",
        "",
    ),
    ErrorRow(POLICY_VIOLATION, "POLICY_VIOLATION", False, False, False, "PolicyViolationException", ""),
    ErrorRow(
        OUT_OF_ORDER_SEQUENCE_NUMBER,
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        False,
        False,
        False,
        "OutOfOrderSequenceException",
        "",
    ),
    ErrorRow(
        DUPLICATE_SEQUENCE_NUMBER, "DUPLICATE_SEQUENCE_NUMBER", False, False, False, "DuplicateSequenceException", ""
    ),
    ErrorRow(
        INVALID_PRODUCER_EPOCH, "INVALID_PRODUCER_EPOCH", False, False, False, "InvalidProducerEpochException", ""
    ),
    ErrorRow(INVALID_TXN_STATE, "INVALID_TXN_STATE", False, False, False, "InvalidTxnStateException", ""),
    ErrorRow(
        INVALID_PRODUCER_ID_MAPPING,
        "INVALID_PRODUCER_ID_MAPPING",
        False,
        False,
        False,
        "InvalidPidMappingException",
        "",
    ),
    ErrorRow(
        INVALID_TRANSACTION_TIMEOUT,
        "INVALID_TRANSACTION_TIMEOUT",
        False,
        False,
        False,
        "InvalidTxnTimeoutException",
        "",
    ),
    ErrorRow(
        CONCURRENT_TRANSACTIONS, "CONCURRENT_TRANSACTIONS", True, False, False, "ConcurrentTransactionsException", ""
    ),
    ErrorRow(
        TRANSACTION_COORDINATOR_FENCED,
        "TRANSACTION_COORDINATOR_FENCED",
        False,
        False,
        False,
        "TransactionCoordinatorFencedException",
        "",
    ),
    ErrorRow(
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        False,
        False,
        False,
        "TransactionalIdAuthorizationException",
        "",
    ),
    ErrorRow(SECURITY_DISABLED, "SECURITY_DISABLED", False, False, False, "SecurityDisabledException", ""),
    ErrorRow(
        OPERATION_NOT_ATTEMPTED, "OPERATION_NOT_ATTEMPTED", False, False, False, "OperationNotAttemptedException", ""
    ),
    ErrorRow(KAFKA_STORAGE_ERROR, "KAFKA_STORAGE_ERROR", True, True, True, "KafkaStorageException", ""),
    ErrorRow(LOG_DIR_NOT_FOUND, "LOG_DIR_NOT_FOUND", False, False, False, "LogDirNotFoundException", ""),
    ErrorRow(
        SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED", False, False, False, "SaslAuthenticationException", ""
    ),
    ErrorRow(UNKNOWN_PRODUCER_ID, "UNKNOWN_PRODUCER_ID", False, False, False, "UnknownProducerIdException", ""),
    ErrorRow(
        REASSIGNMENT_IN_PROGRESS, "REASSIGNMENT_IN_PROGRESS", False, False, False, "ReassignmentInProgressException", ""
    ),
    ErrorRow(
        DELEGATION_TOKEN_AUTH_DISABLED,
        "DELEGATION_TOKEN_AUTH_DISABLED",
        False,
        False,
        False,
        "DelegationTokenDisabledException",
        "",
    ),
    ErrorRow(
        DELEGATION_TOKEN_NOT_FOUND,
        "DELEGATION_TOKEN_NOT_FOUND",
        False,
        False,
        False,
        "DelegationTokenNotFoundException",
        "",
    ),
    ErrorRow(
        DELEGATION_TOKEN_OWNER_MISMATCH,
        "DELEGATION_TOKEN_OWNER_MISMATCH",
        False,
        False,
        False,
        "DelegationTokenOwnerMismatchException",
        "",
    ),
    ErrorRow(
        DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
        False,
        False,
        False,
        "UnsupportedByAuthenticationException",
        "",
    ),
    ErrorRow(
        DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
        False,
        False,
        False,
        "DelegationTokenAuthorizationException",
        "",
    ),
    ErrorRow(
        DELEGATION_TOKEN_EXPIRED, "DELEGATION_TOKEN_EXPIRED", False, False, False, "DelegationTokenExpiredException", ""
    ),
    ErrorRow(
        INVALID_PRINCIPAL_TYPE, "INVALID_PRINCIPAL_TYPE", False, False, False, "InvalidPrincipalTypeException", ""
    ),
    ErrorRow(NON_EMPTY_GROUP, "NON_EMPTY_GROUP", False, False, False, "GroupNotEmptyException", ""),
    ErrorRow(GROUP_ID_NOT_FOUND, "GROUP_ID_NOT_FOUND", False, False, False, "GroupIdNotFoundException", ""),
    ErrorRow(
        FETCH_SESSION_ID_NOT_FOUND,
        "FETCH_SESSION_ID_NOT_FOUND",
        True,
        False,
        False,
        "FetchSessionIdNotFoundException",
        "",
    ),
    ErrorRow(
        INVALID_FETCH_SESSION_EPOCH,
        "INVALID_FETCH_SESSION_EPOCH",
        True,
        False,
        False,
        "InvalidFetchSessionEpochException",
        "",
    ),
    ErrorRow(LISTENER_NOT_FOUND, "LISTENER_NOT_FOUND", True, True, True, "ListenerNotFoundException", ""),
    ErrorRow(
        TOPIC_DELETION_DISABLED, "TOPIC_DELETION_DISABLED", False, False, False, "TopicDeletionDisabledException", ""
    ),
    ErrorRow(FENCED_LEADER_EPOCH, "FENCED_LEADER_EPOCH", True, True, True, "FencedLeaderEpochException", ""),
    ErrorRow(UNKNOWN_LEADER_EPOCH, "UNKNOWN_LEADER_EPOCH", True, False, False, "UnknownLeaderEpochException", ""),
    ErrorRow(
        UNSUPPORTED_COMPRESSION_TYPE,
        "UNSUPPORTED_COMPRESSION_TYPE",
        False,
        False,
        False,
        "UnsupportedCompressionTypeException",
        "",
    ),
    ErrorRow(STALE_BROKER_EPOCH, "STALE_BROKER_EPOCH", False, False, False, "StaleBrokerEpochException", ""),
    ErrorRow(OFFSET_NOT_AVAILABLE, "OFFSET_NOT_AVAILABLE", True, False, False, "OffsetNotAvailableException", ""),
    ErrorRow(MEMBER_ID_REQUIRED, "MEMBER_ID_REQUIRED", False, False, False, "MemberIdRequiredException", ""),
    ErrorRow(
        PREFERRED_LEADER_NOT_AVAILABLE,
        "PREFERRED_LEADER_NOT_AVAILABLE",
        True,
        True,
        True,
        "PreferredLeaderNotAvailableException",
        "",
    ),
    ErrorRow(GROUP_MAX_SIZE_REACHED, "GROUP_MAX_SIZE_REACHED", False, False, False, "GroupMaxSizeReachedException", ""),
    ErrorRow(FENCED_INSTANCE_ID, "FENCED_INSTANCE_ID", False, False, False, "FencedInstanceIdException", ""),
    ErrorRow(
        ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        True,
        True,
        True,
        "EligibleLeadersNotAvailableException",
        "",
    ),
    ErrorRow(ELECTION_NOT_NEEDED, "ELECTION_NOT_NEEDED", True, True, True, "ElectionNotNeededException", ""),
    ErrorRow(
        NO_REASSIGNMENT_IN_PROGRESS,
        "NO_REASSIGNMENT_IN_PROGRESS",
        False,
        False,
        False,
        "NoReassignmentInProgressException",
        "",
    ),
    ErrorRow(
        GROUP_SUBSCRIBED_TO_TOPIC,
        "GROUP_SUBSCRIBED_TO_TOPIC",
        False,
        False,
        False,
        "GroupSubscribedToTopicException",
        "",
    ),
    ErrorRow(INVALID_RECORD, "INVALID_RECORD", False, False, False, "InvalidRecordException", ""),
    ErrorRow(UNSTABLE_OFFSET_COMMIT, "UNSTABLE_OFFSET_COMMIT", True, False, False, "UnstableOffsetCommitException", ""),
    ErrorRow(
        THROTTLING_QUOTA_EXCEEDED,
        "THROTTLING_QUOTA_EXCEEDED",
        True,
        False,
        False,
        "ThrottlingQuotaExceededException",
        "",
    ),
    ErrorRow(PRODUCER_FENCED, "PRODUCER_FENCED", False, False, False, "ProducerFencedException", ""),
    ErrorRow(RESOURCE_NOT_FOUND, "RESOURCE_NOT_FOUND", False, False, False, "ResourceNotFoundException", ""),
    ErrorRow(DUPLICATE_RESOURCE, "DUPLICATE_RESOURCE", False, False, False, "DuplicateResourceException", ""),
    ErrorRow(
        UNACCEPTABLE_CREDENTIAL, "UNACCEPTABLE_CREDENTIAL", False, False, False, "UnacceptableCredentialException", ""
    ),
    ErrorRow(
        INCONSISTENT_VOTER_SET, "INCONSISTENT_VOTER_SET", False, False, False, "InconsistentVoterSetException", ""
    ),
    ErrorRow(
        INVALID_UPDATE_VERSION, "INVALID_UPDATE_VERSION", False, False, False, "InvalidUpdateVersionException", ""
    ),
    ErrorRow(FEATURE_UPDATE_FAILED, "FEATURE_UPDATE_FAILED", False, False, False, "FeatureUpdateFailedException", ""),
    ErrorRow(
        PRINCIPAL_DESERIALIZATION_FAILURE,
        "PRINCIPAL_DESERIALIZATION_FAILURE",
        False,
        False,
        False,
        "PrincipalDeserializationException",
        "",
    ),
    ErrorRow(SNAPSHOT_NOT_FOUND, "SNAPSHOT_NOT_FOUND", False, False, False, "SnapshotNotFoundException", ""),
    ErrorRow(POSITION_OUT_OF_RANGE, "POSITION_OUT_OF_RANGE", False, False, False, "PositionOutOfRangeException", ""),
    ErrorRow(UNKNOWN_TOPIC_ID, "UNKNOWN_TOPIC_ID", True, True, True, "UnknownTopicIdException", ""),
    ErrorRow(
        DUPLICATE_BROKER_REGISTRATION,
        "DUPLICATE_BROKER_REGISTRATION",
        False,
        False,
        False,
        "DuplicateBrokerRegistrationException",
        "",
    ),
    ErrorRow(
        BROKER_ID_NOT_REGISTERED, "BROKER_ID_NOT_REGISTERED", False, False, False, "BrokerIdNotRegisteredException", ""
    ),
    ErrorRow(INCONSISTENT_TOPIC_ID, "INCONSISTENT_TOPIC_ID", True, True, True, "InconsistentTopicIdException", ""),
    ErrorRow(
        INCONSISTENT_CLUSTER_ID, "INCONSISTENT_CLUSTER_ID", False, False, False, "InconsistentClusterIdException", ""
    ),
    ErrorRow(
        TRANSACTIONAL_ID_NOT_FOUND,
        "TRANSACTIONAL_ID_NOT_FOUND",
        False,
        False,
        False,
        "TransactionalIdNotFoundException",
        "",
    ),
    ErrorRow(
        FETCH_SESSION_TOPIC_ID_ERROR,
        "FETCH_SESSION_TOPIC_ID_ERROR",
        True,
        False,
        False,
        "FetchSessionTopicIdException",
        "",
    ),
    ErrorRow(INELIGIBLE_REPLICA, "INELIGIBLE_REPLICA", False, False, False, "IneligibleReplicaException", ""),
    ErrorRow(NEW_LEADER_ELECTED, "NEW_LEADER_ELECTED", False, False, False, "NewLeaderElectedException", ""),
    ErrorRow(
        OFFSET_MOVED_TO_TIERED_STORAGE,
        "OFFSET_MOVED_TO_TIERED_STORAGE",
        False,
        False,
        False,
        "OffsetMovedToTieredStorageException",
        "",
    ),
    ErrorRow(FENCED_MEMBER_EPOCH, "FENCED_MEMBER_EPOCH", False, False, False, "FencedMemberEpochException", ""),
    ErrorRow(
        UNRELEASED_INSTANCE_ID, "UNRELEASED_INSTANCE_ID", False, False, False, "UnreleasedInstanceIdException", ""
    ),
    ErrorRow(UNSUPPORTED_ASSIGNOR, "UNSUPPORTED_ASSIGNOR", False, False, False, "UnsupportedAssignorException", ""),
    ErrorRow(STALE_MEMBER_EPOCH, "STALE_MEMBER_EPOCH", False, False, False, "StaleMemberEpochException", ""),
    ErrorRow(
        MISMATCHED_ENDPOINT_TYPE, "MISMATCHED_ENDPOINT_TYPE", False, False, False, "MismatchedEndpointTypeException", ""
    ),
    ErrorRow(
        UNSUPPORTED_ENDPOINT_TYPE,
        "UNSUPPORTED_ENDPOINT_TYPE",
        False,
        False,
        False,
        "UnsupportedEndpointTypeException",
        "",
    ),
    ErrorRow(UNKNOWN_CONTROLLER_ID, "UNKNOWN_CONTROLLER_ID", False, False, False, "UnknownControllerIdException", ""),
    ErrorRow(
        UNKNOWN_SUBSCRIPTION_ID, "UNKNOWN_SUBSCRIPTION_ID", False, False, False, "UnknownSubscriptionIdException", ""
    ),
    ErrorRow(TELEMETRY_TOO_LARGE, "TELEMETRY_TOO_LARGE", False, False, False, "TelemetryTooLargeException", ""),
    ErrorRow(INVALID_REGISTRATION, "INVALID_REGISTRATION", False, False, False, "InvalidRegistrationException", ""),
    ErrorRow(TRANSACTION_ABORTABLE, "TRANSACTION_ABORTABLE", False, False, False, "TransactionAbortableException", ""),
    ErrorRow(INVALID_RECORD_STATE, "INVALID_RECORD_STATE", False, False, False, "InvalidRecordStateException", ""),
    ErrorRow(
        SHARE_SESSION_NOT_FOUND, "SHARE_SESSION_NOT_FOUND", True, False, False, "ShareSessionNotFoundException", ""
    ),
    ErrorRow(
        INVALID_SHARE_SESSION_EPOCH,
        "INVALID_SHARE_SESSION_EPOCH",
        True,
        False,
        False,
        "InvalidShareSessionEpochException",
        "",
    ),
    ErrorRow(FENCED_STATE_EPOCH, "FENCED_STATE_EPOCH", False, False, False, "FencedStateEpochException", ""),
    ErrorRow(INVALID_VOTER_KEY, "INVALID_VOTER_KEY", False, False, False, "InvalidVoterKeyException", ""),
    ErrorRow(DUPLICATE_VOTER, "DUPLICATE_VOTER", False, False, False, "DuplicateVoterException", ""),
    ErrorRow(VOTER_NOT_FOUND, "VOTER_NOT_FOUND", False, False, False, "VoterNotFoundException", ""),
    ErrorRow(
        INVALID_REGULAR_EXPRESSION, "INVALID_REGULAR_EXPRESSION", False, False, False, "InvalidRegularExpression", ""
    ),
    ErrorRow(REBOOTSTRAP_REQUIRED, "REBOOTSTRAP_REQUIRED", False, False, False, "RebootstrapRequiredException", ""),
    ErrorRow(
        STREAMS_INVALID_TOPOLOGY, "STREAMS_INVALID_TOPOLOGY", False, False, False, "StreamsInvalidTopologyException", ""
    ),
    ErrorRow(
        STREAMS_INVALID_TOPOLOGY_EPOCH,
        "STREAMS_INVALID_TOPOLOGY_EPOCH",
        False,
        False,
        False,
        "StreamsInvalidTopologyEpochException",
        "",
    ),
    ErrorRow(
        STREAMS_TOPOLOGY_FENCED, "STREAMS_TOPOLOGY_FENCED", False, False, False, "StreamsTopologyFencedException", ""
    ),
    ErrorRow(
        SHARE_SESSION_LIMIT_REACHED,
        "SHARE_SESSION_LIMIT_REACHED",
        True,
        False,
        False,
        "ShareSessionLimitReachedException",
        "",
    ),
)

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
