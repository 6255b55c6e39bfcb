"""Groups as an administrator sees them: listed, described, deleted."""

from __future__ import annotations

from moldau.coordinator.group.group import CLASSIC, Group
from moldau.coordinator.group.offsets import Offsets
from moldau.coordinator.group.part import GroupPart
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from moldau.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from moldau.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse

DEAD = "Dead"
FIRST_VERSION_WITH_GROUP_NOT_FOUND = 6


class GroupAdmin(GroupPart):
    """See the module. Each response is about the groups of this shard alone."""

    def __init__(self, state: GroupShardState, offsets: Offsets) -> None:
        self._state = state
        self._offsets = offsets

    def list_groups(self, states: list[str], types: list[str]) -> Outcome:
        """Filters match in any case; an empty one matches everything."""
        wanted_states = {name.lower() for name in states}
        wanted_types = {name.lower() for name in types}
        response = ListGroupsResponse()
        for group_id in self._state.group_ids():
            group = self._state.get_group(group_id)
            state = group.state_name()
            if wanted_states and state.lower() not in wanted_states:
                continue
            if wanted_types and group.kind not in wanted_types:
                continue
            response.groups.append(ListedGroup(group_id, group.protocol_type(), state, group.kind))
        return Outcome(response=response)

    def describe(self, group_ids: list[str], version: int) -> Outcome:
        return Outcome(response=DescribeGroupsResponse(groups=[self._describe(one, version) for one in group_ids]))

    def _describe(self, group_id: str, version: int) -> DescribedGroup:
        try:
            return self._classic(group_id).describe()
        except KafkaError as error:
            if version >= FIRST_VERSION_WITH_GROUP_NOT_FOUND:
                return DescribedGroup(error.code, error.message, group_id, DEAD)
            return DescribedGroup(error_message=None, group_id=group_id, group_state=DEAD)

    def _classic(self, group_id: str) -> Group:
        group = self._state.get_group(group_id)
        if group.kind != CLASSIC:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
        return group

    def delete(self, group_ids: list[str]) -> Outcome:
        """Each group by itself: those that cannot be deleted do not keep the others."""
        records: list[StoredRecord] = []
        response = DeleteGroupsResponse()
        for group_id in group_ids:
            try:
                group = self._state.get_group(group_id)
                group.check_delete()
            except KafkaError as error:
                response.results.append(DeletableGroupResult(group_id, error.code))
                continue
            records += self._offsets.tombstones_of(group_id)
            records += group.tombstones()
            response.results.append(DeletableGroupResult(group_id))
        return Outcome(records, response, atomic=False)
