"""Which function handles which API: one line per API key and listener.

Handlers are imported on first use, so that a broker that only moves records never loads the rest. To add an API: a
schema under `schemas/`, a handler in its family's file, a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from moldau.config.broker_config import BrokerConfig
from moldau.config.own_keys import TELEMETRY_KEY
from moldau.protocol import api_table as api
from moldau.protocol.api_keys import BY_KEY

BROKER_HANDLERS: dict[int, str] = {
    api.PRODUCE: "produce.handle_produce",
    api.FETCH: "fetch.handle_fetch",
    api.LIST_OFFSETS: "offsets.handle_list_offsets",
    api.METADATA: "metadata.handle_metadata",
    api.OFFSET_COMMIT: "group_offsets.handle_offset_commit",
    api.OFFSET_FETCH: "group_offsets.handle_offset_fetch",
    api.FIND_COORDINATOR: "coordinators.handle_find_coordinator",
    api.JOIN_GROUP: "classic_groups.handle_join_group",
    api.HEARTBEAT: "classic_groups.handle_heartbeat",
    api.LEAVE_GROUP: "classic_groups.handle_leave_group",
    api.SYNC_GROUP: "classic_groups.handle_sync_group",
    api.DESCRIBE_GROUPS: "group_admin.handle_describe_groups",
    api.LIST_GROUPS: "group_admin.handle_list_groups",
    api.SASL_HANDSHAKE: "sasl.handle_sasl_handshake",
    api.API_VERSIONS: "api_versions.handle_api_versions",
    api.CREATE_TOPICS: "topics.handle_create_topics",
    api.DELETE_TOPICS: "topics.handle_delete_topics",
    api.DELETE_RECORDS: "offsets.handle_delete_records",
    api.INIT_PRODUCER_ID: "transactions.handle_init_producer_id",
    api.OFFSET_FOR_LEADER_EPOCH: "offsets.handle_offset_for_leader_epoch",
    api.ADD_PARTITIONS_TO_TXN: "transactions.handle_add_partitions_to_txn",
    api.ADD_OFFSETS_TO_TXN: "transactions.handle_add_offsets_to_txn",
    api.END_TXN: "transactions.handle_end_txn",
    api.WRITE_TXN_MARKERS: "transactions.handle_write_txn_markers",
    api.TXN_OFFSET_COMMIT: "txn_offsets.handle_txn_offset_commit",
    api.DESCRIBE_ACLS: "acls.handle_describe_acls",
    api.CREATE_ACLS: "acls.handle_create_acls",
    api.DELETE_ACLS: "acls.handle_delete_acls",
    api.DESCRIBE_CONFIGS: "configs.handle_describe_configs",
    api.ALTER_CONFIGS: "configs.handle_alter_configs",
    api.ALTER_REPLICA_LOG_DIRS: "replica_log_dirs.handle_alter_replica_log_dirs",
    api.DESCRIBE_LOG_DIRS: "log_dirs.handle_describe_log_dirs",
    api.SASL_AUTHENTICATE: "sasl.handle_sasl_authenticate",
    api.CREATE_PARTITIONS: "topics.handle_create_partitions",
    api.CREATE_DELEGATION_TOKEN: "delegation_tokens.handle_create_delegation_token",
    api.RENEW_DELEGATION_TOKEN: "delegation_tokens.handle_renew_delegation_token",
    api.EXPIRE_DELEGATION_TOKEN: "delegation_tokens.handle_expire_delegation_token",
    api.DESCRIBE_DELEGATION_TOKEN: "delegation_tokens.handle_describe_delegation_token",
    api.DELETE_GROUPS: "group_admin.handle_delete_groups",
    api.ELECT_LEADERS: "partitions.handle_elect_leaders",
    api.INCREMENTAL_ALTER_CONFIGS: "configs.handle_incremental_alter_configs",
    api.ALTER_PARTITION_REASSIGNMENTS: "partitions.handle_alter_partition_reassignments",
    api.LIST_PARTITION_REASSIGNMENTS: "partitions.handle_list_partition_reassignments",
    api.OFFSET_DELETE: "group_offsets.handle_offset_delete",
    api.DESCRIBE_CLIENT_QUOTAS: "quotas.handle_describe_client_quotas",
    api.ALTER_CLIENT_QUOTAS: "quotas.handle_alter_client_quotas",
    api.DESCRIBE_USER_SCRAM_CREDENTIALS: "scram.handle_describe_user_scram_credentials",
    api.ALTER_USER_SCRAM_CREDENTIALS: "scram.handle_alter_user_scram_credentials",
    api.DESCRIBE_QUORUM: "quorum.handle_describe_quorum",
    api.UPDATE_FEATURES: "features.handle_update_features",
    api.DESCRIBE_CLUSTER: "metadata.handle_describe_cluster",
    api.UNREGISTER_BROKER: "controller_requests.handle_unregister_broker",
    api.DESCRIBE_PRODUCERS: "producers.handle_describe_producers",
    api.DESCRIBE_TRANSACTIONS: "transactions.handle_describe_transactions",
    api.LIST_TRANSACTIONS: "transactions.handle_list_transactions",
    api.GET_TELEMETRY_SUBSCRIPTIONS: "telemetry.handle_get_telemetry_subscriptions",
    api.PUSH_TELEMETRY: "telemetry.handle_push_telemetry",
    api.LIST_CONFIG_RESOURCES: "configs.handle_list_config_resources",
    api.CONSUMER_GROUP_HEARTBEAT: "consumer_groups.handle_consumer_group_heartbeat",
    api.CONSUMER_GROUP_DESCRIBE: "consumer_groups.handle_consumer_group_describe",
    api.DESCRIBE_TOPIC_PARTITIONS: "metadata.handle_describe_topic_partitions",
    api.ADD_RAFT_VOTER: "quorum.handle_change_of_voters",
    api.REMOVE_RAFT_VOTER: "quorum.handle_change_of_voters",
    api.SHARE_GROUP_HEARTBEAT: "share_groups.handle_share_group_heartbeat",
    api.SHARE_GROUP_DESCRIBE: "share_groups.handle_share_group_describe",
    api.SHARE_FETCH: "share_fetch.handle_share_fetch",
    api.SHARE_ACKNOWLEDGE: "share_acknowledge.handle_share_acknowledge",
    api.DESCRIBE_SHARE_GROUP_OFFSETS: "share_offsets.handle_describe_share_group_offsets",
    api.ALTER_SHARE_GROUP_OFFSETS: "share_offsets.handle_alter_share_group_offsets",
    api.DELETE_SHARE_GROUP_OFFSETS: "share_offsets.handle_delete_share_group_offsets",
    api.INITIALIZE_SHARE_GROUP_STATE: "share_states.handle_initialize_share_group_state",
    api.READ_SHARE_GROUP_STATE: "share_states.handle_read_share_group_state",
    api.WRITE_SHARE_GROUP_STATE: "share_states.handle_write_share_group_state",
    api.DELETE_SHARE_GROUP_STATE: "share_states.handle_delete_share_group_state",
    api.READ_SHARE_GROUP_STATE_SUMMARY: "share_states.handle_read_share_group_state_summary",
    api.STREAMS_GROUP_HEARTBEAT: "streams_groups.handle_streams_group_heartbeat",
    api.STREAMS_GROUP_DESCRIBE: "streams_groups.handle_streams_group_describe",
}

# Decided by the active controller: a broker passes them on, and an Envelope may hold these and no others (KIP-590).
FORWARDED: frozenset[int] = frozenset(
    {
        api.CREATE_TOPICS,
        api.DELETE_TOPICS,
        api.CREATE_ACLS,
        api.DELETE_ACLS,
        api.ALTER_CONFIGS,
        api.CREATE_PARTITIONS,
        api.CREATE_DELEGATION_TOKEN,
        api.RENEW_DELEGATION_TOKEN,
        api.EXPIRE_DELEGATION_TOKEN,
        api.ELECT_LEADERS,
        api.INCREMENTAL_ALTER_CONFIGS,
        api.ALTER_PARTITION_REASSIGNMENTS,
        api.LIST_PARTITION_REASSIGNMENTS,
        api.ALTER_CLIENT_QUOTAS,
        api.ALTER_USER_SCRAM_CREDENTIALS,
        api.DESCRIBE_QUORUM,
        api.UPDATE_FEATURES,
        api.UNREGISTER_BROKER,
        api.ADD_RAFT_VOTER,
        api.REMOVE_RAFT_VOTER,
    }
)

CONTROLLER_HANDLERS: dict[int, str] = {
    api.FETCH: "quorum.handle_raft",
    api.SASL_HANDSHAKE: "sasl.handle_sasl_handshake",
    api.API_VERSIONS: "api_versions.handle_api_versions",
    api.CREATE_TOPICS: "topics.handle_create_topics",
    api.DELETE_TOPICS: "topics.handle_delete_topics",
    api.DESCRIBE_ACLS: "acls.handle_describe_acls",
    api.CREATE_ACLS: "acls.handle_create_acls",
    api.DELETE_ACLS: "acls.handle_delete_acls",
    api.DESCRIBE_CONFIGS: "configs.handle_describe_configs",
    api.ALTER_CONFIGS: "configs.handle_alter_configs",
    api.SASL_AUTHENTICATE: "sasl.handle_sasl_authenticate",
    api.CREATE_PARTITIONS: "topics.handle_create_partitions",
    api.CREATE_DELEGATION_TOKEN: "delegation_tokens.handle_create_delegation_token",
    api.RENEW_DELEGATION_TOKEN: "delegation_tokens.handle_renew_delegation_token",
    api.EXPIRE_DELEGATION_TOKEN: "delegation_tokens.handle_expire_delegation_token",
    api.ELECT_LEADERS: "partitions.handle_elect_leaders",
    api.INCREMENTAL_ALTER_CONFIGS: "configs.handle_incremental_alter_configs",
    api.ALTER_PARTITION_REASSIGNMENTS: "partitions.handle_alter_partition_reassignments",
    api.LIST_PARTITION_REASSIGNMENTS: "partitions.handle_list_partition_reassignments",
    api.ALTER_CLIENT_QUOTAS: "quotas.handle_alter_client_quotas",
    api.DESCRIBE_USER_SCRAM_CREDENTIALS: "scram.handle_describe_user_scram_credentials",
    api.ALTER_USER_SCRAM_CREDENTIALS: "scram.handle_alter_user_scram_credentials",
    api.VOTE: "quorum.handle_raft",
    api.BEGIN_QUORUM_EPOCH: "quorum.handle_raft",
    api.END_QUORUM_EPOCH: "quorum.handle_raft",
    api.DESCRIBE_QUORUM: "quorum.handle_describe_quorum",
    api.ALTER_PARTITION: "controller_requests.handle_alter_partition",
    api.UPDATE_FEATURES: "features.handle_update_features",
    api.ENVELOPE: "forward.handle_envelope",
    api.FETCH_SNAPSHOT: "quorum.handle_raft",
    api.DESCRIBE_CLUSTER: "metadata.handle_describe_cluster",
    api.BROKER_REGISTRATION: "controller_requests.handle_broker_registration",
    api.BROKER_HEARTBEAT: "controller_requests.handle_broker_heartbeat",
    api.UNREGISTER_BROKER: "controller_requests.handle_unregister_broker",
    api.ALLOCATE_PRODUCER_IDS: "controller_requests.handle_allocate_producer_ids",
    api.CONTROLLER_REGISTRATION: "controller_requests.handle_controller_registration",
    api.ASSIGN_REPLICAS_TO_DIRS: "controller_requests.handle_assign_replicas_to_dirs",
    api.ADD_RAFT_VOTER: "quorum.handle_change_of_voters",
    api.REMOVE_RAFT_VOTER: "quorum.handle_change_of_voters",
    api.UPDATE_RAFT_VOTER: "quorum.handle_raft",
}

# Offered where somebody has switched on what they are for.
UNSTABLE_KEY = "unstable.api.versions.enable"
TWO_PHASE_KEY = "transaction.two.phase.commit.enable"

HandlerFunction = Callable[[Any, Any], None]


def handled_keys(on_controller_listener: bool) -> list[int]:
    """The API keys this node serves on a listener, in ascending order."""
    return sorted(CONTROLLER_HANDLERS if on_controller_listener else BROKER_HANDLERS)


def offered_keys(on_controller_listener: bool, config: BrokerConfig) -> list[int]:
    """What ApiVersions offers of them: telemetry only where somebody has switched it on."""
    has_telemetry = config.get_bool(TELEMETRY_KEY)
    return [key for key in handled_keys(on_controller_listener) if has_telemetry or BY_KEY[key].advertised_by_default]


def highest_version(api_key: int, config: BrokerConfig) -> int:
    """The newest version of an API that a broker with this configuration serves."""
    row = BY_KEY[api_key]
    is_wanted = config.get_bool(UNSTABLE_KEY) or (api_key == api.INIT_PRODUCER_ID and config.get_bool(TWO_PHASE_KEY))
    return row.highest_version if is_wanted else row.highest_stable_version


def load_handler(api_key: int, on_controller_listener: bool) -> HandlerFunction | None:
    path = (CONTROLLER_HANDLERS if on_controller_listener else BROKER_HANDLERS).get(api_key)
    if path is None:
        return None
    module, _, function = path.partition(".")
    handler: HandlerFunction = getattr(import_module(f"moldau.api.{module}"), function)
    return handler
