"""Metadata, DescribeTopicPartitions, DescribeCluster: brokers, topics and who leads what, from the metadata image.

Metadata 0-13: an empty list means all topics in version 0 and none later, null means all from version 1 on; topics by
id from version 12 on. A topic that is missing is created if client and broker both allow it; the first response still
says UNKNOWN_TOPIC_OR_PARTITION. DescribeTopicPartitions 0 pages with a cursor. DescribeCluster 0-2.
"""

from __future__ import annotations

from moldau.api.authorize import authorized_operations, check_cluster, cluster_operations, may, may_cluster
from moldau.api.call import Call
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import NO_LEADER, BrokerRegistration, PartitionRegistration, TopicImage
from moldau.node.auto_creation import create_missing_topics
from moldau.node.topic_encodings import (
    DESCRIBE_TOPIC_PARTITIONS,
    EncodedDescription,
    EncodedRow,
    EncodedTopic,
    TopicView,
)
from moldau.node.topic_names import is_internal, is_valid_topic_name
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
from moldau.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from moldau.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from moldau.protocol.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.primitives import Message, Writer
from moldau.protocol.uuids import ZERO_UUID
from moldau.security.rights import ALL_TOPIC_OPERATIONS, ALTER, CREATE, DESCRIBE, TOPIC

FIRST_TOPIC_ID_VERSION = 12
FIRST_LISTENER_ERROR_VERSION = 6
FIRST_TAGS_VERSION = 9

BROKERS = 1
CONTROLLERS = 2


def handle_metadata(call: Call, request: MetadataRequest) -> None:
    image = call.node.image
    response = MetadataResponse(
        brokers=list_brokers(image, call.context.listener),
        cluster_id=call.node.cluster_id,
        controller_id=call.node.any_live_broker(),
    )
    asked = request.topics
    encodings = call.node.topic_encodings
    with_operations = request.include_topic_authorized_operations
    view = encodings.view(image, call.context.listener, call.version, with_operations)
    if asked is None or (call.version == 0 and not asked):
        has_rights = call.node.rights is not None
        for topic in image.topics_by_name.values():
            if not has_rights or may(call, DESCRIBE, TOPIC, topic.name, is_filter=True):
                response.topics.append(describe_topic(call, image, topic, view, with_operations))
    else:
        describe_asked_topics(call, image, request, asked, response, view)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(call)
    call.respond(response)
    encodings.trim()


def describe_asked_topics(
    call: Call,
    image: MetadataImage,
    request: MetadataRequest,
    asked: list[MetadataRequestTopic],
    response: MetadataResponse,
    view: TopicView,
) -> None:
    with_operations = request.include_topic_authorized_operations
    has_rights = call.node.rights is not None
    missing: list[str] = []
    seen: set[str | bytes] = set()
    for wanted in asked:
        by_id = wanted.topic_id != ZERO_UUID
        if by_id and call.version < FIRST_TOPIC_ID_VERSION:
            response.topics.append(MetadataResponseTopic(error_code=errors.INVALID_REQUEST, name=wanted.name or ""))
            continue
        topic = image.topics_by_id.get(wanted.topic_id) if by_id else image.topics_by_name.get(wanted.name or "")
        name = topic.name if topic is not None else wanted.name or ""
        # Whether a name and an id are those of one topic is not told to who may not see it.
        is_hidden = has_rights and not (by_id and topic is None) and not may(call, DESCRIBE, TOPIC, name)
        key = wanted.topic_id if by_id and (is_hidden or topic is None) else name
        if key in seen:
            continue
        seen.add(key)
        if is_hidden:
            response.topics.append(hidden_topic(wanted, by_id))
        elif topic is not None:
            response.topics.append(describe_topic(call, image, topic, view, with_operations))
        elif by_id:
            response.topics.append(
                MetadataResponseTopic(error_code=errors.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id)
            )
        else:
            response.topics.append(describe_missing(call, request, wanted.name or "", missing))
    if missing:
        create_missing_topics(call.node, missing, call.context, call.client_id, call.now_ms)


def hidden_topic(wanted: MetadataRequestTopic, by_id: bool) -> MetadataResponseTopic:
    """Whether it exists is not told, nor anything else of it."""
    code = errors.TOPIC_AUTHORIZATION_FAILED
    if by_id:
        return MetadataResponseTopic(error_code=code, name=None, topic_id=wanted.topic_id)
    return MetadataResponseTopic(error_code=code, name=wanted.name or "")


def may_create_topic(call: Call, name: str) -> bool:
    """Whoever may not create a topic must not do so by asking for it."""
    return may_cluster(call, CREATE, is_filter=True) or may(call, CREATE, TOPIC, name)


def describe_missing(call: Call, request: MetadataRequest, name: str, missing: list[str]) -> MetadataResponseTopic:
    error = errors.UNKNOWN_TOPIC_OR_PARTITION
    is_wanted = request.allow_auto_topic_creation or call.version < 4
    is_created = is_wanted and call.node.config.get_bool("auto.create.topics.enable")
    if is_created and not may_create_topic(call, name):
        error = errors.TOPIC_AUTHORIZATION_FAILED
    elif not is_valid_topic_name(name):
        error = errors.INVALID_TOPIC_EXCEPTION
    elif is_created:
        missing.append(name)
    return MetadataResponseTopic(error_code=error, name=name, is_internal=is_internal(name))


