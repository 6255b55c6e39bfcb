"""What administrators of all simulated worlds ask, and how they take the responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moldau.protocol import errors
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.primitives import Message
from moldau.sim.kernel.world import Violation

CREATE_VERSION, DELETE_VERSION, ALTER_VERSION, DELETE_RECORDS_VERSION = 7, 6, 1, 2
TOPIC_RESOURCE = 2
SET_CONFIG = 0

OnResponse = Callable[[Message | None], None]


class BusyAdmin:
    """One question at a time."""

    def __init__(self) -> None:
        self.busy = False
        self.done: dict[str, int] = {}

    def when_done(self, on_response: OnResponse) -> OnResponse:
        """Something is asked: it is busy until the response comes, or none does."""
        self.busy = True

        def finished(response: Message | None) -> None:
            self.busy = False
            on_response(response)

        return finished

    def check_done(self, what: str, error_code: int, message: str | None, allowed: tuple[int, ...]) -> bool:
        """True when it was done; raises for an error that a good request must not get."""
        kind = what.split()[0]
        if error_code == errors.NONE:
            self.done[kind] = self.done.get(kind, 0) + 1
            return True
        if error_code not in allowed:
            raise Violation(f"a good request is carried out: {what}: {errors.error_name(error_code)} ({message})")
        return False


def create_topic(name: str, partitions: int, replicas: int, configs: Mapping[str, str], timeout_ms: int) -> Message:
    pairs = [CreatableTopicConfig(key, value) for key, value in configs.items()]
    return CreateTopicsRequest([CreatableTopic(name, partitions, replicas, None, pairs)], timeout_ms)


def delete_topic(topic_id: bytes, timeout_ms: int) -> Message:
    return DeleteTopicsRequest([DeleteTopicState(None, topic_id)], None, timeout_ms)


def alter_config(topic: str, key: str, value: str) -> Message:
    row = AlterConfigsResource(TOPIC_RESOURCE, topic, [AlterableConfig(key, SET_CONFIG, value)])
    return IncrementalAlterConfigsRequest([row])


def delete_records(topic: str, index: int, offset: int, timeout_ms: int) -> Message:
    return DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(index, offset)])], timeout_ms)
