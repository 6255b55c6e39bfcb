"""The active controller: every verb decides, `replay` alone changes the state.

A verb reads the state and returns records with the response; the node appends them in one batch, replays them here at
once (the next verb builds on them) and gives the response out when they are committed. A verb raises KafkaError when
the whole request fails. Kafka keeps the same in QuorumController and its managers.
"""

from __future__ import annotations

from moldau.controller.brokers import Brokers
from moldau.controller.configs import Configs
from moldau.controller.delegation_tokens import DelegationTokens
from moldau.controller.duties import ELECTIONS_PER_BATCH_MAX, Duties, no_op
from moldau.controller.feature_levels import FeatureLevels
from moldau.controller.isr import InSyncReplicas
from moldau.controller.leadership import Leadership
from moldau.controller.mutations import Asker, MutationBudget, Mutations
from moldau.controller.producer_ids import ProducerIds
from moldau.controller.quotas import Quotas
from moldau.controller.reassignment import Reassignments
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.security import Security
from moldau.controller.state import ControllerState
from moldau.controller.topics import Topics
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from moldau.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from moldau.protocol.messages.alter_configs_request import AlterConfigsRequest
from moldau.protocol.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from moldau.protocol.messages.alter_partition_request import AlterPartitionRequest
from moldau.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from moldau.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from moldau.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from moldau.protocol.messages.create_acls_request import CreateAclsRequest
from moldau.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest
from moldau.protocol.messages.create_topics_request import CreateTopicsRequest
from moldau.protocol.messages.delete_acls_request import DeleteAclsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest
from moldau.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from moldau.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from moldau.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from moldau.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from moldau.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from moldau.protocol.messages.update_features_request import UpdateFeaturesRequest
from moldau.protocol.stored.metadata_records import RegisterBrokerRecord


