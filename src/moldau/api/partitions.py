"""ElectLeaders and ListPartitionReassignments: decided and known by the active controller.

ElectLeaders 0-2 (preferred and unclean, KIP-460), ListPartitionReassignments 0 (KIP-455).
"""

from __future__ import annotations

from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest
from moldau.protocol.messages.elect_leaders_response import ElectLeadersResponse
from moldau.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from moldau.protocol.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse


def handle_elect_leaders(call: Call, request: ElectLeadersRequest) -> None:
    def failed(error: KafkaError) -> ElectLeadersResponse:
        return ElectLeadersResponse(error_code=error.code if call.version >= 1 else 0)

    submit(call, lambda controller: controller.elect_leaders(request, call.now_ms), failed)


def handle_list_partition_reassignments(call: Call, request: ListPartitionReassignmentsRequest) -> None:
    def failed(error: KafkaError) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)

    submit(call, lambda controller: controller.list_partition_reassignments(request, call.now_ms), failed)
