"""The keywords of clients, for type checkers and editors: written by tools/generate_setting_types.py from config.py.

A keyword is Kafka's name with `_` for `.`; `config` takes Kafka's names as they are. docs/client-settings.md is the
same as a page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition


class CommonSettings(TypedDict, total=False):
    """What all clients take."""

    client_id: str
    """The name by which brokers know this client, in their logs and for quotas. [client.id, default moldau]"""
    connections_max_idle_ms: int | str
    """A connection that nobody used for so long is closed; -1 keeps it. [connections.max.idle.ms, default 540000]"""
    enable_metrics_push: bool | str
    """Metrics are pushed to brokers that ask for them (KIP-714); most do not offer to take any. [enable.metrics.push,
    default true]"""
    metadata_max_age_ms: int | str
    """Topics, leaders and brokers are asked for anew at least so often. [metadata.max.age.ms, default 300000]"""
    metadata_recovery_strategy: str
    """Whether the bootstrap servers are asked again when no known broker can be reached. One of rebootstrap, none.
    [metadata.recovery.strategy, default rebootstrap]"""
    metrics_num_samples: int | str
    """How many samples rates and averages of metrics() are made of. [metrics.num.samples, default 2]"""
    metrics_sample_window_ms: int | str
    """How long one sample of metrics() lasts. [metrics.sample.window.ms, default 30000]"""
    receive_buffer_bytes: int | str
    """The size of a socket's receive buffer; -1 leaves it to the system. [receive.buffer.bytes, default -1]"""
    reconnect_backoff_max_ms: int | str
    """The longest pause between two tries to connect. [reconnect.backoff.max.ms, default 1000]"""
    reconnect_backoff_ms: int | str
    """The pause before a lost broker is connected to again; it doubles with each failure. [reconnect.backoff.ms,
    default 50]"""
    request_timeout_ms: int | str
    """How long a broker may take to respond to one request. [request.timeout.ms, default 30000]"""
    retry_backoff_max_ms: int | str
    """The longest pause between two tries of a request. [retry.backoff.max.ms, default 1000]"""
    retry_backoff_ms: int | str
    """The pause before a request that failed is tried again; it doubles with each failure. [retry.backoff.ms, default
    100]"""
    sasl_jaas_config: str | None
    """The login as for Java: '…LoginModule required username="…" password="…";'. [sasl.jaas.config, not set]"""
    sasl_mechanism: str
    """How to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. [sasl.mechanism, default GSSAPI]"""
    sasl_oauthbearer_client_credentials_client_id: str | None
    """Who asks the token endpoint for a token. [sasl.oauthbearer.client.credentials.client.id, not set]"""
    sasl_oauthbearer_client_credentials_client_secret: str | None
    """The secret of that client id. [sasl.oauthbearer.client.credentials.client.secret, not set]"""
    sasl_oauthbearer_scope: str | None
    """The scope that a token is asked for with. [sasl.oauthbearer.scope, not set]"""
    sasl_oauthbearer_token_endpoint_url: str | None
    """Where tokens are asked for, or file: and the path of one; KAFKA_OPTS has to allow it.
    [sasl.oauthbearer.token.endpoint.url, not set]"""
    sasl_oauthbearer_token_provider: Callable[[], str] | None
    """A function that returns a token for OAUTHBEARER, called when a new one is needed.
    [sasl.oauthbearer.token.provider, not set]"""
    sasl_password: str | None
    """The password of sasl.username. [sasl.password, not set]"""
    sasl_username: str | None
    """Who logs in, in place of sasl.jaas.config, as librdkafka names it. [sasl.username, not set]"""
    security_protocol: str
    """How to speak to brokers: with TLS (SSL) or without, with a login (SASL) or without. One of PLAINTEXT, SSL,
    SASL_PLAINTEXT, SASL_SSL. [security.protocol, default PLAINTEXT]"""
    send_buffer_bytes: int | str
    """The size of a socket's send buffer; -1 leaves it to the system. [send.buffer.bytes, default -1]"""
    socket_connection_setup_timeout_max_ms: int | str
    """The longest time that a connection may take to be made. [socket.connection.setup.timeout.max.ms, default
    30000]"""
    socket_connection_setup_timeout_ms: int | str
    """How long a connection may take to be made; it doubles with each failure. [socket.connection.setup.timeout.ms,
    default 10000]"""
    ssl_enabled_protocols: str
    """The versions of TLS to offer. [ssl.enabled.protocols, default TLSv1.2,TLSv1.3]"""
    ssl_endpoint_identification_algorithm: str
    """https: a broker's certificate must name its host. Empty: it need not. [ssl.endpoint.identification.algorithm,
    default https]"""
    ssl_key_password: str | None
    """The password of the client's own key. [ssl.key.password, not set]"""
    ssl_keystore_certificate_chain: str | None
    """The client's own certificate and those above it, as PEM. [ssl.keystore.certificate.chain, not set]"""
    ssl_keystore_key: str | None
    """The client's own key, as PEM. [ssl.keystore.key, not set]"""
    ssl_keystore_location: str | None
    """The file with the client's own key and certificate: PEM or PKCS12. [ssl.keystore.location, not set]"""
    ssl_keystore_password: str | None
    """The password of the file in ssl.keystore.location. [ssl.keystore.password, not set]"""
    ssl_keystore_type: str
    """Taken and not needed: what a store is shows when it is opened. One of JKS, PKCS12, PEM. [ssl.keystore.type,
    default JKS]"""
    ssl_protocol: str
    """Taken and not needed: ssl.enabled.protocols says which versions. [ssl.protocol, default TLSv1.3]"""
    ssl_truststore_certificates: str | None
    """The certificates to trust, as PEM. [ssl.truststore.certificates, not set]"""
    ssl_truststore_location: str | None
    """The file with the certificates to trust: PEM, PKCS12 or JKS. None: those that the system trusts.
    [ssl.truststore.location, not set]"""
    ssl_truststore_password: str | None
    """The password of the file in ssl.truststore.location. [ssl.truststore.password, not set]"""
    ssl_truststore_type: str
    """Taken and not needed: what a store is shows when it is opened. One of JKS, PKCS12, PEM. [ssl.truststore.type,
    default JKS]"""