def list_brokers(image: MetadataImage, listener: str) -> list[MetadataResponseBroker]:
    brokers: list[MetadataResponseBroker] = []
    for broker in image.brokers.values():
        endpoint = broker.end_points.get(listener)
        if not broker.fenced and endpoint is not None:
            brokers.append(
                MetadataResponseBroker(
                    node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
                )
            )
    return brokers


def describe_topic(
    call: Call, image: MetadataImage, topic: TopicImage, view: TopicView, with_operations: bool
) -> EncodedTopic:
    encoded = view.find(topic) or encode_topic(call, image, topic, view, with_operations)
    if with_operations and call.node.rights is not None:
        return with_bits(encoded, call.version, authorized_operations(call, TOPIC, topic.name))
    return encoded


def with_bits(encoded: EncodedTopic, version: int, bits: int) -> EncodedTopic:
    """What is kept has the operations of nobody in particular: they are its last field, before the tags if any."""
    tags = 1 if version >= FIRST_TAGS_VERSION else 0
    data, end = encoded.data, len(encoded.data) - tags
    return EncodedTopic(encoded.topic, data[: end - 4] + bits.to_bytes(4, "big") + data[end:])


def encode_topic(
    call: Call, image: MetadataImage, topic: TopicImage, view: TopicView, with_operations: bool
) -> EncodedTopic:
    """Encodes a topic and keeps what it made for the next who asks."""
    described = MetadataResponseTopic(
        error_code=errors.NONE, name=topic.name, topic_id=topic.topic_id, is_internal=is_internal(topic.name)
    )
    if with_operations:
        described.topic_authorized_operations = ALL_TOPIC_OPERATIONS
    for index, partition in sorted(topic.partitions.items()):
        row = view.row(partition, index)
        if row is None:
            row = view.keep_row(partition, encode(describe_partition(call, image, index, partition), call.version))
        described.partitions.append(EncodedRow(row))
    encoded = EncodedTopic(topic, encode(described, call.version))
    view.keep(encoded)
    return encoded


def encode(message: Message, version: int) -> bytes:
    writer = Writer()
    message.encode(writer, version)
    return writer.to_bytes()


def describe_partition(
    call: Call, image: MetadataImage, index: int, partition: PartitionRegistration
) -> MetadataResponsePartition:
    listener = call.context.listener
    error, leader = leader_as_seen(image, listener, partition, call.version)
    row = MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=offline_replicas(image, listener, partition),
    )
    if call.version == 0:
        drop_unavailable_replicas(image, listener, row)
    return row


def drop_unavailable_replicas(image: MetadataImage, listener: str, row: MetadataResponsePartition) -> None:
    """The first clients knew no brokers that are away: they see those that are there, and an error."""

    def is_there(broker_id: int) -> bool:
        broker = image.brokers.get(broker_id)
        return broker is not None and not broker.fenced and listener in broker.end_points

    before = len(row.replica_nodes) + len(row.isr_nodes)
    row.replica_nodes = [replica for replica in row.replica_nodes if is_there(replica)]
    row.isr_nodes = [replica for replica in row.isr_nodes if is_there(replica)]
    if row.error_code == errors.NONE and len(row.replica_nodes) + len(row.isr_nodes) < before:
        row.error_code = errors.REPLICA_NOT_AVAILABLE


def leader_as_seen(
    image: MetadataImage, listener: str, partition: PartitionRegistration, version: int
) -> tuple[int, int]:
    """The error and leader id that clients of this listener see."""
    if partition.leader == NO_LEADER or not is_alive(image.brokers.get(partition.leader)):
        return errors.LEADER_NOT_AVAILABLE, NO_LEADER
    if listener not in image.brokers[partition.leader].end_points:
        if version >= FIRST_LISTENER_ERROR_VERSION:
            return errors.LISTENER_NOT_FOUND, NO_LEADER
        return errors.LEADER_NOT_AVAILABLE, NO_LEADER
    return errors.NONE, partition.leader


def is_alive(broker: BrokerRegistration | None) -> bool:
    return broker is not None and not broker.fenced


def offline_replicas(image: MetadataImage, listener: str, partition: PartitionRegistration) -> list[int]:
    offline: list[int] = []
    for replica, directory in zip(partition.replicas, partition.directories, strict=True):
        broker = image.brokers.get(replica)
        if broker is None or broker.fenced or listener not in broker.end_points or not broker.has_online_dir(directory):
            offline.append(replica)
    return offline


