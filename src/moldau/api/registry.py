"""Which function handles which API: one line per API key and listener.

Handlers are imported on first use, so that a broker that only moves records never loads the rest. To add an API: a schema
under `schemas/`, a handler in its family's file, a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from moldau.protocol.api_table import (
    ALTER_CONFIGS,
    API_VERSIONS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_QUORUM,
    DESCRIBE_TOPIC_PARTITIONS,
    ELECT_LEADERS,
    FETCH,
    INCREMENTAL_ALTER_CONFIGS,
    INIT_PRODUCER_ID,
    LIST_CONFIG_RESOURCES,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    UPDATE_FEATURES,
)

BROKER_HANDLERS: dict[int, str] = {
    PRODUCE: "produce.handle_produce",
    FETCH: "fetch.handle_fetch",
    LIST_OFFSETS: "offsets.handle_list_offsets",
    METADATA: "metadata.handle_metadata",
    API_VERSIONS: "api_versions.handle_api_versions",
    CREATE_TOPICS: "topics.handle_create_topics",
    DELETE_TOPICS: "topics.handle_delete_topics",
    DELETE_RECORDS: "offsets.handle_delete_records",
    INIT_PRODUCER_ID: "producers.handle_init_producer_id",
    OFFSET_FOR_LEADER_EPOCH: "offsets.handle_offset_for_leader_epoch",
    DESCRIBE_CONFIGS: "configs.handle_describe_configs",
    ALTER_CONFIGS: "configs.handle_alter_configs",
    DESCRIBE_LOG_DIRS: "log_dirs.handle_describe_log_dirs",
    CREATE_PARTITIONS: "topics.handle_create_partitions",
    ELECT_LEADERS: "partitions.handle_elect_leaders",
    INCREMENTAL_ALTER_CONFIGS: "configs.handle_incremental_alter_configs",
    LIST_PARTITION_REASSIGNMENTS: "partitions.handle_list_partition_reassignments",
    DESCRIBE_QUORUM: "quorum.handle_describe_quorum",
    UPDATE_FEATURES: "features.handle_update_features",
    DESCRIBE_CLUSTER: "metadata.handle_describe_cluster",
    DESCRIBE_PRODUCERS: "producers.handle_describe_producers",
    LIST_CONFIG_RESOURCES: "configs.handle_list_config_resources",
    DESCRIBE_TOPIC_PARTITIONS: "metadata.handle_describe_topic_partitions",
}

CONTROLLER_HANDLERS: dict[int, str] = {
    API_VERSIONS: "api_versions.handle_api_versions",
    CREATE_TOPICS: "topics.handle_create_topics",
    DELETE_TOPICS: "topics.handle_delete_topics",
    CREATE_PARTITIONS: "topics.handle_create_partitions",
    DESCRIBE_CONFIGS: "configs.handle_describe_configs",
    ALTER_CONFIGS: "configs.handle_alter_configs",
    ELECT_LEADERS: "partitions.handle_elect_leaders",
    INCREMENTAL_ALTER_CONFIGS: "configs.handle_incremental_alter_configs",
    LIST_PARTITION_REASSIGNMENTS: "partitions.handle_list_partition_reassignments",
    DESCRIBE_QUORUM: "quorum.handle_describe_quorum",
    UPDATE_FEATURES: "features.handle_update_features",
    DESCRIBE_CLUSTER: "metadata.handle_describe_cluster",
}

HandlerFunction = Callable[[Any, Any], None]


def handled_keys(on_controller_listener: bool) -> list[int]:
    """The API keys this node serves on a listener, in ascending order: what ApiVersions offers."""
    return sorted(CONTROLLER_HANDLERS if on_controller_listener else BROKER_HANDLERS)


def load_handler(api_key: int, on_controller_listener: bool) -> HandlerFunction | None:
    path = (CONTROLLER_HANDLERS if on_controller_listener else BROKER_HANDLERS).get(api_key)
    if path is None:
        return None
    module, _, function = path.partition(".")
    handler: HandlerFunction = getattr(import_module(f"moldau.api.{module}"), function)
    return handler
