"""What brokers and other controllers ask of the active controller, on its own listener.

BrokerRegistration 0-4, BrokerHeartbeat 0-2, AlterPartition 2-3, AllocateProducerIds 0, ControllerRegistration 0,
AssignReplicasToDirs 0; UnregisterBroker 0 comes from operators, also through brokers. Each is the verb that
`node/controller_verbs.py` names, and NOT_CONTROLLER where no controller is active.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.api.authorize import may_cluster_now
from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.node.controller_verbs import VERBS
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from moldau.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from moldau.protocol.messages.alter_partition_request import AlterPartitionRequest
from moldau.protocol.messages.alter_partition_response import AlterPartitionResponse
from moldau.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from moldau.protocol.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from moldau.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from moldau.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from moldau.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from moldau.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from moldau.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from moldau.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from moldau.protocol.primitives import Message
from moldau.security.rights import ALTER, CLUSTER_ACTION


def _decide(
    call: Call, request: Message, failed: Callable[[KafkaError], Message], operation: int = CLUSTER_ACTION
) -> None:
    verb = VERBS[call.api_key]
    submit(call, lambda controller: verb(controller, request, call.now_ms), failed, operation)


def handle_broker_registration(call: Call, request: BrokerRegistrationRequest) -> None:
    _decide(call, request, lambda error: BrokerRegistrationResponse(error_code=error.code))


def handle_broker_heartbeat(call: Call, request: BrokerHeartbeatRequest) -> None:
    watch = call.node.watch_heartbeats
    # Whoever is no broker must not be taken for the connection of one.
    if watch is not None and may_cluster_now(call, CLUSTER_ACTION):
        watch(call.context, request.broker_id, call.now_ms)
    _decide(call, request, lambda error: BrokerHeartbeatResponse(error_code=error.code))


def handle_alter_partition(call: Call, request: AlterPartitionRequest) -> None:
    _decide(call, request, lambda error: AlterPartitionResponse(error_code=error.code))


def handle_allocate_producer_ids(call: Call, request: AllocateProducerIdsRequest) -> None:
    _decide(call, request, lambda error: AllocateProducerIdsResponse(error_code=error.code))


def handle_controller_registration(call: Call, request: ControllerRegistrationRequest) -> None:
    _decide(
        call,
        request,
        lambda error: ControllerRegistrationResponse(error_code=error.code, error_message=error.message),
    )


def handle_assign_replicas_to_dirs(call: Call, request: AssignReplicasToDirsRequest) -> None:
    _decide(call, request, lambda error: AssignReplicasToDirsResponse(error_code=error.code))


def handle_unregister_broker(call: Call, request: UnregisterBrokerRequest) -> None:
    _decide(
        call,
        request,
        lambda error: UnregisterBrokerResponse(error_code=error.code, error_message=error.message),
        ALTER,
    )