def handle_describe_topic_partitions(call: Call, request: DescribeTopicPartitionsRequest) -> None:
    image = call.node.image
    response = DescribeTopicPartitionsResponse()
    names = sorted({topic.name for topic in request.topics} or set(image.topics_by_name))
    hidden: list[DescribeTopicPartitionsResponseTopic] = []
    cursor = request.cursor
    if cursor is not None:
        asked = [topic.name for topic in request.topics]
        if cursor.partition_index < 0 or (asked and cursor.topic_name not in asked):
            for name in asked or [cursor.topic_name]:
                response.topics.append(
                    DescribeTopicPartitionsResponseTopic(error_code=errors.INVALID_REQUEST, name=name)
                )
            call.respond(response)
            return
        names = [name for name in names if name >= cursor.topic_name]
    if call.node.rights is not None:
        all_topics = not request.topics
        denied = {name for name in names if not may(call, DESCRIBE, TOPIC, name, is_filter=all_topics)}
        names = [name for name in names if name not in denied]
        if not all_topics:
            code = errors.TOPIC_AUTHORIZATION_FAILED
            hidden = [DescribeTopicPartitionsResponseTopic(error_code=code, name=name) for name in sorted(denied)]
    left = max(min(request.response_partition_limit, call.node.config.get_int("max.request.partition.size.limit")), 1)
    for name in names:
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        described, next_index = describe_partitions(call, image, name, first, left)
        response.topics.append(described)
        left -= len(described.partitions)
        if next_index >= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=next_index)
            break
    response.topics += hidden
    call.respond(response)


def describe_partitions(
    call: Call, image: MetadataImage, name: str, first: int, limit: int
) -> tuple[DescribeTopicPartitionsResponseTopic, int]:
    """Up to `limit` partitions from `first` on, and the index to go on with (-1: that was all)."""
    topic = image.topics_by_name.get(name)
    if topic is None:
        error = errors.UNKNOWN_TOPIC_OR_PARTITION if is_valid_topic_name(name) else errors.INVALID_TOPIC_EXCEPTION
        missing = DescribeTopicPartitionsResponseTopic(error_code=error, name=name, is_internal=is_internal(name))
        missing.topic_authorized_operations = authorized_operations(call, TOPIC, name)
        return missing, -1
    described = DescribeTopicPartitionsResponseTopic(
        error_code=errors.NONE,
        name=name,
        topic_id=topic.topic_id,
        is_internal=is_internal(name),
        topic_authorized_operations=authorized_operations(call, TOPIC, name),
    )
    listener = call.context.listener
    view = call.node.topic_encodings.view(image, listener, DESCRIBE_TOPIC_PARTITIONS, True)
    for index, partition in sorted(topic.partitions.items()):
        if index < first:
            continue
        if len(described.partitions) == limit:
            return described, index
        row = view.row(partition, index)
        if row is None:
            row = view.keep_row(partition, encode(describe_row(image, listener, index, partition), call.version))
        described.partitions.append(EncodedDescription(row))
    return described, -1


def describe_row(
    image: MetadataImage, listener: str, index: int, partition: PartitionRegistration
) -> DescribeTopicPartitionsResponsePartition:
    error, leader = leader_as_seen(image, listener, partition, FIRST_LISTENER_ERROR_VERSION)
    return DescribeTopicPartitionsResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(image, listener, partition),
    )


def handle_describe_cluster(call: Call, request: DescribeClusterRequest) -> None:
    own_type = CONTROLLERS if call.context.is_controller_listener else BROKERS
    if own_type == CONTROLLERS:
        try:
            check_cluster(call, ALTER)
        except KafkaError as error:
            call.respond(DescribeClusterResponse(error_code=error.code, error_message=error.message))
            return
    if request.endpoint_type != own_type:
        known = request.endpoint_type in (BROKERS, CONTROLLERS)
        code = errors.MISMATCHED_ENDPOINT_TYPE if known else errors.UNSUPPORTED_ENDPOINT_TYPE
        message = (
            f"The request was sent to an endpoint of the wrong type. Expected {endpoint_type_name(own_type)}, "
            f"got {endpoint_type_name(request.endpoint_type)}."
        )
        call.respond(DescribeClusterResponse(error_code=code, error_message=message))
        return
    node = call.node
    response = DescribeClusterResponse(endpoint_type=own_type, cluster_id=node.cluster_id)
    if own_type == CONTROLLERS:
        response.controller_id = node.metadata.leader_id
        for controller_id, host, port in node.controller_endpoints(call.context.listener):
            response.brokers.append(DescribeClusterBroker(broker_id=controller_id, host=host, port=port))
    else:
        response.controller_id = node.any_live_broker()
        include_fenced = call.version >= 2 and request.include_fenced_brokers
        for broker in node.image.brokers.values():
            endpoint = broker.end_points.get(call.context.listener)
            if endpoint is not None and (include_fenced or not broker.fenced):
                response.brokers.append(
                    DescribeClusterBroker(
                        broker_id=broker.broker_id,
                        host=endpoint.host,
                        port=endpoint.port,
                        rack=broker.rack,
                        is_fenced=broker.fenced and call.version >= 2,
                    )
                )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(call)
    call.respond(response)


def endpoint_type_name(endpoint_type: int) -> str:
    return {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}.get(endpoint_type, "UNKNOWN")
