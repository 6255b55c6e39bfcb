"""An administrator of share groups in a simulated cluster: settings of groups, topics that grow, offsets, deletions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_partitions_response import CreatePartitionsResponse
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.delete_groups_response import DeleteGroupsResponse
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from moldau.protocol.primitives import Message
from moldau.sim.cluster.admin import TRY_AGAIN, ClusterAdmin
from moldau.sim.cluster.client import NOBODY
from moldau.sim.models.partition import PartitionModel
from moldau.sim.models.replicated_topics import ReplicatedTopic
from moldau.sim.node.admin_requests import ALTER_VERSION, CREATE_VERSION, create_topic

if TYPE_CHECKING:
    from moldau.sim.share.world import ShareGroup, ShareWorld

GROUP_RESOURCE = 32
SET_CONFIG = 0
PARTITIONS_MAX = 4
GROUP_REFUSALS = (
    *TRY_AGAIN,
    errors.NOT_COORDINATOR,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NOT_ENOUGH_REPLICAS,
    errors.NON_EMPTY_GROUP,
    errors.GROUP_ID_NOT_FOUND,
    errors.FENCED_STATE_EPOCH,
)


class ShareAdmin(ClusterAdmin):
    def __init__(self, setting: ShareWorld, internal: list[ReplicatedTopic]) -> None:
        self.share_setting = setting
        self._grown: dict[str, int] = {}
        super().__init__(setting, deletes=False, internal=internal)
        self._kinds += (self._grow, self._touch_group, self._touch_group)
        if setting.deletes_records:
            self._kinds += (self._delete_records, self._delete_records)

    def tick(self) -> None:
        unset = [group for group in self.share_setting.groups if not group.is_set]
        if unset and not self.busy and not self.is_busy and not self.setting.finished:
            self._set_group(unset[0])
        super().tick()

    def _create(self, topic: ReplicatedTopic) -> None:
        configs = {
            "min.insync.replicas": str(topic.min_insync),
            "internal.segment.bytes": self.rng.choice(("2000", "9000", "1048576")),
            "file.delete.delay.ms": "500",
        }
        if self.share_setting.is_compacted(topic.name):
            configs |= {
                "cleanup.policy": "compact",
                "internal.segment.bytes": "3000",
                "min.cleanable.dirty.ratio": "0.01",
            }
        request = create_topic(topic.name, len(topic.partitions), topic.replication_factor, configs, 3000)
        self._ask(f"create {topic.name}", request, CREATE_VERSION, lambda response: self._on_created(topic, response))

    # Groups

    def _set_group(self, group: ShareGroup) -> None:
        configs = [AlterableConfig(key, SET_CONFIG, value) for key, value in sorted(group.configs.items())]
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, group.group_id, configs)])

        def on_response(response: Message | None) -> None:
            if isinstance(response, IncrementalAlterConfigsResponse):
                row = response.responses[0]
                group.is_set = self._check(f"set {group.group_id}", row.error_code, row.error_message)

        self._ask(f"set {group.group_id} {group.configs}", request, ALTER_VERSION, on_response)

    def _touch_group(self) -> None:
        """Rarely: everybody leaves, and then the offsets are altered, or the group is deleted."""
        group = self.rng.choice(self.share_setting.groups)
        if not self.share_setting.alters_groups or self.rng.random() < 0.7:
            return
        if not group.is_closed:
            self.world.note(f"admin: everybody leaves {group.group_id}")
            group.is_closed = True
            for member in group.members:
                member.leave()
            self.world.schedule(self.rng.choice((1500, 3000)), lambda: self._open_again(group))
            return
        coordinators: list[int] = []

        def found(response: Message | None) -> None:
            if isinstance(response, FindCoordinatorResponse) and response.coordinators[0].error_code == errors.NONE:
                coordinators.append(response.coordinators[0].node_id)
                self._change_group(group, coordinators[0])

        self._ask("find a coordinator", FindCoordinatorRequest(coordinator_keys=[group.group_id]), 4, found)

    def _open_again(self, group: ShareGroup) -> None:
        group.is_closed = False

    def _change_group(self, group: ShareGroup, coordinator: int) -> None:
        if not group.is_closed:
            return
        if self.share_setting.deletes_groups:
            self.world.note(f"admin: delete {group.group_id}")
            on_response = self.when_done(self._on_deleted_group)
            self.client.ask(coordinator, DeleteGroupsRequest([group.group_id]), 2, on_response, 6000)
            return
        topic = self.rng.choice(self.model.present())
        index = self.rng.randrange(len(topic.partitions))
        end = self.share_setting.ledger.log_of(topic.name, index).end
        offset = self.rng.randint(min(end, topic.partitions[index].start_high), end)
        self.share_setting.note_reset((group.group_id, topic.topic_id, index), offset)
        self.world.note(f"admin: alter {group.group_id} {topic.name}-{index} to {offset}")
        row = AlterShareGroupOffsetsRequestTopic(topic.name, [AlterShareGroupOffsetsRequestPartition(index, offset)])
        on_response = self.when_done(self._on_altered_offsets)
        self.client.ask(coordinator, AlterShareGroupOffsetsRequest(group.group_id, [row]), 0, on_response, 6000)

    def _on_deleted_group(self, response: Message | None) -> None:
        if isinstance(response, DeleteGroupsResponse):
            self._check("delete-group", response.results[0].error_code, None, GROUP_REFUSALS)

    def _on_altered_offsets(self, response: Message | None) -> None:
        if isinstance(response, AlterShareGroupOffsetsResponse):
            if self._check("alter-offsets", response.error_code, response.error_message, GROUP_REFUSALS):
                row = response.responses[0].partitions[0]
                self._check("alter-offsets", row.error_code, row.error_message, GROUP_REFUSALS)

    # Topics

    def _grow(self) -> None:
        topics = [topic for topic in self.model.present() if len(topic.partitions) < PARTITIONS_MAX]
        if not topics or self.rng.random() < 0.7:
            return
        topic = self.rng.choice(topics)
        count = self._grown.setdefault(topic.name, len(topic.partitions) + 1)
        request = CreatePartitionsRequest([CreatePartitionsTopic(topic.name, count, None)], 3000)

        def on_response(response: Message | None) -> None:
            if isinstance(response, CreatePartitionsResponse):
                row = response.results[0]
                # An earlier request was carried out and its response lost.
                done = row.error_code == errors.INVALID_PARTITIONS
                if done or self._check(f"grow {topic.name}", row.error_code, row.error_message):
                    self._grown.pop(topic.name, None)
                    topic.partitions.append(PartitionModel(f"{topic.name}-{count - 1}"))

        self._ask(f"grow {topic.name} to {count}", request, 3, on_response)

    def _delete_records(self) -> None:
        if self.client.leader_of(self.model.topics[0].topic_id, 0) == NOBODY:
            self.client.refresh()
        super()._delete_records()