class Controller:
    """One subject per attribute; the verbs below are what the rest of the node calls."""

    def __init__(self, state: ControllerState) -> None:
        self.state = state
        self.leadership = Leadership(state)
        self.brokers = Brokers(state, self.leadership)
        self.configs = Configs(state)
        self.topics = Topics(state, self.configs, self.leadership)
        self.mutations = Mutations(state)
        self.features = FeatureLevels(state)
        self.producer_ids = ProducerIds(state, self.brokers)
        self.quotas = Quotas(state)
        self.security = Security(state)
        self.tokens = DelegationTokens(state)
        self.in_sync_replicas = InSyncReplicas(state, self.brokers, self.leadership)
        self.reassignments = Reassignments(state, self.topics, self.leadership)
        self.duties = Duties(state, self.brokers, self.leadership, self.tokens)

    @property
    def image(self) -> MetadataImage:
        return self.state.image

    def replay(
        self, records: list[VersionedRecord], first_offset: int, epoch: int, timestamp_ms: int
    ) -> tuple[MetadataDelta, MetadataImage]:
        """Applies records that were just appended from `first_offset` on."""
        delta = MetadataDelta(self.state.image)
        for offset, (record, _) in enumerate(records, first_offset):
            delta.replay(record)
            if isinstance(record, RegisterBrokerRecord):
                self.state.registration_offsets[record.broker_id] = offset
        image = delta.apply(first_offset + len(records) - 1, epoch, timestamp_ms)
        self.state.advance(delta, image, first_offset + len(records))
        self.state.counts.count_elections(delta)
        self.mutations.on_replayed(delta, image)
        self.duties.on_replayed(delta)
        return delta, image

    # Brokers and controllers

    def register_broker(self, request: BrokerRegistrationRequest, now_ms: int) -> Result:
        return self.brokers.register(request, now_ms)

    def broker_heartbeat(self, request: BrokerHeartbeatRequest, now_ms: int) -> Result:
        return self.brokers.heartbeat(request, now_ms)

    def unregister_broker(self, request: UnregisterBrokerRequest, now_ms: int) -> Result:
        return self.brokers.unregister(request)

    def register_controller(self, request: ControllerRegistrationRequest, now_ms: int) -> Result:
        return self.brokers.register_controller(request)

    def fence_stale_brokers(self, now_ms: int) -> Result:
        return self.brokers.fence_stale(now_ms)

    def fence_broker(self, broker_id: int, broker_epoch: int) -> Result:
        """For a broker whose process is known to be gone; does nothing when it is fenced or has registered anew."""
        return self.brokers.fence(broker_id, broker_epoch)

    # Topics and partitions

    # Whoever asks pays for these with its quota of changes; without `asker` nobody does.

    def create_topics(self, request: CreateTopicsRequest, now_ms: int, asker: Asker | None = None) -> Result:
        budget = self.mutations.budget(asker, now_ms)
        return throttled(self.topics.create(request, budget, now_ms), budget, now_ms)

    def delete_topics(self, request: DeleteTopicsRequest, now_ms: int, asker: Asker | None = None) -> Result:
        budget = self.mutations.budget(asker, now_ms)
        return throttled(self.topics.delete(request, budget, now_ms), budget, now_ms)

    def create_partitions(self, request: CreatePartitionsRequest, now_ms: int, asker: Asker | None = None) -> Result:
        budget = self.mutations.budget(asker, now_ms)
        return throttled(self.topics.create_partitions(request, budget, now_ms), budget, now_ms)

    def elect_leaders(self, request: ElectLeadersRequest, now_ms: int) -> Result:
        return self.leadership.elect_leaders(request)

    def balance_leaders(self) -> Result:
        return Result(self.leadership.balance(ELECTIONS_PER_BATCH_MAX)[0])

    def alter_partition(self, request: AlterPartitionRequest, now_ms: int) -> Result:
        return self.in_sync_replicas.alter(request)

    def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest, now_ms: int) -> Result:
        return self.in_sync_replicas.assign_directories(request)

    def alter_partition_reassignments(self, request: AlterPartitionReassignmentsRequest, now_ms: int) -> Result:
        return self.reassignments.alter(request)

    def list_partition_reassignments(self, request: ListPartitionReassignmentsRequest, now_ms: int) -> Result:
        return Result([], self.reassignments.list(request))

    # Settings

    def alter_configs(self, request: AlterConfigsRequest, now_ms: int) -> Result:
        return self.configs.alter(request)

    def incremental_alter_configs(self, request: IncrementalAlterConfigsRequest, now_ms: int) -> Result:
        return self.configs.incremental_alter(request)

    def update_features(self, request: UpdateFeaturesRequest, version: int, now_ms: int) -> Result:
        return self.features.update(request, version)

    def alter_client_quotas(
        self, request: AlterClientQuotasRequest, now_ms: int, unknown_hosts: frozenset[str] = frozenset()
    ) -> Result:
        return self.quotas.alter(request, unknown_hosts)

    def alter_user_scram_credentials(self, request: AlterUserScramCredentialsRequest, now_ms: int) -> Result:
        return self.security.alter_scram(request)

    def create_acls(self, request: CreateAclsRequest, now_ms: int) -> Result:
        return self.security.create_acls(request)

    def delete_acls(self, request: DeleteAclsRequest, now_ms: int) -> Result:
        return self.security.delete_acls(request)

    def create_delegation_token(self, request: CreateDelegationTokenRequest, requester: str, now_ms: int) -> Result:
        return self.tokens.create(request, requester, now_ms)

    def renew_delegation_token(self, request: RenewDelegationTokenRequest, principal: str, now_ms: int) -> Result:
        return self.tokens.renew(request, principal, now_ms)

    def expire_delegation_token(self, request: ExpireDelegationTokenRequest, principal: str, now_ms: int) -> Result:
        return self.tokens.expire(request, principal, now_ms)

    def allocate_producer_ids(self, request: AllocateProducerIdsRequest, now_ms: int) -> Result:
        return self.producer_ids.allocate(request)

    def no_op(self) -> Result:
        """Keeps the log moving while nothing happens, so that a lagging follower can be told from an idle one."""
        return no_op()


def throttled(result: Result, budget: MutationBudget, now_ms: int) -> Result:
    """The response says how long the client has to wait; the broker that passed the request on makes it wait."""
    result.response.throttle_time_ms = budget.close(now_ms)
    return result
