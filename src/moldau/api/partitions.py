"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments: decided and known by the active controller.

ElectLeaders 0-2 (preferred and unclean, KIP-460), AlterPartitionReassignments 0-1 (KIP-455; in 1 the number of replicas
may be held fixed, KIP-860), ListPartitionReassignments 0.
"""

from __future__ import annotations

from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import alter_partition_reassignments_response as altered
from moldau.protocol.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest
from moldau.protocol.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from moldau.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from moldau.protocol.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse
from moldau.security.rights import ALTER, DESCRIBE


def handle_elect_leaders(call: Call, request: ElectLeadersRequest) -> None:
    def failed(error: KafkaError) -> ElectLeadersResponse:
        response = ElectLeadersResponse(error_code=error.code if call.version >= 1 else 0)
        for topic in request.topic_partitions or []:
            rows = [PartitionResult(partition, error.code, error.message) for partition in topic.partitions]
            response.replica_election_results.append(ReplicaElectionResult(topic.topic, rows))
        return response

    submit(call, lambda controller: controller.elect_leaders(request, call.now_ms), failed, ALTER)


def handle_alter_partition_reassignments(call: Call, request: AlterPartitionReassignmentsRequest) -> None:
    def failed(error: KafkaError) -> altered.AlterPartitionReassignmentsResponse:
        response = altered.AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)
        for topic in request.topics:
            rows = [
                altered.ReassignablePartitionResponse(p.partition_index, error.code, error.message)
                for p in topic.partitions
            ]
            response.responses.append(altered.ReassignableTopicResponse(topic.name, rows))
        return response

    submit(call, lambda controller: controller.alter_partition_reassignments(request, call.now_ms), failed, ALTER)


def handle_list_partition_reassignments(call: Call, request: ListPartitionReassignmentsRequest) -> None:
    def failed(error: KafkaError) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)

    submit(call, lambda controller: controller.list_partition_reassignments(request, call.now_ms), failed, DESCRIBE)
