"""`kafka-share-groups --delete` and `--delete-offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, ask
from moldau.cli.kafka.consumer_groups_delete import ABOUT_THE_GROUP
from moldau.cli.kafka.consumer_groups_text import pad, print_error, width_of
from moldau.cli.kafka.java_failures import ILLEGAL_ARGUMENT, TIMEOUT, own_line, unchecked
from moldau.cli.kafka.java_order import LOAD, hash_map_order
from moldau.cli.kafka.options import JavaFailure
from moldau.cli.kafka.share_groups_calls import failure_of, list_groups
from moldau.client.errors import error_for
from moldau.protocol.errors import UNKNOWN_TOPIC_OR_PARTITION

if TYPE_CHECKING:
    from moldau.client.admin import Admin

TOPIC_WIDTH = 15
ABOUT_TOPICS = ("TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PARTITION")


def delete_groups(admin: Admin, group_ids: list[str] | None, timeout_ms: int) -> None:
    """None: all share groups."""
    states = {group.group_id: group.state for group in unchecked("", lambda: list_groups(admin, timeout_ms))}
    wanted = list(states) if group_ids is None else list(dict.fromkeys(group_ids))
    failed = {group_id: refusal for group_id in wanted if (refusal := _refusal(group_id, states.get(group_id)))}
    asked = [group_id for group_id in wanted if group_id not in failed]
    deleted = []
    outcomes = ask("deleteShareGroups", lambda: admin.delete_share_groups(asked, timeout_ms)) if asked else {}
    for group_id, outcome in outcomes.items():
        if outcome.error is None:
            deleted.append(group_id)
        else:
            failed[group_id] = failure_of(outcome.error)
    names = ", ".join(f"'{name}'" for name in hash_map_order(deleted))
    if not failed:
        print(f"Deletion of requested share groups ({names}) was successful.")
        return
    print_error("Deletion of some share groups failed:")
    # In the order of a copy of a map, which is made as small as it can be.
    for group_id in hash_map_order(hash_map_order(failed), int(len(failed) / LOAD + 1)):
        print(f"* Group '{group_id}' could not be deleted due to: {own_line(failed[group_id])}")
    if deleted:
        print(f"\nThese share groups were deleted successfully: {names}")


def _refusal(group_id: str, state: str | None) -> JavaFailure | None:
    """Why a group is not even asked about."""
    if state is None:
        return JavaFailure(ILLEGAL_ARGUMENT, f"Group '{group_id}' is not a share group.")
    if state == "Dead":
        return JavaFailure("java.lang.IllegalStateException", f"Share group '{group_id}' group state is DEAD.")
    if state != "Empty":
        return JavaFailure(ERRORS_PACKAGE + "GroupNotEmptyException", f"Share group '{group_id}' is not EMPTY.")
    return None


def delete_offsets(admin: Admin, group_id: str, topics: list[str], timeout_ms: int) -> None:
    # Our client does not ask about a topic without a name; the response is known.
    wanted = [topic for topic in dict.fromkeys(topics) if topic]
    found: dict[str, JavaFailure | None] = {}
    try:
        outcomes = ask(
            "deleteShareGroupOffsets(api=FIND_COORDINATOR)",
            lambda: admin.delete_share_group_offsets(group_id, wanted, timeout_ms) if wanted else {},
        )
    except JavaFailure as failure:
        # That nobody can be asked is an outcome of each topic as well.
        if failure.class_name != TIMEOUT:
            raise
        found = dict.fromkeys(wanted, failure)
        print_error(f"Encounter some unknown error: {own_line(failure)}")
    else:
        found = {topic: None if row.error is None else failure_of(row.error) for topic, row in outcomes.items()}
        # What is wrong with the group is said once more, before the topics.
        errors = (row.error for row in outcomes.values() if row.error is not None)
        error = next((each for each in errors if each.name not in ABOUT_TOPICS), None)
        if error is not None and error.name in ABOUT_THE_GROUP:
            print_error(failure_of(error).message or "")
        elif error is not None:
            print_error(f"Encounter some unknown error: {own_line(failure_of(error))}")
    if "" in topics:
        found[""] = failure_of(error_for(UNKNOWN_TOPIC_OR_PARTITION, None))
    width = max([TOPIC_WIDTH, *map(width_of, found)])
    print(f"\n{pad('TOPIC', width)} STATUS")
    for topic in sorted(found):
        refused = found[topic]
        print(f"{pad(topic, width)} {'Successful' if refused is None else f'Error: {refused.message}'}")
