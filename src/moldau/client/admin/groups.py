"""Admin methods for groups of all kinds: list and delete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import checked_groups, checked_names
from moldau.client.admin.routing import (
    GROUP_COORDINATOR,
    RETRY_COORDINATOR,
    Listing,
    Question,
    Target,
    outcome,
)
from moldau.client.errors import ClientError, error_for
from moldau.client.results import Outcome
from moldau.protocol import errors as codes

CONSUMER_PROTOCOL = "consumer"


class GroupListing(NamedTuple):
    """One group; type is classic, consumer, share or streams (empty where the broker is too old to say).

    A group is simple when it has committed offsets alone and never had members.
    """

    group_id: str
    protocol_type: str
    state: str
    type: str

    @property
    def is_simple(self) -> bool:
        """Whether it has committed offsets alone and never had members."""
        return self.type.lower() in ("", "classic") and not self.protocol_type


class GroupAdmin(AdminCalls):
    """What groups of all kinds have in common."""

    def list_groups(
        self,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        protocol_types: Iterable[str] | None = None,
        timeout_ms: int | None = None,
    ) -> Listing[GroupListing]:
        """All groups of the cluster, or those in these states, of these types and of these protocols."""
        from moldau.protocol.messages.list_groups_request import ListGroupsRequest
        from moldau.protocol.messages.list_groups_response import ListGroupsResponse

        deadline = self._start(timeout_ms)
        in_states = checked_names(states, "states")
        of_types = checked_names(types, "types")
        protocols = None if protocol_types is None else set(protocol_types)

        def request() -> ListGroupsRequest:
            return ListGroupsRequest(states_filter=in_states, types_filter=of_types)

        responses = self._ask_all_brokers(request, ListGroupsResponse, lambda response: response.error_code, deadline)
        found: dict[str, GroupListing] = {}
        errors: dict[int, ClientError] = {}
        for broker, response in responses.items():
            if response.error is not None:
                errors[broker.id] = response.error
                continue
            for row in response.get().groups:
                if protocols is None or row.protocol_type in protocols:
                    found[row.group_id] = GroupListing(row.group_id, row.protocol_type, row.group_state, row.group_type)
        return Listing(sorted(found.values()), errors)

    def list_consumer_groups(
        self, states: Iterable[str] = (), types: Iterable[str] = (), timeout_ms: int | None = None
    ) -> Listing[GroupListing]:
        """Groups of consumers, with the older or the newer protocol, and groups that have offsets alone."""
        found = self.list_groups(states, types, (CONSUMER_PROTOCOL, ""), timeout_ms)
        kept = [group for group in found.found if group.type.lower() in ("", "classic", "consumer")]
        return Listing(kept, found.errors)

    def delete_consumer_groups(
        self, group_ids: Iterable[str], timeout_ms: int | None = None
    ) -> dict[str, Outcome[None]]:
        """Deletes groups without members, with their offsets."""
        return self._delete_groups(group_ids, timeout_ms)

    def delete_share_groups(self, group_ids: Iterable[str], timeout_ms: int | None = None) -> dict[str, Outcome[None]]:
        """Deletes share groups without members, with their state."""
        return self._delete_groups(group_ids, timeout_ms)

    def delete_streams_groups(
        self, group_ids: Iterable[str], timeout_ms: int | None = None
    ) -> dict[str, Outcome[None]]:
        """Deletes streams groups without members, with their offsets."""
        return self._delete_groups(group_ids, timeout_ms)

    def _delete_groups(self, group_ids: Iterable[str], timeout_ms: int | None) -> dict[str, Outcome[None]]:
        from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
        from moldau.protocol.messages.delete_groups_response import DeleteGroupsResponse

        deadline = self._start(timeout_ms)
        wanted = checked_groups(group_ids)

        def request(items: list[str]) -> DeleteGroupsRequest:
            return DeleteGroupsRequest(groups_names=items)

        def read(response: DeleteGroupsResponse, target: Target[str]) -> dict[str, Outcome[None]]:
            return {
                row.group_id: outcome(row.error_code, group_sentence(row.error_code, row.group_id), None)
                for row in response.results
            }

        question = Question(request, DeleteGroupsResponse, read, RETRY_COORDINATOR)
        return self._ask_each(wanted, self._route_to_coordinators(GROUP_COORDINATOR), question, deadline)


def group_sentence(code: int, group_id: str) -> str | None:
    """What an error about a group means, where the broker sends a code alone."""
    if code == codes.GROUP_ID_NOT_FOUND:
        return f"Group {group_id} does not exist."
    if code == codes.NON_EMPTY_GROUP:
        return f"Group {group_id} has members."
    return None


def missing_group(group_id: str) -> ClientError:
    return error_for(codes.GROUP_ID_NOT_FOUND, group_sentence(codes.GROUP_ID_NOT_FOUND, group_id))
