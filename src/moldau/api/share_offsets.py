"""DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets: where share groups stand (KIP-932).

DescribeShareGroupOffsets versions 0-1: 1 adds the lag. The other two have version 0. All go to the coordinator of the
group, which asks the share coordinators; offsets of a group that has members cannot be changed.
"""

from __future__ import annotations

from functools import partial

from moldau.api.authorize import denied_topics, may
from moldau.api.call import Call
from moldau.api.coordinators import Gathering, as_client_sees, run_group
from moldau.api.share_checks import ensure_state_topic
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.share import StateDeletion
from moldau.coordinator.group.share_member import TopicPartitions
from moldau.coordinator.outcome import Outcome
from moldau.node.latest_offsets import Offsets
from moldau.node.share.groups import Place, StateResults
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from moldau.protocol.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from moldau.protocol.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from moldau.protocol.messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from moldau.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from moldau.protocol.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from moldau.protocol.messages.read_share_group_state_summary_response import PartitionResult
from moldau.protocol.primitives import Message
from moldau.protocol.uuids import ZERO_UUID
from moldau.security.rights import DELETE, DESCRIBE, GROUP, READ

UNKNOWN = -1


def text_of(error: KafkaError) -> str:
    return error.message or errors.default_text(error.code)


# DescribeShareGroupOffsets


class DescribedOffsets:
    """One group of a request: which partitions, then their states, then the ends of their logs."""

    def __init__(self, call: Call, asked: DescribeShareGroupOffsetsRequestGroup, gathering: Gathering, number: int):
        self._call = call
        self._asked = asked
        self._done = gathering.slot(number)
        self._group = DescribeShareGroupOffsetsResponseGroup(asked.group_id)
        self._rows: dict[Place, DescribeShareGroupOffsetsResponsePartition] = {}
        self._names: dict[Place, str] = {}
        self._counts: dict[Place, int] = {}

    def begin(self) -> None:
        if not may(self._call, DESCRIBE, GROUP, self._asked.group_id):
            code = errors.GROUP_AUTHORIZATION_FAILED
            self._done(DescribeShareGroupOffsetsResponseGroup(self._asked.group_id, [], code, None))
            return
        run_group(self._call, self._asked.group_id, self._decide, self._on_group)

    def _decide(self, machine: GroupMachine) -> Outcome:
        known = machine.share.initialized_partitions(self._asked.group_id)
        if self._asked.topics is None:
            hidden = denied_topics(self._call, DESCRIBE, [name for name, _ in known.initialized.values()])
            for topic_id, (name, indexes) in known.initialized.items():
                if name not in hidden:
                    self._add_topic(name, topic_id, sorted(indexes))
        else:
            hidden = denied_topics(self._call, DESCRIBE, [topic.topic_name for topic in self._asked.topics])
            for topic in self._asked.topics:
                if topic.topic_name in hidden:
                    self._add_hidden(topic.topic_name, topic.partitions)
                    continue
                found = self._call.node.image.topics_by_name.get(topic.topic_name)
                self._add_topic(topic.topic_name, ZERO_UUID if found is None else found.topic_id, topic.partitions)
        return Outcome(response=self._group)

    def _add_hidden(self, name: str, indexes: list[int]) -> None:
        code = errors.TOPIC_AUTHORIZATION_FAILED
        text = errors.default_text(code)
        rows = [
            DescribeShareGroupOffsetsResponsePartition(index, UNKNOWN, error_code=code, error_message=text)
            for index in indexes
        ]
        self._group.topics.append(DescribeShareGroupOffsetsResponseTopic(name, ZERO_UUID, rows))

    def _add_topic(self, name: str, topic_id: bytes, indexes: list[int]) -> None:
        rows = [DescribeShareGroupOffsetsResponsePartition(index, start_offset=UNKNOWN) for index in indexes]
        self._group.topics.append(DescribeShareGroupOffsetsResponseTopic(name, topic_id, rows))
        known = self._call.node.image.topics_by_id.get(topic_id)
        for row in rows:
            # Nobody has a state of what does not exist: share coordinators need not be asked.
            if known is not None and row.partition_index in known.partitions:
                self._rows[(topic_id, row.partition_index)] = row
                self._names[(topic_id, row.partition_index)] = name

    def _on_group(self, result: Message | KafkaError) -> None:
        if isinstance(result, KafkaError):
            error = as_client_sees(result)
            self._done(DescribeShareGroupOffsetsResponseGroup(self._asked.group_id, [], error.code, text_of(error)))
            return
        call = self._call
        call.node.share_groups.summarize(self._asked.group_id, list(self._rows), self._on_states, call.now_ms)

    def _on_states(self, results: StateResults, now_ms: int) -> None:
        for place, result in results.items():
            row = self._rows[place]
            # An error of the state is not shown: what is not known is -1.
            if isinstance(result, PartitionResult):
                row.start_offset = result.start_offset
                row.leader_epoch = result.leader_epoch
                self._counts[place] = result.delivery_complete_count
        wanted = [
            (self._names[place], place[1])
            for place, row in self._rows.items()
            if row.start_offset != UNKNOWN and self._counts.get(place, UNKNOWN) != UNKNOWN
        ]
        self._call.node.latest_offsets.ask(wanted, self._call.node.image, self._on_ends, now_ms)

    def _on_ends(self, offsets: Offsets, now_ms: int) -> None:
        for place, row in self._rows.items():
            end = offsets.get((self._names[place], place[1]))
            if isinstance(end, KafkaError):
                row.error_code, row.error_message = end.code, text_of(end)
            elif end is not None:
                row.lag = max(0, end - row.start_offset - self._counts[place])
        self._done(self._group)


