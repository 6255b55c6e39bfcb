"""The admin client: a method for every admin API of the protocol.

A method takes many items and returns one outcome per item; it raises only when the request as a whole could not be
carried out. Messages are imported where they are used: a command line that lists topics should not load the rest.
docs/admin.md lists the methods.
"""

from __future__ import annotations

from moldau.client.admin.acls import AclBinding, AclFilter, AclOperation, AclPermission, PatternType, ResourceType
from moldau.client.admin.client import Admin
from moldau.client.admin.cluster import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    ClusterDescription,
    FeatureMetadata,
    FeatureUpdate,
    VersionRange,
)
from moldau.client.admin.configs import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    CONFIG_SOURCES,
    CONFIG_TYPES,
    DEFAULT_CONFIG,
    DELETE,
    GROUP,
    RESOURCE_TYPES,
    SET,
    SUBTRACT,
    TOPIC,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
)
from moldau.client.admin.group_descriptions import (
    ClassicGroupDescription,
    ClassicMember,
    GroupDescription,
    MemberDescription,
)
from moldau.client.admin.group_members import MemberToRemove
from moldau.client.admin.groups import GroupListing
from moldau.client.admin.log_dirs import LogDirectory, ReplicaLogDirInfo, ReplicaOnDisk, TopicPartitionReplica
from moldau.client.admin.placement import PREFERRED, UNCLEAN, PartitionReassignment
from moldau.client.admin.quorum import QuorumInfo, QuorumReplica, RaftEndpoint
from moldau.client.admin.quotas import QuotaEntity, QuotaFilter
from moldau.client.admin.routing import Listing
from moldau.client.admin.share_offsets import SharePartitionOffset
from moldau.client.admin.streams_groups import (
    StreamsGroupDescription,
    StreamsMember,
    StreamsSubtopology,
    StreamsTasks,
    StreamsTopic,
)
from moldau.client.admin.tokens import DelegationToken, Principal
from moldau.client.admin.topics import CreatedTopic, NewTopic
from moldau.client.admin.transactions import (
    AbortTransaction,
    FencedProducer,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from moldau.client.admin.users import ScramCredential, ScramDeletion, ScramMechanism, ScramUpsertion
from moldau.client.results import OffsetAndMetadata

__all__ = [
    "APPEND",
    "AbortTransaction",
    "AclBinding",
    "AclFilter",
    "AclOperation",
    "AclPermission",
    "Admin",
    "BROKER",
    "BROKER_LOGGER",
    "CLIENT_METRICS",
    "CONFIG_SOURCES",
    "CONFIG_TYPES",
    "ClassicGroupDescription",
    "ClassicMember",
    "ClusterDescription",
    "ConfigChange",
    "ConfigEntry",
    "ConfigResource",
    "CreatedTopic",
    "DEFAULT_CONFIG",
    "DELETE",
    "DelegationToken",
    "FeatureMetadata",
    "FeatureUpdate",
    "FencedProducer",
    "GROUP",
    "GroupDescription",
    "GroupListing",
    "Listing",
    "LogDirectory",
    "MemberDescription",
    "MemberToRemove",
    "NewTopic",
    "OffsetAndMetadata",
    "PREFERRED",
    "PartitionReassignment",
    "PatternType",
    "Principal",
    "ProducerState",
    "QuorumInfo",
    "QuorumReplica",
    "QuotaEntity",
    "QuotaFilter",
    "RESOURCE_TYPES",
    "RaftEndpoint",
    "ReplicaLogDirInfo",
    "ReplicaOnDisk",
    "ResourceType",
    "SAFE_DOWNGRADE",
    "SET",
    "SUBTRACT",
    "ScramCredential",
    "ScramDeletion",
    "ScramMechanism",
    "ScramUpsertion",
    "SharePartitionOffset",
    "StreamsGroupDescription",
    "StreamsMember",
    "StreamsSubtopology",
    "StreamsTasks",
    "StreamsTopic",
    "TOPIC",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
    "UNCLEAN",
    "UNSAFE_DOWNGRADE",
    "UPGRADE",
    "VersionRange",
]
