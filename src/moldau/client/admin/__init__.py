"""The admin client: a method for every admin API of the protocol.

A method takes many items and returns one outcome per item; it raises only when the request as a whole could not be
carried out. Messages are imported where they are used, and the names below on first use: a command line that lists
topics should not load the rest. docs/admin.md lists the methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.first_use import on_first_use

if TYPE_CHECKING:
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

_HOME = {
    "AclBinding": "moldau.client.admin.acls",
    "AclFilter": "moldau.client.admin.acls",
    "AclOperation": "moldau.client.admin.acls",
    "AclPermission": "moldau.client.admin.acls",
    "PatternType": "moldau.client.admin.acls",
    "ResourceType": "moldau.client.admin.acls",
    "Admin": "moldau.client.admin.client",
    "ClusterDescription": "moldau.client.admin.cluster",
    "FeatureMetadata": "moldau.client.admin.cluster",
    "FeatureUpdate": "moldau.client.admin.cluster",
    "SAFE_DOWNGRADE": "moldau.client.admin.cluster",
    "UNSAFE_DOWNGRADE": "moldau.client.admin.cluster",
    "UPGRADE": "moldau.client.admin.cluster",
    "VersionRange": "moldau.client.admin.cluster",
    "APPEND": "moldau.client.admin.configs",
    "BROKER": "moldau.client.admin.configs",
    "BROKER_LOGGER": "moldau.client.admin.configs",
    "CLIENT_METRICS": "moldau.client.admin.configs",
    "CONFIG_SOURCES": "moldau.client.admin.configs",
    "CONFIG_TYPES": "moldau.client.admin.configs",
    "ConfigChange": "moldau.client.admin.configs",
    "ConfigEntry": "moldau.client.admin.configs",
    "ConfigResource": "moldau.client.admin.configs",
    "DEFAULT_CONFIG": "moldau.client.admin.configs",
    "DELETE": "moldau.client.admin.configs",
    "GROUP": "moldau.client.admin.configs",
    "RESOURCE_TYPES": "moldau.client.admin.configs",
    "SET": "moldau.client.admin.configs",
    "SUBTRACT": "moldau.client.admin.configs",
    "TOPIC": "moldau.client.admin.configs",
    "ClassicGroupDescription": "moldau.client.admin.group_descriptions",
    "ClassicMember": "moldau.client.admin.group_descriptions",
    "GroupDescription": "moldau.client.admin.group_descriptions",
    "MemberDescription": "moldau.client.admin.group_descriptions",
    "MemberToRemove": "moldau.client.admin.group_members",
    "GroupListing": "moldau.client.admin.groups",
    "LogDirectory": "moldau.client.admin.log_dirs",
    "ReplicaLogDirInfo": "moldau.client.admin.log_dirs",
    "ReplicaOnDisk": "moldau.client.admin.log_dirs",
    "TopicPartitionReplica": "moldau.client.admin.log_dirs",
    "PREFERRED": "moldau.client.admin.placement",
    "PartitionReassignment": "moldau.client.admin.placement",
    "UNCLEAN": "moldau.client.admin.placement",
    "QuorumInfo": "moldau.client.admin.quorum",
    "QuorumReplica": "moldau.client.admin.quorum",
    "RaftEndpoint": "moldau.client.admin.quorum",
    "QuotaEntity": "moldau.client.admin.quotas",
    "QuotaFilter": "moldau.client.admin.quotas",
    "Listing": "moldau.client.admin.routing",
    "SharePartitionOffset": "moldau.client.admin.share_offsets",
    "StreamsGroupDescription": "moldau.client.admin.streams_groups",
    "StreamsMember": "moldau.client.admin.streams_groups",
    "StreamsSubtopology": "moldau.client.admin.streams_groups",
    "StreamsTasks": "moldau.client.admin.streams_groups",
    "StreamsTopic": "moldau.client.admin.streams_groups",
    "DelegationToken": "moldau.client.admin.tokens",
    "Principal": "moldau.client.admin.tokens",
    "CreatedTopic": "moldau.client.admin.topics",
    "NewTopic": "moldau.client.admin.topics",
    "AbortTransaction": "moldau.client.admin.transactions",
    "FencedProducer": "moldau.client.admin.transactions",
    "ProducerState": "moldau.client.admin.transactions",
    "TransactionDescription": "moldau.client.admin.transactions",
    "TransactionListing": "moldau.client.admin.transactions",
    "ScramCredential": "moldau.client.admin.users",
    "ScramDeletion": "moldau.client.admin.users",
    "ScramMechanism": "moldau.client.admin.users",
    "ScramUpsertion": "moldau.client.admin.users",
    "OffsetAndMetadata": "moldau.client.results",
}

__getattr__ = on_first_use(__name__, _HOME)


def __dir__() -> list[str]:
    """With the names that are not imported yet, for completion."""
    return sorted({*globals(), *__all__})
