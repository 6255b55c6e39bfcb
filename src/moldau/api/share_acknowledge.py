"""ShareAcknowledge: what a member says of the records that it holds: accepted, released, rejected, renewed.

Versions 1-2; 2 may renew (KIP-1222). All acknowledgements of a partition are done or none; partitions are independent.
A partition is answered when the share coordinator has stored what became of its records.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.api.authorize import check_topic
from moldau.api.call import Call
from moldau.api.share_checks import (
    ERRORS_WITH_LEADER,
    LeaderHints,
    check_member,
    check_partition,
    entries_of_acknowledge,
    topic_name,
)
from moldau.node.share.acknowledgement import Acknowledgement, check_request
from moldau.node.share.sessions import FINAL_EPOCH, PlaceKey
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.share_acknowledge_request import ShareAcknowledgeRequest
from moldau.protocol.messages.share_acknowledge_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from moldau.security.rights import READ

FIRST_RENEW_VERSION = 2

Results = dict[PlaceKey, KafkaError | None]


class Acknowledging:
    """The acknowledgements of one request on their way; `finish` gets what became of each partition."""

    def __init__(
        self, call: Call, group_id: str, member_id: str, renews: bool, finish: Callable[[Results], None]
    ) -> None:
        self._call = call
        self._group_id = group_id
        self._member_id = member_id
        self._renews = renews
        self._finish = finish
        self._results: Results = {}
        self._missing = 1

    def begin(self, entries: dict[PlaceKey, list[Acknowledgement]]) -> None:
        for place, wanted in entries.items():
            self._results[place] = None
            try:
                self._acknowledge(place, wanted)
            except KafkaError as error:
                self._results[place] = error
        self._one_less()

    def _acknowledge(self, place: PlaceKey, entries: list[Acknowledgement]) -> None:
        node = self._call.node
        check_topic(self._call, READ, topic_name(node, place[0]))
        check_request(entries, self._renews)
        check_partition(node, *place)
        if not entries:
            return
        one = node.shares.find((self._group_id, *place))
        if one is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
        if not one.is_current():
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        self._missing += 1
        try:
            one.acknowledge(self._member_id, entries, StoredPlace(self, place).done, self._call.now_ms)
        except KafkaError:
            self._missing -= 1
            raise
        for entry in entries:
            node.shares.counts.on_acknowledged(entry.first, entry.last, entry.types)

    def on_stored(self, place: PlaceKey, error: KafkaError | None) -> None:
        self._results[place] = error
        self._one_less()

    def _one_less(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._finish(self._results)


class StoredPlace:
    def __init__(self, owner: Acknowledging, place: PlaceKey) -> None:
        self._owner = owner
        self._place = place

    def done(self, error: KafkaError | None, now_ms: int) -> None:
        self._owner.on_stored(self._place, error)


def handle_share_acknowledge(call: Call, request: ShareAcknowledgeRequest) -> None:
    counts = call.node.shares.counts
    counts.acknowledges_total += 1
    try:
        group_id, member_id = check_member(call, request.group_id, request.member_id)
        session = call.node.shares.sessions.for_acknowledge((group_id, member_id), request.share_session_epoch)
    except KafkaError as error:
        counts.failed_acknowledges_total += 1
        call.respond(ShareAcknowledgeResponse(error_code=error.code))
        return
    entries: dict[PlaceKey, list[Acknowledgement]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            if partition.acknowledgement_batches:
                batches = entries_of_acknowledge(partition.acknowledgement_batches)
                entries[(topic.topic_id, partition.partition_index)] = batches
    renews = request.is_renew_ack and call.version >= FIRST_RENEW_VERSION
    Acknowledging(call, group_id, member_id, renews, Finish(call, group_id).done).begin(entries)
    if request.share_session_epoch == FINAL_EPOCH:
        call.node.shares.end_session(session, call.now_ms)


class Finish:
    """Responds to a request when all of its acknowledgements are stored, or could not be."""

    __slots__ = ("_call", "_group_id")

    def __init__(self, call: Call, group_id: str) -> None:
        self._call = call
        self._group_id = group_id

    def done(self, results: Results) -> None:
        call = self._call
        if any(error is not None for error in results.values()):
            call.node.shares.counts.failed_acknowledges_total += 1
        if not call.reply.done:
            call.respond(response_to(call, self._group_id, results))


def response_to(call: Call, group_id: str, results: Results) -> ShareAcknowledgeResponse:
    node = call.node
    lock_ms = node.shares.settings.limits_of(node.image, group_id).lock_ms
    response = ShareAcknowledgeResponse(acquisition_lock_timeout_ms=lock_ms)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    hints = LeaderHints(call)
    for (topic_id, index), error in results.items():
        if topic_id not in topics:
            topics[topic_id] = ShareAcknowledgeTopicResponse(topic_id)
            response.responses.append(topics[topic_id])
        row = PartitionData(index)
        topics[topic_id].partitions.append(row)
        if error is not None:
            row.error_code, row.error_message = error.code, str(error) or errors.default_text(error.code)
            topic = node.image.topics_by_id.get(topic_id)
            if error.code in ERRORS_WITH_LEADER and topic is not None:
                row.current_leader = LeaderIdAndEpoch(*hints.leader_of(topic.name, index))
    response.node_endpoints = [NodeEndpoint(*endpoint) for endpoint in hints.endpoints]
    return response
