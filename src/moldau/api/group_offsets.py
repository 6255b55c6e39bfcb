"""OffsetCommit, OffsetFetch, OffsetDelete: where consumer groups are in their partitions.

OffsetCommit versions 2-10: 5 drops the retention time, 6 adds leader epochs (KIP-320), 7 static members, 9 the epochs
of KIP-848, 10 topic ids. OffsetFetch versions 1-10: 2 may ask for all topics, 7 for stable offsets only (KIP-447), 8
for several groups (KIP-709), 9 says who asks (KIP-848), 10 topic ids. Topics and partitions that do not exist are
refused here; the rest is up to the coordinator of the group.
"""

from __future__ import annotations

from typing import Final

from moldau.api.authorize import denied_topics, may
from moldau.api.call import Call
from moldau.api.coordinators import Gathering, as_client_sees
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.outcome import Outcome
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from moldau.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from moldau.protocol.primitives import Message
from moldau.protocol.uuids import ZERO_UUID
from moldau.security.rights import DELETE, DESCRIBE, GROUP, READ, TOPIC

FIRST_TOPIC_ID_VERSION: Final = 10
FIRST_GROUPS_VERSION: Final = 8
FIRST_GROUP_ERROR_VERSION: Final = 2
NO_OFFSET: Final = -1
NO_EPOCH: Final = -1


# OffsetCommit


class TopicResults:
    """Responses by topic: partitions of one topic stand together, whoever has responded for them."""

    def __init__(self) -> None:
        self._topics: dict[tuple[str, bytes], OffsetCommitResponseTopic] = {}

    def add(self, added: OffsetCommitResponseTopic) -> None:
        known = self._topics.setdefault((added.name, added.topic_id), added)
        if known is not added:
            known.partitions.extend(added.partitions)

    def __bool__(self) -> bool:
        return bool(self._topics)

    def rows(self) -> list[OffsetCommitResponseTopic]:
        return list(self._topics.values())


class CommitCall:
    """One commit on its way through the coordinator; `refused` holds the responses that are known before."""

    def __init__(self, call: Call, request: OffsetCommitRequest, refused: TopicResults) -> None:
        self._call = call
        self._request = request
        self._refused = refused

    def decide(self, machine: GroupMachine) -> Outcome:
        return machine.offsets.commit(self._request, self._call.version, self._call.now_ms)

    def done(self, result: Message | KafkaError) -> None:
        if self._call.reply.done:
            return
        if isinstance(result, KafkaError):
            response = OffsetCommitResponse(topics=failed_topics(self._request.topics, as_client_sees(result).code))
        else:
            assert isinstance(result, OffsetCommitResponse)
            response = result
        if self._refused:
            for topic in response.topics:
                self._refused.add(topic)
            response.topics = self._refused.rows()
        self._call.respond(response)


def handle_offset_commit(call: Call, request: OffsetCommitRequest) -> None:
    refused = TopicResults()
    accepted: list[OffsetCommitRequestTopic] = []
    image = call.node.image
    has_rights = call.node.rights is not None
    if has_rights and not may(call, READ, GROUP, request.group_id):
        failed = failed_topics(request.topics, errors.GROUP_AUTHORIZATION_FAILED)
        call.respond(OffsetCommitResponse(topics=failed))
        return
    for topic in request.topics:
        if has_rights and not may_commit(call, image, topic):
            refused.add(failed_topic(topic, topic.partitions, errors.TOPIC_AUTHORIZATION_FAILED))
        elif is_wholly_known(image, topic, call.version):
            accepted.append(topic)
        else:
            refuse_unknown(image, topic, call.version, accepted, refused)
    request.topics = accepted
    if not accepted:
        call.respond(OffsetCommitResponse(topics=refused.rows()))
        return
    commit = CommitCall(call, request, refused)
    call.node.coordinators.groups.run(request.group_id, commit.decide, commit.done, call.now_ms)


def may_commit(call: Call, image: MetadataImage, topic: OffsetCommitRequestTopic) -> bool:
    """An id that is not known names nothing that could be forbidden."""
    name = topic.name
    if call.version >= FIRST_TOPIC_ID_VERSION:
        found = image.topics_by_id.get(topic.topic_id)
        if found is None:
            return True
        name = found.name
    return may(call, READ, TOPIC, name, len(topic.partitions))


def is_wholly_known(image: MetadataImage, topic: OffsetCommitRequestTopic, version: int) -> bool:
    """Whether the topic and all its partitions exist. Gives the topic both its name and its id."""
    if version >= FIRST_TOPIC_ID_VERSION:
        found = image.topics_by_id.get(topic.topic_id)
    else:
        found = image.topics_by_name.get(topic.name)
    if found is None:
        return False
    topic.name = found.name
    topic.topic_id = found.topic_id
    partitions = found.partitions
    for partition in topic.partitions:
        if partition.partition_index not in partitions:
            return False
    return len(topic.partitions) > 0


