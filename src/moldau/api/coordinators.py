"""FindCoordinator, and how requests about groups get to their coordinator and its errors back to the client.

FindCoordinator versions 0-6: 1 adds the key type, 4 asks for many keys at once (KIP-699), 6 adds share groups. The
first question for a group makes the topic __consumer_offsets, the first for a transactional id __transaction_state, the
first for a share partition __share_group_state;
clients ask again until the leaders are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.api.authorize import check_cluster, check_group, check_transactional_id
from moldau.api.call import Call
from moldau.coordinator.shard import Done
from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.node.auto_creation import create_own_topic
from moldau.node.coordinators import GroupVerb
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from moldau.protocol.primitives import Message
from moldau.protocol.topic_names import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from moldau.protocol.uuids import uuid_from_text
from moldau.security.rights import CLUSTER_ACTION, DESCRIBE

GROUP_KEY: Final = 0
TRANSACTION_KEY: Final = 1
SHARE_KEY: Final = 2
FIRST_BATCHED_VERSION: Final = 4
FIRST_SHARE_VERSION: Final = 6
NO_NODE: Final = (-1, "", -1)

# What the log of a coordinator may say, and what that means to a client of the coordinator.
LOG_ERRORS: Final = {
    errors.UNKNOWN_TOPIC_OR_PARTITION: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS: errors.COORDINATOR_NOT_AVAILABLE,
    errors.REQUEST_TIMED_OUT: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_LEADER_OR_FOLLOWER: errors.NOT_COORDINATOR,
    errors.KAFKA_STORAGE_ERROR: errors.NOT_COORDINATOR,
    errors.MESSAGE_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.RECORD_LIST_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.INVALID_FETCH_SIZE: errors.UNKNOWN_SERVER_ERROR,
}


def as_client_sees(error: KafkaError) -> KafkaError:
    """The error of a coordinator's log in the terms of its clients; what the coordinator decided stays as it is."""
    code = LOG_ERRORS.get(error.code)
    return error if code is None else KafkaError(code)


def responder(call: Call, on_error: Callable[[KafkaError], Message]) -> Done:
    """A `done` that completes the call; `on_error` makes the response when there is none."""

    def done(result: Message | KafkaError) -> None:
        if not call.reply.done:
            call.respond(on_error(as_client_sees(result)) if isinstance(result, KafkaError) else result)

    return done


class Slot:
    """Where the response to one of several questions goes."""

    def __init__(self, gathering: Gathering, number: int) -> None:
        self._gathering = gathering
        self._number = number

    def done(self, result: Message | KafkaError) -> None:
        self._gathering.fill(self._number, result)


class Gathering:
    """Collects the responses of several shards; `finish` gets them all, in the order of the questions."""

    def __init__(self, count: int, finish: Callable[[list[Message | KafkaError]], None]) -> None:
        self._results: list[Message | KafkaError] = [KafkaError(errors.UNKNOWN_SERVER_ERROR)] * count
        # One more than there are questions: the last is taken back when all of them were asked.
        self._missing = count + 1
        self._finish = finish

    def slot(self, number: int) -> Done:
        return Slot(self, number).done

    def fill(self, number: int, result: Message | KafkaError) -> None:
        self._results[number] = result
        self._one_less()

    def begin(self) -> None:
        """All questions were asked; some may be answered already."""
        self._one_less()

    def _one_less(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._finish(self._results)


def run_group(call: Call, group_id: str, verb: GroupVerb, done: Done) -> None:
    """Runs a verb on the machine of this group. Made with `responder`, `done` may also be given to the verb, which then
    returns an outcome without a response and calls it itself, later."""
    call.node.coordinators.groups.run(group_id, verb, done, call.now_ms)


def check_group_id(group_id: str | None) -> None:
    """For the requests of members; offsets may be committed under an empty group id, as old clients do."""
    if not group_id:
        raise KafkaError(errors.INVALID_GROUP_ID)


def handle_find_coordinator(call: Call, request: FindCoordinatorRequest) -> None:
    if call.version >= FIRST_BATCHED_VERSION:
        keys = request.coordinator_keys
        call.respond(FindCoordinatorResponse(coordinators=[find_coordinator(call, request.key_type, k) for k in keys]))
        return
    found = find_coordinator(call, request.key_type, request.key)
    call.respond(
        FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=errors.default_text(found.error_code) if found.error_code else "NONE",
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    )


def find_coordinator(call: Call, key_type: int, key: str) -> Coordinator:
    if key_type not in (GROUP_KEY, TRANSACTION_KEY, SHARE_KEY):
        return Coordinator(key, *NO_NODE, errors.INVALID_REQUEST, errors.default_text(errors.INVALID_REQUEST))
    try:
        return Coordinator(key, *coordinator_node(call, key_type, key))
    except KafkaError as error:
        is_refused = error.code == errors.CLUSTER_AUTHORIZATION_FAILED
        return Coordinator(key, *NO_NODE, error.code, errors.default_text(error.code) if is_refused else "")


def coordinator_node(call: Call, key_type: int, key: str) -> tuple[int, str, int]:
    """Id, host and port of the broker that coordinates this key."""
    coordinators = call.node.coordinators
    if key_type == SHARE_KEY and call.version < FIRST_SHARE_VERSION:
        raise KafkaError(errors.INVALID_REQUEST)
    check_key(call, key_type, key)
    if key_type == GROUP_KEY:
        return leader_node(call, GROUP_TOPIC, coordinators.groups.partition_for(key))
    if key_type == TRANSACTION_KEY:
        return leader_node(call, TRANSACTION_TOPIC, coordinators.transactions.partition_for(key))
    return leader_node(call, SHARE_TOPIC, coordinators.shares.partition_for(parse_share_key(key)))


def check_key(call: Call, key_type: int, key: str) -> None:
    """Who coordinates something is told to those who may see it, of share partitions to brokers."""
    if key_type == GROUP_KEY:
        check_group(call, DESCRIBE, key)
    elif key_type == TRANSACTION_KEY:
        check_transactional_id(call, DESCRIBE, key)
    else:
        check_cluster(call, CLUSTER_ACTION)


def parse_share_key(key: str) -> SharePartitionKey:
    """`group:topicId:partition`; the group may have colons of its own."""
    parts = key.rsplit(":", 2)
    try:
        group_id, topic_id, partition = parts[0], uuid_from_text(parts[1]), int(parts[2])
    except (IndexError, ValueError) as error:
        raise KafkaError(errors.INVALID_REQUEST) from error
    if not group_id.strip():
        raise KafkaError(errors.INVALID_REQUEST)
    return group_id, topic_id, partition


def leader_node(call: Call, topic: str, index: int) -> tuple[int, str, int]:
    node = call.node
    if topic not in node.image.topics_by_name:
        create_own_topic(node, topic, call.now_ms)
        raise KafkaError(errors.COORDINATOR_NOT_AVAILABLE)
    leader, _ = node.leader_of(topic, index)
    endpoint = node.endpoint_of(leader, call.context.listener)
    broker = node.image.brokers.get(leader)
    if endpoint is None or broker is None or broker.fenced:
        raise KafkaError(errors.COORDINATOR_NOT_AVAILABLE)
    return endpoint[0], endpoint[1], endpoint[2]
