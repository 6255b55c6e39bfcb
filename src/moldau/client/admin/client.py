"""The admin client as one class: all subjects of this package together."""

from __future__ import annotations

from moldau.client.admin.acls import AclAdmin
from moldau.client.admin.cluster import ClusterAdmin
from moldau.client.admin.configs import ConfigAdmin
from moldau.client.admin.group_members import GroupMemberAdmin
from moldau.client.admin.group_offsets import GroupOffsetAdmin
from moldau.client.admin.groups import GroupAdmin
from moldau.client.admin.log_dirs import LogDirAdmin
from moldau.client.admin.placement import PlacementAdmin
from moldau.client.admin.quorum import QuorumAdmin
from moldau.client.admin.quotas import QuotaAdmin
from moldau.client.admin.records import RecordAdmin
from moldau.client.admin.share_offsets import ShareOffsetAdmin
from moldau.client.admin.streams_groups import StreamsGroupAdmin
from moldau.client.admin.tokens import TokenAdmin
from moldau.client.admin.topics import TopicAdmin
from moldau.client.admin.transactions import TransactionAdmin
from moldau.client.admin.users import UserAdmin


class Admin(
    TopicAdmin,
    RecordAdmin,
    ConfigAdmin,
    LogDirAdmin,
    ClusterAdmin,
    QuorumAdmin,
    PlacementAdmin,
    TransactionAdmin,
    GroupAdmin,
    GroupMemberAdmin,
    GroupOffsetAdmin,
    ShareOffsetAdmin,
    StreamsGroupAdmin,
    AclAdmin,
    UserAdmin,
    QuotaAdmin,
    TokenAdmin,
):
    """Asks and changes the cluster; to be used by one thread."""
