"""Initialize-, Read-, Write-, DeleteShareGroupState, ReadShareGroupStateSummary: brokers ask a share coordinator.

Versions 0; WriteShareGroupState and ReadShareGroupStateSummary also 1, with the count of records that are done with.
Each partition has a state, and perhaps a shard, of its own: they are asked one by one and answered together. A request
without a group, topics or partitions gets an empty response.
"""

from __future__ import annotations

from moldau.api.authorize import may_cluster
from moldau.api.call import Call
from moldau.api.coordinators import Gathering, as_client_sees
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.share.machine import ShareMachine
from moldau.node.share.state_messages import DELETE, INITIALIZE, READ, SUMMARY, WRITE, Result, response_for
from moldau.node.share.states import StateQuestion
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.delete_share_group_state_request import DeleteShareGroupStateRequest
from moldau.protocol.messages.initialize_share_group_state_request import InitializeShareGroupStateRequest
from moldau.protocol.messages.read_share_group_state_request import ReadShareGroupStateRequest
from moldau.protocol.messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest
from moldau.protocol.messages.write_share_group_state_request import WriteShareGroupStateRequest
from moldau.protocol.primitives import Message
from moldau.security.rights import CLUSTER_ACTION

StateRequest = (
    InitializeShareGroupStateRequest
    | ReadShareGroupStateRequest
    | WriteShareGroupStateRequest
    | ReadShareGroupStateSummaryRequest
    | DeleteShareGroupStateRequest
)


class Refused(KafkaError):
    """What the coordinator itself said, and not the log that it writes to."""


class StateDecision:
    """What a coordinator decides about one partition of a request; its own refusals are told apart as `Refused`."""

    def __init__(self, question: StateQuestion) -> None:
        self._question = question

    def decide(self, machine: ShareMachine) -> Outcome:
        try:
            return self._question.decide(machine)
        except KafkaError as error:
            raise Refused(error.code, error.message) from error


def as_broker_sees(result: Message | KafkaError) -> Message | KafkaError:
    if isinstance(result, KafkaError) and not isinstance(result, Refused):
        return as_client_sees(result)
    return result


def respond(call: Call, kind: int, request: StateRequest) -> None:
    """All partitions of the request, in its order."""
    questions: list[StateQuestion] = []
    if request.group_id:
        for topic in request.topics:
            for row in topic.partitions:
                key = (request.group_id, topic.topic_id, row.partition)
                questions.append(StateQuestion(kind, key, row, ignore))

    def on_all(results: list[Message | KafkaError]) -> None:
        rows: list[Result] = [
            (question.key, as_broker_sees(result)) for question, result in zip(questions, results, strict=True)
        ]
        if not call.reply.done:
            call.respond(response_for(kind, rows))

    gathering = Gathering(len(questions), on_all)
    is_broker = may_cluster(call, CLUSTER_ACTION)
    for number, question in enumerate(questions):
        if not is_broker:
            gathering.fill(number, Refused(errors.CLUSTER_AUTHORIZATION_FAILED))
            continue
        question.asked_ms = call.now_ms
        decide = StateDecision(question).decide
        call.node.coordinators.shares.run(question.key, decide, gathering.slot(number), call.now_ms)
    gathering.begin()


def ignore(result: Message | KafkaError, now_ms: int) -> None:
    """Responses are gathered."""


def handle_initialize_share_group_state(call: Call, request: InitializeShareGroupStateRequest) -> None:
    respond(call, INITIALIZE, request)


def handle_read_share_group_state(call: Call, request: ReadShareGroupStateRequest) -> None:
    respond(call, READ, request)


def handle_write_share_group_state(call: Call, request: WriteShareGroupStateRequest) -> None:
    respond(call, WRITE, request)


def handle_read_share_group_state_summary(call: Call, request: ReadShareGroupStateSummaryRequest) -> None:
    respond(call, SUMMARY, request)


def handle_delete_share_group_state(call: Call, request: DeleteShareGroupStateRequest) -> None:
    respond(call, DELETE, request)