def refuse_unknown(
    image: MetadataImage,
    topic: OffsetCommitRequestTopic,
    version: int,
    accepted: list[OffsetCommitRequestTopic],
    refused: TopicResults,
) -> None:
    by_id = version >= FIRST_TOPIC_ID_VERSION
    found = image.topics_by_id.get(topic.topic_id) if by_id else image.topics_by_name.get(topic.name)
    if found is None:
        code = errors.UNKNOWN_TOPIC_ID if by_id else errors.UNKNOWN_TOPIC_OR_PARTITION
        refused.add(failed_topic(topic, topic.partitions, code))
        return
    known = [partition for partition in topic.partitions if partition.partition_index in found.partitions]
    unknown = [partition for partition in topic.partitions if partition.partition_index not in found.partitions]
    if unknown:
        refused.add(failed_topic(topic, unknown, errors.UNKNOWN_TOPIC_OR_PARTITION))
    if known:
        accepted.append(OffsetCommitRequestTopic(topic.name, topic.topic_id, known))


def failed_topic(
    topic: OffsetCommitRequestTopic, partitions: list[OffsetCommitRequestPartition], code: int
) -> OffsetCommitResponseTopic:
    responses = [OffsetCommitResponsePartition(partition.partition_index, code) for partition in partitions]
    return OffsetCommitResponseTopic(topic.name, topic.topic_id, responses)


def failed_topics(topics: list[OffsetCommitRequestTopic], code: int) -> list[OffsetCommitResponseTopic]:
    return [failed_topic(topic, topic.partitions, code) for topic in topics]


# OffsetFetch


def handle_offset_fetch(call: Call, request: OffsetFetchRequest) -> None:
    if call.version >= FIRST_GROUPS_VERSION:
        groups = request.groups
    else:
        groups = [only_group(request)]
    fetch = FetchCall(call, groups, request.require_stable)
    fetch.start()


def only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """What versions below 8 ask, in the form of the later ones."""
    topics: list[OffsetFetchRequestTopics] | None = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


class FetchOfGroup:
    """The question about one group; `unknown` are the topics whose ids nobody knows."""

    def __init__(self, call: Call, group: OffsetFetchRequestGroup, require_stable: bool) -> None:
        self.group = group
        self._call = call
        self._require_stable = require_stable
        self._unknown: list[OffsetFetchRequestTopics] = []
        self._denied: list[OffsetFetchRequestTopics] = []
        self.is_denied = not may(call, DESCRIBE, GROUP, group.group_id)
        if group.topics is not None and not self.is_denied:
            group.topics = self._resolved(group.topics)
            if call.node.rights is not None:
                group.topics = self._allowed(group.topics)

    def _resolved(self, topics: list[OffsetFetchRequestTopics]) -> list[OffsetFetchRequestTopics]:
        """Gives each topic both its name and its id. Names that are not known are fine: offsets may outlive a topic."""
        image = self._call.node.image
        by_id = self._call.version >= FIRST_TOPIC_ID_VERSION
        resolved: list[OffsetFetchRequestTopics] = []
        for topic in topics:
            found = image.topics_by_id.get(topic.topic_id) if by_id else image.topics_by_name.get(topic.name)
            if found is not None:
                topic.name = found.name
                topic.topic_id = found.topic_id
            elif by_id:
                self._unknown.append(topic)
                continue
            resolved.append(topic)
        return resolved

    def _allowed(self, topics: list[OffsetFetchRequestTopics]) -> list[OffsetFetchRequestTopics]:
        names = [topic.name for topic in topics for _ in topic.partition_indexes]
        denied = denied_topics(self._call, DESCRIBE, names)
        self._denied = [topic for topic in topics if topic.name in denied]
        return [topic for topic in topics if topic.name not in denied]

    def decide(self, machine: GroupMachine) -> Outcome:
        return Outcome(response=machine.offsets.fetch(self.group, self._require_stable))

    def finish(self, result: Message | KafkaError) -> OffsetFetchResponseGroup:
        if isinstance(result, KafkaError):
            return self._failed(as_client_sees(result).code)
        assert isinstance(result, OffsetFetchResponseGroup)
        if self._call.version >= FIRST_TOPIC_ID_VERSION:
            if self.group.topics is None:
                result.topics = self._with_ids(result.topics)
            for topic in self._unknown:
                result.topics.append(failed_fetch(topic, errors.UNKNOWN_TOPIC_ID))
        if self._call.node.rights is not None:
            self._hide_topics(result)
        return result

    def _hide_topics(self, result: OffsetFetchResponseGroup) -> None:
        """Of the topics that were not named, those that may not be seen are left out."""
        if result.error_code != errors.NONE:
            return
        if self.group.topics is None:
            denied = denied_topics(self._call, DESCRIBE, [topic.name for topic in result.topics])
            result.topics = [topic for topic in result.topics if topic.name not in denied]
        for topic in self._denied:
            result.topics.append(failed_fetch(topic, errors.TOPIC_AUTHORIZATION_FAILED))

    def _failed(self, code: int) -> OffsetFetchResponseGroup:
        response = OffsetFetchResponseGroup(group_id=self.group.group_id, error_code=code)
        if self._call.version < FIRST_GROUP_ERROR_VERSION and self.group.topics is not None:
            # There is no place for the error of a group yet.
            response.topics = [failed_fetch(topic, code) for topic in self.group.topics]
        return response

    def _with_ids(self, topics: list[OffsetFetchResponseTopics]) -> list[OffsetFetchResponseTopics]:
        """Topics without an id cannot be told in this version."""
        by_name = self._call.node.image.topics_by_name
        told: list[OffsetFetchResponseTopics] = []
        for topic in topics:
            if topic.topic_id == ZERO_UUID and topic.name in by_name:
                topic.topic_id = by_name[topic.name].topic_id
            if topic.topic_id != ZERO_UUID:
                told.append(topic)
        return told