def handle_describe_share_group_offsets(call: Call, request: DescribeShareGroupOffsetsRequest) -> None:
    if not call.node.shares.is_enabled:
        code = errors.UNSUPPORTED_VERSION
        refused = [
            DescribeShareGroupOffsetsResponseGroup(group.group_id, [], code, errors.default_text(code))
            for group in request.groups
        ]
        call.respond(DescribeShareGroupOffsetsResponse(groups=refused))
        return

    def finish(results: list[Message | KafkaError]) -> None:
        groups = [group for group in results if isinstance(group, DescribeShareGroupOffsetsResponseGroup)]
        if not call.reply.done:
            call.respond(DescribeShareGroupOffsetsResponse(groups=groups))

    gathering = Gathering(len(request.groups), finish)
    for number, group in enumerate(request.groups):
        DescribedOffsets(call, group, gathering, number).begin()
    gathering.begin()


# AlterShareGroupOffsets


class AlteredOffsets:
    """The group is made ready, the states begin anew at the offsets, the group knows its partitions."""

    def __init__(self, call: Call, request: AlterShareGroupOffsetsRequest) -> None:
        self._call = call
        self._request = request
        self._response = AlterShareGroupOffsetsResponse()
        self._rows: dict[Place, AlterShareGroupOffsetsResponsePartition] = {}
        self._topics: TopicPartitions = {}
        self._offsets: dict[Place, int] = {}
        self._epoch = 0

    def begin(self) -> None:
        denied = denied_topics(self._call, READ, [topic.topic_name for topic in self._request.topics])
        for topic in self._request.topics:
            found = self._call.node.image.topics_by_name.get(topic.topic_name)
            topic_id = ZERO_UUID if found is None or topic.topic_name in denied else found.topic_id
            row = AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id)
            self._response.responses.append(row)
            for partition in topic.partitions:
                result = AlterShareGroupOffsetsResponsePartition(partition.partition_index)
                row.partitions.append(result)
                if topic.topic_name in denied:
                    result.error_code = errors.TOPIC_AUTHORIZATION_FAILED
                    result.error_message = errors.default_text(result.error_code)
                    continue
                if found is None or partition.partition_index not in found.partitions:
                    result.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
                    result.error_message = errors.default_text(result.error_code)
                    continue
                place = (found.topic_id, partition.partition_index)
                self._rows[place] = result
                self._offsets[place] = partition.start_offset
                known = self._topics.get(found.topic_id, (topic.topic_name, frozenset()))
                self._topics[found.topic_id] = (topic.topic_name, known[1] | {partition.partition_index})
        if denied and not self._offsets:
            self._call.respond(self._response)  # a group is not made by who may not use any of its topics
            return
        run_group(self._call, self._request.group_id, self._decide, self._on_ready)

    def _decide(self, machine: GroupMachine) -> Outcome:
        self._epoch = machine.share.epoch_of(self._request.group_id)
        outcome = machine.share.begin_alter(self._request.group_id, self._topics)
        outcome.response = self._response
        return outcome

    def _on_ready(self, result: Message | KafkaError) -> None:
        call = self._call
        if isinstance(result, KafkaError):
            error = as_client_sees(result)
            call.respond(AlterShareGroupOffsetsResponse(error_code=error.code, error_message=text_of(error)))
            return
        group_id = self._request.group_id
        if not self._offsets:
            call.respond(self._response)
            return
        call.node.share_groups.initialize_at(
            group_id, self._topics, self._offsets, self._epoch, self._on_done, call.now_ms
        )

    def _on_done(self, results: StateResults, now_ms: int) -> None:
        for place, result in results.items():
            if isinstance(result, KafkaError):
                self._rows[place].error_code, self._rows[place].error_message = result.code, text_of(result)
        if not self._call.reply.done:
            self._call.respond(self._response)


