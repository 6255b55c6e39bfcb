"""Tells the controller in which of several log directories each replica is (KIP-858).

The broker chooses the directory of a new replica itself when it has more than one. The controller must know the choice:
when a directory fails, it takes those replicas out of their ISRs. Kafka: AssignmentsManager.
"""

from __future__ import annotations

import logging
from itertools import islice

from moldau.node.metadata_node import MetadataNode
from moldau.node.replicas import Replicas
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

    def __init__(self, metadata: MetadataNode, replicas: Replicas) -> None:
        self._metadata = metadata
        self._replicas = replicas
        self._busy = False
        self._next_ms = 0

    def poll(self, now_ms: int) -> None:
        metadata = self._metadata
        if self._busy or not self._replicas.misplaced or metadata.broker.broker_epoch < 0:
            return
        if now_ms < self._next_ms or not metadata.is_active_controller:
            return
        self._next_ms = now_ms + RETRY_MS
        request = self._request()
        self._busy = True
        metadata.submit(lambda controller: controller.assign_replicas_to_dirs(request, now_ms), self._on_answer, now_ms)

    def _request(self) -> AssignReplicasToDirsRequest:
        by_directory: dict[bytes, dict[bytes, list[PartitionData]]] = {}
        for (topic_id, index), directory in islice(self._replicas.misplaced.items(), PARTITIONS_PER_REQUEST_MAX):
            by_directory.setdefault(directory, {}).setdefault(topic_id, []).append(PartitionData(index))
        directories = [
            DirectoryData(directory, [TopicData(topic_id, rows) for topic_id, rows in topics.items()])
            for directory, topics in by_directory.items()
        ]
        return AssignReplicasToDirsRequest(self._metadata.node_id, self._metadata.broker.broker_epoch, directories)

    def _on_answer(self, answer: Message | KafkaError) -> None:
        """What was taken up has left the list of misplaced replicas with the metadata; the rest is asked again."""
        self._busy = False
        if not isinstance(answer, KafkaError):
            self._next_ms = 0
        else:
            log.warning("the controller did not take up where replicas are, it is told again: %s", answer.message)
