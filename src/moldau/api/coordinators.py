"""FindCoordinator, and how requests about groups get to their coordinator and its errors back to the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.api.call import Call
from moldau.coordinator.shard import Done
from moldau.node.coordinators import GroupVerb
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message

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


def answer(call: Call, on_error: Callable[[KafkaError], Message]) -> Done:
    """A `done` that completes the call; `on_error` makes the answer when there is none."""

    def done(result: Message | KafkaError) -> None:
        if not call.reply.done:
            call.respond(on_error(as_client_sees(result)) if isinstance(result, KafkaError) else result)

    return done


def run_group(call: Call, group_id: str, verb: GroupVerb, done: Done) -> None:
    """Runs a verb on the machine of this group. Made with `answer`, `done` may also be given to the verb, which then
    returns an outcome without a response and calls it itself, later."""
    call.node.coordinators.groups.run(group_id, verb, done, call.now_ms)


def check_group_id(group_id: str | None) -> None:
    """For the requests of members; offsets may be committed under an empty group id, as old clients do."""
    if not group_id:
        raise KafkaError(errors.INVALID_GROUP_ID)