def handle_alter_share_group_offsets(call: Call, request: AlterShareGroupOffsetsRequest) -> None:
    code = check_group(call, READ, request.group_id)
    if code != errors.NONE:
        call.respond(AlterShareGroupOffsetsResponse(error_code=code, error_message=errors.default_text(code)))
        return
    ensure_state_topic(call)
    AlteredOffsets(call, request).begin()


def check_group(call: Call, operation: int, group_id: str) -> int:
    if not call.node.shares.is_enabled:
        return errors.UNSUPPORTED_VERSION
    if not may(call, operation, GROUP, group_id):
        return errors.GROUP_AUTHORIZATION_FAILED
    return errors.NONE if group_id.strip() else errors.INVALID_GROUP_ID


# DeleteShareGroupOffsets

NOTHING_TO_DELETE = "There is no offset information to delete."


class DeletedOffsets:
    """Whole topics of a group: marked, forgotten by the share coordinators, then by the group."""

    def __init__(self, call: Call, request: DeleteShareGroupOffsetsRequest) -> None:
        self._call = call
        self._request = request
        self._response = DeleteShareGroupOffsetsResponse()
        self._rows: dict[bytes, DeleteShareGroupOffsetsResponseTopic] = {}
        self._deletion: StateDeletion | None = None

    def begin(self) -> None:
        run_group(self._call, self._request.group_id, self._decide, self._on_marked)

    def _decide(self, machine: GroupMachine) -> Outcome:
        share = machine.share
        group = share.find_group(self._request.group_id)
        group.check_delete()
        wanted: set[bytes] = set()
        denied = denied_topics(self._call, READ, [topic.topic_name for topic in self._request.topics])
        for topic in self._request.topics:
            found = self._call.node.image.topics_by_name.get(topic.topic_name)
            row = DeleteShareGroupOffsetsResponseTopic(topic.topic_name)
            self._response.responses.append(row)
            if topic.topic_name in denied:
                row.error_code = errors.TOPIC_AUTHORIZATION_FAILED
                row.error_message = errors.default_text(row.error_code)
                continue
            if found is None or found.topic_id not in group.partitions.topic_ids():
                row.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
                row.error_message = errors.default_text(row.error_code) if found is None else NOTHING_TO_DELETE
                continue
            row.topic_id = found.topic_id
            wanted.add(found.topic_id)
            self._rows[found.topic_id] = row
        outcome, self._deletion = share.begin_delete(self._request.group_id, wanted)
        outcome.response = self._response
        return outcome

    def _on_marked(self, result: Message | KafkaError) -> None:
        call = self._call
        if isinstance(result, KafkaError):
            error = as_client_sees(result)
            call.respond(DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=text_of(error)))
            return
        deletion = self._deletion
        assert deletion is not None
        on_deleted = partial(self._on_deleted, deletion)
        call.node.share_groups.delete(self._request.group_id, deletion.topics, on_deleted, call.now_ms)

    def _on_deleted(self, deletion: StateDeletion, results: StateResults, now_ms: int) -> None:
        gone = set(deletion.topics)
        for (topic_id, _), result in results.items():
            if isinstance(result, KafkaError):
                gone.discard(topic_id)
                self._rows[topic_id].error_code, self._rows[topic_id].error_message = result.code, text_of(result)

        def decide(machine: GroupMachine) -> Outcome:
            outcome = machine.share.on_deleted(deletion, gone)
            outcome.response = self._response
            return outcome

        def respond(result: Message | KafkaError) -> None:
            if not self._call.reply.done:
                self._call.respond(self._response)

        run_group(self._call, self._request.group_id, decide, respond)


def handle_delete_share_group_offsets(call: Call, request: DeleteShareGroupOffsetsRequest) -> None:
    code = check_group(call, DELETE, request.group_id)
    if code != errors.NONE:
        call.respond(DeleteShareGroupOffsetsResponse(error_code=code, error_message=errors.default_text(code)))
        return
    DeletedOffsets(call, request).begin()
