"""The response to a request that is refused as a whole: for each API, as a broker would build it.

Requests that change something are answered without asking the broker, so that nothing happens. Those that only ask may
as well be answered by the broker, and the error is written into its response; that is how all others are done.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final

from moldau.protocol import api_table as apis
from moldau.protocol.api_keys import BY_KEY, BY_NAME, Api, request_class, response_class
from moldau.protocol.errors import FETCH_SESSION_ID_NOT_FOUND, NONE
from moldau.protocol.errors import TABLE as ERROR_TABLE
from moldau.protocol.primitives import Message

# Requests come apart by API, and each has fields of its own: those functions are the table of them.
Request = Any
Builder = Callable[[Request, int, int], Message]

# Questions: the broker's own response gets the error.
ASKS_ONLY: Final = frozenset(
    api.key for api in BY_NAME.values() if api.name.startswith(("Describe", "List", "Metadata", "ApiVersions"))
) | {apis.CONSUMER_GROUP_DESCRIBE, apis.SHARE_GROUP_DESCRIBE, apis.STREAMS_GROUP_DESCRIBE}


def find_api(name: str | int) -> Api:
    """An API by its name, in any spelling of capitals and dashes, or by its key."""
    if isinstance(name, int):
        if name in BY_KEY:
            return BY_KEY[name]
        raise ValueError(f"there is no API with the key {name}")
    wanted = _plain(name)
    for api in BY_NAME.values():
        if _plain(api.name) == wanted:
            return api
    names = {_plain(each): each for each in BY_NAME}
    near = ", ".join(names[each] for each in get_close_matches(wanted, names)) or "Produce, Fetch, Metadata, ..."
    raise ValueError(f"there is no API {name!r}; did you mean one of: {near}?")


def find_error(error: str | int) -> int:
    """The code of an error by its name, as Kafka writes it, or by its code."""
    codes = {}
    for line in ERROR_TABLE.split("\n"):
        words = line.split()
        if len(words) > 1:
            codes[words[1]] = int(words[0])
    if isinstance(error, int):
        if error in codes.values() and error != NONE:
            return error
        raise ValueError(f"there is no error with the code {error}")
    wanted = error.upper().replace("-", "_")
    if wanted in codes and codes[wanted] != NONE:
        return codes[wanted]
    near = ", ".join(get_close_matches(wanted, codes)) or "NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, ..."
    raise ValueError(f"there is no error {error!r}; did you mean one of: {near}?")


def check_can_fail(api: Api) -> None:
    """ValueError when requests of this API cannot be refused here."""
    if api.key in ASKS_ONLY or api.key in BUILDERS or "error_code" in response_class(api.key).FIELDS:
        return
    raise ValueError(f"{api.name} cannot be failed; delay() and cut() work for every request")


def build_response(key: int, version: int, request: Request, error: int) -> Message:
    """The response that refuses the request; nobody has asked the broker."""
    builder = BUILDERS.get(key)
    if builder is not None:
        return builder(request, version, error)
    response: Any = response_class(key)()
    response.error_code = error
    if key == apis.INIT_PRODUCER_ID:
        response.producer_id, response.producer_epoch = -1, -1
    elif key == apis.JOIN_GROUP:
        response.member_id = request.member_id
    return response  # type: ignore[no-any-return]


def write_error(response: Message, error: int) -> bool:
    """Puts the error into the rows of the broker's own response, or into the response where it has no rows for one.
    False when there is no place at all."""
    changed = False
    for name in response.FIELDS:
        rows = getattr(response, name)
        if isinstance(rows, list):
            for row in rows:
                if isinstance(row, Message):
                    changed = _write_into_row(row, error) or changed
    return changed or _write_here(response, error)


def _write_into_row(row: Message, error: int) -> bool:
    if _write_here(row, error):
        if "partitions" in row.FIELDS:
            row.partitions = []  # type: ignore[attr-defined]
        return True
    return write_error(row, error)


def _write_here(row: Message, error: int) -> bool:
    if "error_code" not in row.FIELDS:
        return False
    row.error_code = error  # type: ignore[attr-defined]
    return True


def _produce(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import produce_response as response_messages

    def partition(index: int) -> response_messages.PartitionProduceResponse:
        return response_messages.PartitionProduceResponse(index, error, base_offset=-1)

    return response_messages.ProduceResponse(
        [
            response_messages.TopicProduceResponse(
                topic.name, topic.topic_id, [partition(row.index) for row in topic.partition_data]
            )
            for topic in request.topic_data
        ]
    )


def _fetch(request: Request, version: int, error: int) -> Message:
    """A request of a session names only what changed: it is sent back for one that names everything."""
    from moldau.protocol.messages import fetch_response as response_messages

    if is_part_of_session(request):
        return response_messages.FetchResponse(error_code=FETCH_SESSION_ID_NOT_FOUND)
    topics = [
        response_messages.FetchableTopicResponse(
            topic.topic,
            topic.topic_id,
            [response_messages.PartitionData(row.partition, error, high_watermark=-1) for row in topic.partitions],
        )
        for topic in request.topics
    ]
    return response_messages.FetchResponse(error_code=NONE if topics else error, responses=topics)


def is_part_of_session(request: Message) -> bool:
    """Whether a Fetch request leaves out what has not changed."""
    return request.API_KEY == apis.FETCH and getattr(request, "session_epoch", -1) > 0


def _offset_fetch(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import offset_fetch_response as response_messages

    if version >= 8:
        rows = [
            response_messages.OffsetFetchResponseGroup(group.group_id, error_code=error) for group in request.groups
        ]
        return response_messages.OffsetFetchResponse(groups=rows)
    topics = [
        response_messages.OffsetFetchResponseTopic(
            topic.name,
            [
                response_messages.OffsetFetchResponsePartition(index, -1, error_code=error)
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or []
    ]
    return response_messages.OffsetFetchResponse(topics=topics, error_code=error if version >= 2 else NONE)


def _find_coordinator(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import find_coordinator_response as response_messages

    if version >= 4:
        rows = [response_messages.Coordinator(key, -1, "", -1, error) for key in request.coordinator_keys]
        return response_messages.FindCoordinatorResponse(coordinators=rows)
    return response_messages.FindCoordinatorResponse(error_code=error, node_id=-1, host="", port=-1)


def _create_topics(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import create_topics_response as response_messages

    rows = [
        response_messages.CreatableTopicResult(topic.name, error_code=error, error_message=None)
        for topic in request.topics
    ]
    return response_messages.CreateTopicsResponse(topics=rows)


def _delete_topics(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import delete_topics_response as response_messages

    if version >= 6:
        rows = [response_messages.DeletableTopicResult(topic.name, topic.topic_id, error) for topic in request.topics]
    else:
        rows = [response_messages.DeletableTopicResult(name, error_code=error) for name in request.topic_names]
    return response_messages.DeleteTopicsResponse(responses=rows)


def _create_partitions(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import create_partitions_response as response_messages

    rows = [response_messages.CreatePartitionsTopicResult(topic.name, error) for topic in request.topics]
    return response_messages.CreatePartitionsResponse(results=rows)


def _delete_records(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import delete_records_response as response_messages

    rows = [
        response_messages.DeleteRecordsTopicResult(
            topic.name,
            [
                response_messages.DeleteRecordsPartitionResult(row.partition_index, -1, error)
                for row in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return response_messages.DeleteRecordsResponse(topics=rows)


def _offset_commit(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import offset_commit_response as response_messages

    rows = [
        response_messages.OffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            [response_messages.OffsetCommitResponsePartition(row.partition_index, error) for row in topic.partitions],
        )
        for topic in request.topics
    ]
    return response_messages.OffsetCommitResponse(topics=rows)


def _txn_offset_commit(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import txn_offset_commit_response as response_messages

    rows = [
        response_messages.TxnOffsetCommitResponseTopic(
            topic.name,
            [
                response_messages.TxnOffsetCommitResponsePartition(row.partition_index, error)
                for row in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return response_messages.TxnOffsetCommitResponse(topics=rows)


def _add_partitions_to_txn(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import add_partitions_to_txn_response as response_messages

    def topics(asked: Request) -> list[response_messages.AddPartitionsToTxnTopicResult]:
        return [
            response_messages.AddPartitionsToTxnTopicResult(
                topic.name,
                [response_messages.AddPartitionsToTxnPartitionResult(index, error) for index in topic.partitions],
            )
            for topic in asked
        ]

    if version >= 4:
        rows = [
            response_messages.AddPartitionsToTxnResult(transaction.transactional_id, topics(transaction.topics))
            for transaction in request.transactions
        ]
        return response_messages.AddPartitionsToTxnResponse(results_by_transaction=rows)
    return response_messages.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=topics(request.v3_and_below_topics)
    )


def _offset_for_leader_epoch(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import offset_for_leader_epoch_response as response_messages

    rows = [
        response_messages.OffsetForLeaderTopicResult(
            topic.topic, [response_messages.EpochEndOffset(error, row.partition) for row in topic.partitions]
        )
        for topic in request.topics
    ]
    return response_messages.OffsetForLeaderEpochResponse(topics=rows)


def _alter_configs(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import alter_configs_response as response_messages

    rows = [
        response_messages.AlterConfigsResourceResponse(error, None, row.resource_type, row.resource_name)
        for row in request.resources
    ]
    return response_messages.AlterConfigsResponse(responses=rows)


def _incremental_alter_configs(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import incremental_alter_configs_response as response_messages

    rows = [
        response_messages.AlterConfigsResourceResponse(error, None, row.resource_type, row.resource_name)
        for row in request.resources
    ]
    return response_messages.IncrementalAlterConfigsResponse(responses=rows)


def _delete_groups(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import delete_groups_response as response_messages

    rows = [response_messages.DeletableGroupResult(group_id, error) for group_id in request.groups_names]
    return response_messages.DeleteGroupsResponse(results=rows)


def _elect_leaders(request: Request, version: int, error: int) -> Message:
    from moldau.protocol.messages import elect_leaders_response as response_messages

    rows = [
        response_messages.ReplicaElectionResult(
            topic.topic, [response_messages.PartitionResult(index, error) for index in topic.partitions]
        )
        for topic in request.topic_partitions or []
    ]
    return response_messages.ElectLeadersResponse(
        error_code=error if version >= 1 else NONE, replica_election_results=rows
    )


BUILDERS: Final[dict[int, Builder]] = {
    apis.PRODUCE: _produce,
    apis.FETCH: _fetch,
    apis.OFFSET_COMMIT: _offset_commit,
    apis.OFFSET_FETCH: _offset_fetch,
    apis.FIND_COORDINATOR: _find_coordinator,
    apis.CREATE_TOPICS: _create_topics,
    apis.DELETE_TOPICS: _delete_topics,
    apis.DELETE_RECORDS: _delete_records,
    apis.CREATE_PARTITIONS: _create_partitions,
    apis.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    apis.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    apis.TXN_OFFSET_COMMIT: _txn_offset_commit,
    apis.ALTER_CONFIGS: _alter_configs,
    apis.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    apis.DELETE_GROUPS: _delete_groups,
    apis.ELECT_LEADERS: _elect_leaders,
}


def decode_request(key: int, version: int, frame: bytes, position: int) -> Message:
    """The request behind its header."""
    from moldau.protocol.primitives import Reader

    return request_class(key).decode(Reader(frame, position), version)


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")
