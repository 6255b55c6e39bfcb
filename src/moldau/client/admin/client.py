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


class AdminMethods(
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
    """The methods of all subjects."""


class Admin(AdminMethods):
    """Asks and changes the cluster; to be used by one thread.

    A method takes many items and returns an Outcome for each: get() is its value, or raises the item's error, such as
    TopicExistsError. The method itself raises only where nothing could be asked: NoBrokerError, RequestTimeoutError
    after timeout_ms (default.api.timeout.ms), UnsupportedVersionError where brokers are too old, ClosedError. What may
    pass, such as a broker that is away or a quota that is used up, is tried again until then.

    bootstrap_servers: "host:port,host:port", a list of those, or a mapping of settings by Kafka's names;
    bootstrap_controllers instead of it speaks to controllers. The other keywords are settings, with `_` for `.`, which
    config takes as they are; moldau.client.setting_types.AdminSettings has them.
    """