class AdminSettings(CommonSettings, total=False):
    """Settings of Admin and AsyncAdmin."""

    bootstrap_controllers: str | list[str]
    """Controllers to speak to in place of brokers, as host:port; not together with bootstrap.servers.
    [bootstrap.controllers, not set]"""
    default_api_timeout_ms: int | str
    """How long a call may take, with everything it tries again, where it is given no timeout_ms.
    [default.api.timeout.ms, default 60000]"""


class ProducerSettings(CommonSettings, total=False):
    """Settings of Producer and AsyncProducer."""

    acks: str | int
    """Who must have a record before it counts as delivered: all in-sync replicas (all or -1), the leader (1), or nobody
    (0). [acks, default all]"""
    batch_size: int | str
    """How many bytes of records for one partition are sent together, unless linger.ms is over. [batch.size, default
    16384]"""
    buffer_memory: int | str
    """How many bytes may wait to be delivered before send() blocks. [buffer.memory, default 33554432]"""
    compression_gzip_level: int | str
    """From 1, quick, to 9, small; -1 is gzip's own choice. [compression.gzip.level, default -1]"""
    compression_lz4_level: int | str
    """From 1, quick, to 17, small. [compression.lz4.level, default 9]"""
    compression_type: str
    """How batches are compressed. One of none, gzip, snappy, lz4, zstd. [compression.type, default none]"""
    compression_zstd_level: int | str
    """From -131072, quick, to 22, small. [compression.zstd.level, default 3]"""
    delivery_timeout_ms: int | str
    """A record that is not delivered by then has failed, whatever was tried. [delivery.timeout.ms, default 120000]"""
    enable_idempotence: bool | str
    """Every record is written once and in order, whatever is tried again; off where acks excludes it.
    [enable.idempotence, default true]"""
    linger_ms: int | str
    """How long a batch that is not full waits for more records. [linger.ms, default 5]"""
    max_block_ms: int | str
    """How long send() waits for metadata or memory, and calls of transactions for a response. [max.block.ms, default
    60000]"""
    max_in_flight_requests_per_connection: int | str
    """How many requests may wait for their responses; idempotence allows 5. [max.in.flight.requests.per.connection,
    default 5]"""
    max_request_size: int | str
    """The most bytes that a record, or a request, may have. [max.request.size, default 1048576]"""
    partitioner_adaptive_partitioning_enable: bool | str
    """Records without a key go more rarely to partitions whose batches pile up (KIP-794).
    [partitioner.adaptive.partitioning.enable, default true]"""
    partitioner_availability_timeout_ms: int | str
    """Partitions whose leader takes nothing for so long are left out; 0 leaves none out.
    [partitioner.availability.timeout.ms, default 0]"""
    partitioner_ignore_keys: bool | str
    """Whether partitions are chosen as if records had no keys. [partitioner.ignore.keys, default false]"""
    retries: int | str
    """How often a batch is tried again; delivery.timeout.ms is the better limit. [retries, default 2147483647]"""
    transaction_timeout_ms: int | str
    """Brokers abort a transaction that stays open for longer. [transaction.timeout.ms, default 60000]"""
    transaction_two_phase_commit_enable: bool | str
    """Whether an outside coordinator ends transactions, and no timeout does (KIP-939).
    [transaction.two.phase.commit.enable, default false]"""
    transactional_id: str | None
    """The name of whoever writes in transactions, the same after a restart: it fences the one before.
    [transactional.id, not set]"""


