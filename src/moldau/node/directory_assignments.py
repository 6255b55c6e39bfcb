"""Tells the controller in which of several log directories each replica is (KIP-858).

The broker chooses the directory of a new replica itself when it has more than one. The controller must know the choice:
when a directory fails, it takes those replicas out of their ISRs. Kafka: AssignmentsManager.
"""

from __future__ import annotations

import logging
from itertools import islice

from moldau.node.broker_lifecycle import BrokerLifecycle
from moldau.node.controller_channel import ControllerChannel
from moldau.node.replicas import Replicas
from moldau.protocol.api_table import ASSIGN_REPLICAS_TO_DIRS
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from moldau.protocol.primitives import Message

log = logging.getLogger("moldau.node")

PARTITIONS_PER_REQUEST_MAX = 1000
RETRY_MS = 5000


class DirectoryAssignments:
    """One request at a time; what changes meanwhile goes into the next one."""

    def __init__(self, channel: ControllerChannel, lifecycle: BrokerLifecycle, replicas: Replicas) -> None:
        self._channel = channel
        self._lifecycle = lifecycle
        self._replicas = replicas
        self._busy = False
        self._next_ms = 0

    def poll(self, now_ms: int) -> None:
        if self._busy or not self._replicas.misplaced or self._lifecycle.broker_epoch < 0 or now_ms < self._next_ms:
            return
        self._next_ms = now_ms + RETRY_MS
        self._busy = True
        self._channel.ask(ASSIGN_REPLICAS_TO_DIRS, self._request(), self._on_response, now_ms)

    def _request(self) -> AssignReplicasToDirsRequest:
        by_directory: dict[bytes, dict[bytes, list[PartitionData]]] = {}
        for (topic_id, index), directory in islice(self._replicas.misplaced.items(), PARTITIONS_PER_REQUEST_MAX):
            by_directory.setdefault(directory, {}).setdefault(topic_id, []).append(PartitionData(index))
        directories = [
            DirectoryData(directory, [TopicData(topic_id, rows) for topic_id, rows in topics.items()])
            for directory, topics in by_directory.items()
        ]
        return AssignReplicasToDirsRequest(self._replicas.broker_id, self._lifecycle.broker_epoch, directories)

    def _on_response(self, response: Message | KafkaError, now_ms: int) -> None:
        """What was taken up has left the list of misplaced replicas with the metadata; the rest is asked again."""
        self._busy = False
        if not isinstance(response, KafkaError):
            self._next_ms = 0
        else:
            log.warning(
                "cannot assign replicas to log directories at the controller, trying again: %s", response.message
            )
