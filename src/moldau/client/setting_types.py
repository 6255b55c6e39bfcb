"""The keywords of clients, for type checkers: written by tools/generate_setting_types.py from config.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition


class AdminSettings(TypedDict, total=False):
    """Settings of Admin."""

    bootstrap_controllers: str | list[str]
    client_id: str
    connections_max_idle_ms: int | str
    default_api_timeout_ms: int | str
    metadata_max_age_ms: int | str
    metadata_recovery_strategy: str
    receive_buffer_bytes: int | str
    reconnect_backoff_max_ms: int | str
    reconnect_backoff_ms: int | str
    request_timeout_ms: int | str
    retry_backoff_max_ms: int | str
    retry_backoff_ms: int | str
    sasl_jaas_config: str | None
    sasl_mechanism: str
    sasl_password: str | None
    sasl_username: str | None
    security_protocol: str
    send_buffer_bytes: int | str
    socket_connection_setup_timeout_max_ms: int | str
    socket_connection_setup_timeout_ms: int | str
    ssl_enabled_protocols: str
    ssl_endpoint_identification_algorithm: str
    ssl_key_password: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str
    ssl_protocol: str
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str


class ProducerSettings(TypedDict, total=False):
    """Settings of Producer."""

    acks: str | int
    batch_size: int | str
    buffer_memory: int | str
    client_id: str
    compression_gzip_level: int | str
    compression_lz4_level: int | str
    compression_type: str
    compression_zstd_level: int | str
    connections_max_idle_ms: int | str
    delivery_timeout_ms: int | str
    enable_idempotence: bool | str
    linger_ms: int | str
    max_block_ms: int | str
    max_in_flight_requests_per_connection: int | str
    max_request_size: int | str
    metadata_max_age_ms: int | str
    metadata_recovery_strategy: str
    partitioner_adaptive_partitioning_enable: bool | str
    partitioner_availability_timeout_ms: int | str
    partitioner_ignore_keys: bool | str
    receive_buffer_bytes: int | str
    reconnect_backoff_max_ms: int | str
    reconnect_backoff_ms: int | str
    request_timeout_ms: int | str
    retries: int | str
    retry_backoff_max_ms: int | str
    retry_backoff_ms: int | str
    sasl_jaas_config: str | None
    sasl_mechanism: str
    sasl_password: str | None
    sasl_username: str | None
    security_protocol: str
    send_buffer_bytes: int | str
    socket_connection_setup_timeout_max_ms: int | str
    socket_connection_setup_timeout_ms: int | str
    ssl_enabled_protocols: str
    ssl_endpoint_identification_algorithm: str
    ssl_key_password: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str
    ssl_protocol: str
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str
    transaction_timeout_ms: int | str
    transaction_two_phase_commit_enable: bool | str
    transactional_id: str | None


class ConsumerSettings(TypedDict, total=False):
    """Settings of Consumer."""

    allow_auto_create_topics: bool | str
    auto_commit_interval_ms: int | str
    auto_offset_reset: str
    check_crcs: bool | str
    client_id: str
    client_rack: str
    connections_max_idle_ms: int | str
    default_api_timeout_ms: int | str
    enable_auto_commit: bool | str
    exclude_internal_topics: bool | str
    fetch_max_bytes: int | str
    fetch_max_wait_ms: int | str
    fetch_min_bytes: int | str
    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    heartbeat_interval_ms: int | str
    isolation_level: str
    max_partition_fetch_bytes: int | str
    max_poll_interval_ms: int | str
    max_poll_records: int | str
    metadata_max_age_ms: int | str
    metadata_recovery_strategy: str
    partition_assignment_strategy: str | list[str] | list[type] | list[object]
    receive_buffer_bytes: int | str
    reconnect_backoff_max_ms: int | str
    reconnect_backoff_ms: int | str
    request_timeout_ms: int | str
    retry_backoff_max_ms: int | str
    retry_backoff_ms: int | str
    sasl_jaas_config: str | None
    sasl_mechanism: str
    sasl_password: str | None
    sasl_username: str | None
    security_protocol: str
    send_buffer_bytes: int | str
    session_timeout_ms: int | str
    socket_connection_setup_timeout_max_ms: int | str
    socket_connection_setup_timeout_ms: int | str
    ssl_enabled_protocols: str
    ssl_endpoint_identification_algorithm: str
    ssl_key_password: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str
    ssl_protocol: str
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str


class ShareConsumerSettings(TypedDict, total=False):
    """Settings of ShareConsumer."""

    allow_auto_create_topics: bool | str
    check_crcs: bool | str
    client_id: str
    client_rack: str
    connections_max_idle_ms: int | str
    default_api_timeout_ms: int | str
    fetch_max_bytes: int | str
    fetch_max_wait_ms: int | str
    fetch_min_bytes: int | str
    group_id: str | None
    max_poll_interval_ms: int | str
    max_poll_records: int | str
    metadata_max_age_ms: int | str
    metadata_recovery_strategy: str
    receive_buffer_bytes: int | str
    reconnect_backoff_max_ms: int | str
    reconnect_backoff_ms: int | str
    request_timeout_ms: int | str
    retry_backoff_max_ms: int | str
    retry_backoff_ms: int | str
    sasl_jaas_config: str | None
    sasl_mechanism: str
    sasl_password: str | None
    sasl_username: str | None
    security_protocol: str
    send_buffer_bytes: int | str
    share_acknowledgement_mode: str
    share_acquire_mode: str
    socket_connection_setup_timeout_max_ms: int | str
    socket_connection_setup_timeout_ms: int | str
    ssl_enabled_protocols: str
    ssl_endpoint_identification_algorithm: str
    ssl_key_password: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str
    ssl_protocol: str
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str


class _Arguments(TypedDict, total=False):
    """What all clients take."""

    config: Mapping[str, object] | None


class AdminArguments(AdminSettings, _Arguments, total=False):
    """Everything that AsyncAdmin takes by keyword."""


class ProducerArguments(ProducerSettings, _Arguments, total=False):
    """Everything that AsyncProducer takes by keyword."""

    key_serializer: Callable[[Any], bytes | None] | None
    value_serializer: Callable[[Any], bytes | None] | None
    partitioner: Callable[[str, bytes | None, int], int] | None
    on_batch: Callable[[TopicPartition, int, ClientError | None], None] | None


class _ReaderArguments(_Arguments, total=False):
    """What both kinds of consumers take."""

    key_deserializer: Callable[[bytes | None], Any] | None
    value_deserializer: Callable[[bytes | None], Any] | None


class ConsumerArguments(ConsumerSettings, _ReaderArguments, total=False):
    """Everything that AsyncConsumer takes by keyword."""


class ShareConsumerArguments(ShareConsumerSettings, _ReaderArguments, total=False):
    """Everything that AsyncShareConsumer takes by keyword, on_acknowledged aside."""