class ReadingSettings(CommonSettings, total=False):
    """What both kinds of consumers take."""

    allow_auto_create_topics: bool | str
    """Whether asking for a topic that does not exist may create it, where the brokers allow that too.
    [allow.auto.create.topics, default true]"""
    check_crcs: bool | str
    """Whether the checksums of fetched batches are checked. [check.crcs, default true]"""
    client_rack: str
    """Where this consumer runs: a replica in the same rack may be read from (KIP-392). [client.rack, default empty]"""
    default_api_timeout_ms: int | str
    """How long a call may take, with everything it tries again, where it is given no timeout_ms.
    [default.api.timeout.ms, default 60000]"""
    fetch_max_bytes: int | str
    """How many bytes a response should have at most, and are kept before poll() gives them. [fetch.max.bytes, default
    52428800]"""
    fetch_max_wait_ms: int | str
    """How long a broker waits for fetch.min.bytes before it responds with less. [fetch.max.wait.ms, default 500]"""
    fetch_min_bytes: int | str
    """How many bytes a broker waits for before it responds. [fetch.min.bytes, default 1]"""
    group_id: str | None
    """The group that this consumer is a member of. [group.id, not set]"""
    max_poll_interval_ms: int | str
    """A member that does not call poll() for so long leaves its group. [max.poll.interval.ms, default 300000]"""
    max_poll_records: int | str
    """How many records one poll() gives. [max.poll.records, default 500]"""


class ConsumerSettings(ReadingSettings, total=False):
    """Settings of Consumer and AsyncConsumer."""

    auto_commit_interval_ms: int | str
    """How often enable.auto.commit commits. [auto.commit.interval.ms, default 5000]"""
    auto_offset_reset: str
    """Where to begin when no offset is committed, or it is gone; none: poll() raises an error. One of latest, earliest,
    none, by_duration:PnDTnHnMn.nS. [auto.offset.reset, default latest]"""
    enable_auto_commit: bool | str
    """Whether what poll() gave is committed from time to time, and by close(); needs a group.id. [enable.auto.commit,
    default true]"""
    exclude_internal_topics: bool | str
    """Whether patterns of subscribe() pass over the cluster's own topics. [exclude.internal.topics, default true]"""
    group_instance_id: str | None
    """Makes the consumer a static member, who finds its partitions again after a restart (KIP-345). [group.instance.id,
    not set]"""
    group_protocol: str
    """Who assigns partitions: a member of the group (classic) or the broker (consumer, KIP-848). [group.protocol,
    default classic]"""
    group_remote_assignor: str | None
    """The broker's assignor that is to be used, with group.protocol=consumer. [group.remote.assignor, not set]"""
    heartbeat_interval_ms: int | str
    """How often a member tells that it is alive, with group.protocol=classic. [heartbeat.interval.ms, default 3000]"""
    isolation_level: str
    """Whether records of transactions that are open or were aborted are given. One of read_committed, read_uncommitted.
    [isolation.level, default read_uncommitted]"""
    max_partition_fetch_bytes: int | str
    """How many bytes of one partition a response should have at most, and are kept. [max.partition.fetch.bytes, default
    1048576]"""
    partition_assignment_strategy: str | list[str] | list[type] | list[object]
    """The assignors that the group may use, best first, with group.protocol=classic: range, roundrobin, sticky,
    cooperative-sticky, Java's names, or classes of one's own. [partition.assignment.strategy, default
    org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.CooperativeStickyAssignor]"""
    session_timeout_ms: int | str
    """A member that is not heard of for so long has left, with group.protocol=classic. [session.timeout.ms, default
    45000]"""


class ShareConsumerSettings(ReadingSettings, total=False):
    """Settings of ShareConsumer and AsyncShareConsumer."""

    share_acknowledgement_mode: str
    """implicit: the next poll() accepts all records of the last one. explicit: each is acknowledged.
    [share.acknowledgement.mode, default implicit]"""
    share_acquire_mode: str
    """batch_optimized: batches are locked whole, which may be more than max.poll.records. record_limit: never more.
    [share.acquire.mode, default batch_optimized]"""


class _Arguments(TypedDict, total=False):
    """What all clients take."""

    config: Mapping[str, object] | None
    """Settings by Kafka's names; a keyword of the same setting takes precedence."""


class AdminArguments(AdminSettings, _Arguments, total=False):
    """Everything that AsyncAdmin takes by keyword."""


class ProducerArguments(ProducerSettings, _Arguments, total=False):
    """Everything that AsyncProducer takes by keyword."""

    key_serializer: Callable[[Any], bytes | None] | None
    """Makes the bytes of each key; without one, keys are bytes, text or None."""
    value_serializer: Callable[[Any], bytes | None] | None
    """Makes the bytes of each value; without one, values are bytes, text or None."""
    partitioner: Callable[[str, bytes | None, int], int] | None
    """partitioner(topic, key, number of partitions) chooses the partition of a record for which none is given."""
    on_batch: Callable[[TopicPartition, int, ClientError | None], None] | None
    """on_batch(partition, number of records, error or None) is called in another thread for each batch that is done."""


class _ReaderArguments(_Arguments, total=False):
    """What both kinds of consumers take."""

    key_deserializer: Callable[[bytes | None], Any] | None
    """Makes record.key of the bytes of each key."""
    value_deserializer: Callable[[bytes | None], Any] | None
    """Makes record.value of the bytes of each value."""


class ConsumerArguments(ConsumerSettings, _ReaderArguments, total=False):
    """Everything that AsyncConsumer takes by keyword."""


class ShareConsumerArguments(ShareConsumerSettings, _ReaderArguments, total=False):
    """Everything that AsyncShareConsumer takes by keyword, on_acknowledged aside."""