class FetchCall:
    """The questions about all groups of a request, each to its coordinator."""

    def __init__(self, call: Call, groups: list[OffsetFetchRequestGroup], require_stable: bool) -> None:
        self._call = call
        self._groups = [FetchOfGroup(call, group, require_stable) for group in groups]
        self._gathering = Gathering(len(groups), self._respond)

    def start(self) -> None:
        coordinators = self._call.node.coordinators
        for number, one in enumerate(self._groups):
            if one.is_denied:
                self._gathering.fill(number, KafkaError(errors.GROUP_AUTHORIZATION_FAILED))
                continue
            coordinators.groups.run(one.group.group_id, one.decide, self._gathering.slot(number), self._call.now_ms)
        self._gathering.begin()

    def _respond(self, results: list[Message | KafkaError]) -> None:
        if self._call.reply.done:
            return
        groups = [one.finish(result) for one, result in zip(self._groups, results, strict=True)]
        if self._call.version >= FIRST_GROUPS_VERSION:
            self._call.respond(OffsetFetchResponse(groups=groups))
        else:
            self._call.respond(as_only_group(groups[0]))


def failed_fetch(topic: OffsetFetchRequestTopics, code: int) -> OffsetFetchResponseTopics:
    responses = [
        OffsetFetchResponsePartitions(index, NO_OFFSET, NO_EPOCH, "", code) for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, responses)


def as_only_group(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """The response in the form of the versions below 8."""
    response = OffsetFetchResponse(error_code=group.error_code)
    for topic in group.topics:
        responses = [
            OffsetFetchResponsePartition(
                one.partition_index, one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code
            )
            for one in topic.partitions
        ]
        response.topics.append(OffsetFetchResponseTopic(topic.name, responses))
    return response


# OffsetDelete


class DeleteCall:
    """One deletion on its way through the coordinator; `refused` holds the responses that are known before."""

    def __init__(self, call: Call, request: OffsetDeleteRequest, refused: list[OffsetDeleteResponseTopic]) -> None:
        self._call = call
        self._request = request
        self._refused = refused

    def decide(self, machine: GroupMachine) -> Outcome:
        return machine.offsets.delete(self._request)

    def done(self, result: Message | KafkaError) -> None:
        if self._call.reply.done:
            return
        if isinstance(result, KafkaError):
            self._call.respond(OffsetDeleteResponse(error_code=as_client_sees(result).code))
            return
        assert isinstance(result, OffsetDeleteResponse)
        by_name = {topic.name: topic for topic in self._refused}
        topics = list(self._refused)
        for topic in result.topics:
            known = by_name.get(topic.name)
            if known is None:
                topics.append(topic)
            else:
                known.partitions = known.partitions + topic.partitions
        result.topics = topics
        self._call.respond(result)


def handle_offset_delete(call: Call, request: OffsetDeleteRequest) -> None:
    refused: list[OffsetDeleteResponseTopic] = []
    accepted: list[OffsetDeleteRequestTopic] = []
    if not may(call, DELETE, GROUP, request.group_id):
        call.respond(OffsetDeleteResponse(error_code=errors.GROUP_AUTHORIZATION_FAILED))
        return
    denied = denied_topics(call, READ, [topic.name for topic in request.topics for _ in topic.partitions])
    for topic in request.topics:
        found = call.node.image.topics_by_name.get(topic.name)
        partitions = {} if found is None else found.partitions
        known: list[OffsetDeleteRequestPartition] = []
        unknown: list[OffsetDeleteResponsePartition] = []
        for partition in topic.partitions:
            if topic.name in denied:
                code = errors.TOPIC_AUTHORIZATION_FAILED
                unknown.append(OffsetDeleteResponsePartition(partition.partition_index, code))
            elif partition.partition_index in partitions:
                known.append(partition)
            else:
                code = errors.UNKNOWN_TOPIC_OR_PARTITION
                unknown.append(OffsetDeleteResponsePartition(partition.partition_index, code))
        if unknown:
            refused.append(OffsetDeleteResponseTopic(topic.name, unknown))
        if known:
            accepted.append(OffsetDeleteRequestTopic(topic.name, known))
    # Asked also when nothing is left of the request: the group must exist.
    request.topics = accepted
    deletion = DeleteCall(call, request, refused)
    call.node.coordinators.groups.run(request.group_id, deletion.decide, deletion.done, call.now_ms)
