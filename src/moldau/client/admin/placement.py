"""Admin methods for where replicas lie and which of them lead: elections and reassignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import by_topic, checked_int, checked_partitions
from moldau.client.admin.routing import RETRY_CONTROLLER, Question, Target, check, outcome
from moldau.client.results import Outcome, TopicPartition

# Elect the first replica of the assignment, or, where no replica is in sync, any that is alive (may lose records).
PREFERRED = 0
UNCLEAN = 1


class PartitionReassignment(NamedTuple):
    """A reassignment that is going on."""

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


class PlacementAdmin(AdminCalls):
    """Elections and reassignments."""

    def elect_leaders(
        self,
        election_type: int = PREFERRED,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, Outcome[None]]:
        """Elects leaders of these partitions; None: of all. ElectionNotNeededError says that all is well already.

        Of all partitions only those are in the result that had an election or needed one.
        """
        from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
        from moldau.protocol.messages.elect_leaders_response import ElectLeadersResponse

        deadline = self._start(timeout_ms)
        checked_int(election_type, "the type of election", PREFERRED, UNCLEAN)
        wanted = None if partitions is None else checked_partitions(partitions)

        def request(items: list[TopicPartition] | None) -> ElectLeadersRequest:
            topics = None
            if items is not None:
                topics = [TopicPartitions(topic=name, partitions=rows) for name, rows in by_topic(items).items()]
            return ElectLeadersRequest(
                election_type=election_type, topic_partitions=topics, timeout_ms=self._server_timeout_ms(deadline)
            )

        def rows(response: ElectLeadersResponse) -> dict[TopicPartition, Outcome[None]]:
            return {
                TopicPartition(topic.topic, row.partition_id): outcome(row.error_code, row.error_message, None)
                for topic in response.replica_election_results
                for row in topic.partition_result
            }

        def read(response: ElectLeadersResponse, target: Target[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
            if response.error_code != 0:
                return target.all(outcome(response.error_code, None, None))
            return rows(response)

        if wanted is not None:
            question = Question(request, ElectLeadersResponse, read, RETRY_CONTROLLER)
            return self._ask_controller(wanted, question, deadline)
        response = self._call_controller(
            request(None), ElectLeadersResponse, deadline, lambda reply: [reply.error_code]
        )
        check(response.error_code)
        return rows(response)

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        allow_replication_factor_change: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, Outcome[None]]:
        """Moves partitions to other replicas; None calls off a move that is going on."""
        from moldau.protocol.messages import alter_partition_reassignments_request as request_messages
        from moldau.protocol.messages.alter_partition_reassignments_response import (
            AlterPartitionReassignmentsResponse,
        )

        deadline = self._start(timeout_ms)
        wanted = checked_partitions(reassignments)
        for replicas in reassignments.values():
            for replica in replicas or ():
                checked_int(replica, "a broker id", -0x80000000)

        def request(items: list[TopicPartition]) -> request_messages.AlterPartitionReassignmentsRequest:
            topics = []
            for name, indexes in by_topic(items).items():
                rows = []
                for index in indexes:
                    replicas = reassignments[TopicPartition(name, index)]
                    given = None if replicas is None else list(replicas)
                    rows.append(request_messages.ReassignablePartition(partition_index=index, replicas=given))
                topics.append(request_messages.ReassignableTopic(name=name, partitions=rows))
            return request_messages.AlterPartitionReassignmentsRequest(
                timeout_ms=self._server_timeout_ms(deadline),
                allow_replication_factor_change=allow_replication_factor_change,
                topics=topics,
            )

        def read(
            response: AlterPartitionReassignmentsResponse, target: Target[TopicPartition]
        ) -> dict[TopicPartition, Outcome[None]]:
            if response.error_code != 0:
                return target.all(outcome(response.error_code, response.error_message, None))
            return {
                TopicPartition(topic.name, row.partition_index): outcome(row.error_code, row.error_message, None)
                for topic in response.responses
                for row in topic.partitions
            }

        question = Question(request, AlterPartitionReassignmentsResponse, read, RETRY_CONTROLLER)
        return self._ask_controller(wanted, question, deadline)

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, timeout_ms: int | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The reassignments that are going on, of these partitions or of all."""
        from moldau.protocol.messages import list_partition_reassignments_request as request_messages
        from moldau.protocol.messages.list_partition_reassignments_response import (
            ListPartitionReassignmentsResponse,
        )

        deadline = self._start(timeout_ms)
        topics = None
        if partitions is not None:
            topics = [
                request_messages.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
                for name, indexes in by_topic(checked_partitions(partitions)).items()
            ]
        request = request_messages.ListPartitionReassignmentsRequest(
            timeout_ms=self._server_timeout_ms(deadline), topics=topics
        )
        response = self._call_controller(
            request, ListPartitionReassignmentsResponse, deadline, lambda reply: [reply.error_code]
        )
        check(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, row.partition_index): PartitionReassignment(
                list(row.replicas), list(row.adding_replicas), list(row.removing_replicas)
            )
            for topic in response.topics
            for row in topic.partitions
        }
