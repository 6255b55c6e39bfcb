"""Admin method that removes members from a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moldau.client.admin.checks import checked_group, checked_name
from moldau.client.admin.group_descriptions import GroupDescriptionAdmin
from moldau.client.admin.routing import RETRY_COORDINATOR, Question, Target, outcome
from moldau.client.results import Outcome
from moldau.protocol import errors as codes


class MemberToRemove(NamedTuple):
    """A member by its static name (group.instance.id), or by the id that the coordinator gave it."""

    group_instance_id: str | None = None
    member_id: str = ""


class GroupMemberAdmin(GroupDescriptionAdmin):
    """Members of groups."""

    def remove_members_from_consumer_group(
        self,
        group_id: str,
        members: Iterable[MemberToRemove] | None,
        reason: str | None = None,
        timeout_ms: int | None = None,
    ) -> dict[MemberToRemove, Outcome[None]]:
        """Makes members leave (None: all of them); the group then shares out their partitions."""
        from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
        from moldau.protocol.messages.leave_group_response import LeaveGroupResponse

        deadline = self._start(timeout_ms)
        checked_group(group_id)
        if members is None:
            found = self.describe_consumer_groups([group_id], timeout_ms=deadline.remaining_ms)[group_id].get()
            members = [MemberToRemove(item.group_instance_id, item.member_id) for item in found.members]
        wanted = [_checked_member(item) for item in dict.fromkeys(members)]

        def request(items: list[MemberToRemove]) -> LeaveGroupRequest:
            rows = [
                MemberIdentity(member_id=item.member_id, group_instance_id=item.group_instance_id, reason=reason)
                for item in items
            ]
            return LeaveGroupRequest(group_id=group_id, members=rows)

        def read(response: LeaveGroupResponse, target: Target[MemberToRemove]) -> dict[MemberToRemove, Outcome[None]]:
            if response.error_code != codes.NONE:
                return target.all(outcome(response.error_code, None, None))
            by_member = {(row.member_id, row.group_instance_id): row.error_code for row in response.members}
            named = {row.group_instance_id: row.error_code for row in response.members if row.group_instance_id}
            outcomes: dict[MemberToRemove, Outcome[None]] = {}
            for item in target.items:
                code = by_member.get((item.member_id, item.group_instance_id))
                if code is None and item.group_instance_id is not None:
                    # The coordinator may fill in the member id of a static member.
                    code = named.get(item.group_instance_id)
                if code is not None:
                    outcomes[item] = outcome(code, None, None)
            return outcomes

        question = Question(request, LeaveGroupResponse, read, RETRY_COORDINATOR)
        return self._ask_each(wanted, self._route_to_coordinator_of(group_id), question, deadline)


def _checked_member(item: MemberToRemove) -> MemberToRemove:
    if item.group_instance_id is None and not item.member_id:
        raise ValueError("A member to remove needs a group_instance_id or a member_id.")
    if item.group_instance_id is not None:
        checked_name(item.group_instance_id, "members")
    return item
