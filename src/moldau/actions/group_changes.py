"""Changes of groups: offsets reset after a preview, offsets forgotten, groups deleted, members sent away.

A preview computes the new offsets, and what is written afterwards is exactly these, whatever has arrived meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.actions.calls import Call, asking, changing
from moldau.actions.group_lag import SHARE, STREAMS
from moldau.actions.groups import CLASSIC, find_kind
from moldau.actions.refusals import Refused
from moldau.client.admin import Admin, MemberToRemove
from moldau.client.results import OffsetAndMetadata, Outcome, TopicPartition
from moldau.facts.group_lag import committed_of, fetch_offsets
from moldau.facts.group_targets import NewOffsets, NotCommitted, Targets

INACTIVE = ("Empty", "Dead", "")
WHERE = ("earliest", "latest", "current", "offset", "shift", "time")


async def preview_reset(call: Call) -> object:
    """Where each partition would go, and what is to be said about some; nothing is written."""
    group_id, where = call.text("id"), call.text("where")
    if where not in WHERE:
        raise Refused(f"There is no place {where!r}; there are {', '.join(WHERE)}.")
    number = 0 if where in WHERE[:3] else call.number("number", lowest=-(2**62))
    kind = await find_kind(call.viewer, group_id)
    notes: list[str] = []
    before, new = await call.viewer.clients.ask(
        lambda admin: _plan(admin, group_id, kind, _chosen(call), where, number, notes)
    )
    members = await call.viewer.clients.ask(lambda admin: _members(admin, group_id, kind))
    if members:
        words = "1 member" if members == 1 else f"{members} members"
        notes.insert(0, f"The group has {words} now: offsets can be set once none is left.")
    rows = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "before": None if before.get(each) is None else before[each],
            "after": offset,
        }
        for each, offset in sorted(new.items())
    ]
    return {"rows": rows, "notes": notes, "members": members}


def _chosen(call: Call) -> dict[str, list[int] | None]:
    """Topics, each with partitions or (None) all of them."""
    given = call.body.get("topics")
    if not isinstance(given, dict) or not given:
        raise Refused("Choose at least one topic.")
    for numbers in given.values():
        if numbers is not None and not (
            isinstance(numbers, list) and numbers and all(isinstance(each, int) for each in numbers)
        ):
            raise Refused("The partitions of a topic are a list of numbers.")
    for topic in given:
        call.viewer.scope.check_topic(topic)
    return given


def _plan(
    admin: Admin,
    group_id: str,
    kind: str,
    chosen: Mapping[str, list[int] | None],
    where: str,
    number: int,
    notes: list[str],
) -> tuple[dict[TopicPartition, int | None], NewOffsets]:
    before = _offsets_of(admin, group_id, kind)
    committed = {each: None if offset is None else OffsetAndMetadata(offset) for each, offset in before.items()}
    partitions = _partitions(admin, chosen)

    def offsets_at(wanted: Iterable[TopicPartition], when: int) -> NewOffsets:
        return {each: found.get().offset for each, found in fetch_offsets(admin, wanted, when).items()}

    def tell_late(each: TopicPartition) -> None:
        notes.append(f"{each.topic}-{each.partition} has no record that young: it goes to the end.")

    def tell_moved(each: TopicPartition, wanted: int, found: int) -> None:
        notes.append(
            f"{each.topic}-{each.partition} {'begins' if found > wanted else 'ends'} at {found:,}: not to {wanted:,}."
        )

    targets = Targets(offsets_at, lambda: committed, tell_late, tell_moved)
    try:
        if where == "earliest":
            return before, targets.earliest(partitions)
        if where == "latest":
            return before, targets.latest(partitions)
        if where == "current":
            return before, targets.current(partitions)
        if where == "shift":
            return before, targets.shifted(partitions, number)
        if where == "time":
            return before, targets.at_time(partitions, number)
        return before, targets.nearest(dict.fromkeys(partitions, number))
    except NotCommitted as error:
        raise Refused(f"{error} Choose another place for it.") from None


def _partitions(admin: Admin, chosen: Mapping[str, list[int] | None]) -> list[TopicPartition]:
    topics = admin.describe_topics(chosen)
    found = []
    for name, numbers in chosen.items():
        known = topics[name].get().partitions
        for number in sorted(known) if numbers is None else numbers:
            if number not in known:
                raise Refused(f"Topic {name} has partitions 0 to {len(known) - 1}; there is no partition {number}.")
            found.append(TopicPartition(name, number))
    return found


def _offsets_of(admin: Admin, group_id: str, kind: str) -> dict[TopicPartition, int | None]:
    if kind == SHARE:
        shared = admin.list_share_group_offsets({group_id: None})[group_id].get()
        starts = {each: outcome.get() for each, outcome in shared.items()}
        return {each: None if start is None else start.start_offset for each, start in starts.items()}
    committed = committed_of(admin, group_id)
    return {each: None if offset is None else offset.offset for each, offset in committed.items()}


def _members(admin: Admin, group_id: str, kind: str) -> int:
    if kind == SHARE:
        return len(admin.describe_share_groups([group_id])[group_id].get().members)
    if kind == STREAMS:
        return len(admin.describe_streams_groups([group_id])[group_id].get().members)
    if kind == CLASSIC:
        return len(admin.describe_classic_groups([group_id])[group_id].get().members)
    return len(admin.describe_consumer_groups([group_id])[group_id].get().members)


async def reset(call: Call) -> object:
    """Writes the offsets of a preview."""
    group_id = call.target = call.text("id")
    offsets = _previewed(call)
    call.details = {f"{each.topic}-{each.partition}": offset for each, offset in offsets.items()}
    kind = await find_kind(call.viewer, group_id)

    def work(admin: Admin) -> dict[TopicPartition, Outcome[None]]:
        if kind == SHARE:
            return admin.alter_share_group_offsets(group_id, offsets)
        if kind == STREAMS:
            return admin.alter_streams_group_offsets(group_id, offsets)
        return admin.alter_consumer_group_offsets(group_id, offsets)

    outcomes = await call.viewer.clients.ask(work)
    for outcome in outcomes.values():
        outcome.get()
    return {"partitions": len(outcomes)}


def _previewed(call: Call) -> NewOffsets:
    given = call.body.get("offsets")
    if not isinstance(given, list) or not given:
        raise Refused("There are no offsets to set.")
    found: NewOffsets = {}
    for row in given:
        try:
            topic, partition, offset = row["topic"], row["partition"], row["after"]
        except (TypeError, KeyError):
            raise Refused("An offset lacks its topic, its partition or itself.") from None
        if not isinstance(topic, str) or type(partition) is not int or type(offset) is not int or offset < 0:
            raise Refused("An offset lacks its topic, its partition or itself.")
        call.viewer.scope.check_topic(topic)
        found[TopicPartition(topic, partition)] = offset
    return found


async def delete_group(call: Call) -> object:
    group_id = call.target = call.text("id")
    if call.text("confirmed") != group_id:
        raise Refused("The name that was typed is not the group's.")
    kind = await find_kind(call.viewer, group_id)

    def work(admin: Admin) -> None:
        if kind == SHARE:
            admin.delete_share_groups([group_id])[group_id].get()
        elif kind == STREAMS:
            admin.delete_streams_groups([group_id])[group_id].get()
        else:
            admin.delete_consumer_groups([group_id])[group_id].get()

    await call.viewer.clients.ask(work)
    await call.viewer.groups.get_new()
    return {}


async def forget_offsets(call: Call) -> object:
    """The offsets of one topic, which the group does not read any more."""
    group_id, topic = call.text("id"), call.text("topic")
    call.target, call.details = group_id, {"topic": topic}
    call.viewer.scope.check_topic(topic)
    kind = await find_kind(call.viewer, group_id)

    def work(admin: Admin) -> None:
        if kind == SHARE:
            admin.delete_share_group_offsets(group_id, [topic])[topic].get()
            return
        partitions = [each for each in committed_of(admin, group_id) if each.topic == topic]
        delete = admin.delete_streams_group_offsets if kind == STREAMS else admin.delete_consumer_group_offsets
        for outcome in delete(group_id, partitions).values():
            outcome.get()

    await call.viewer.clients.ask(work)
    return {}


async def remove_member(call: Call) -> object:
    """Makes a member leave a classic group; if it still lives, it will join again."""
    group_id, member_id = call.text("id"), call.text("member")
    call.target, call.details = group_id, {"member": member_id}
    call.viewer.scope.check_group(group_id)
    instance = call.body.get("instance_id")
    member = MemberToRemove(instance if isinstance(instance, str) and instance else None, member_id)
    outcomes = await call.viewer.clients.ask(
        lambda admin: admin.remove_members_from_consumer_group(group_id, [member], "removed in the console")
    )
    outcomes[member].get()
    return {}


ROUTES = [
    asking("/api/groups/reset/preview", preview_reset),
    changing("/api/groups/reset", "reset offsets", reset),
    changing("/api/groups/delete", "delete group", delete_group),
    changing("/api/groups/forget-offsets", "delete offsets", forget_offsets),
    changing("/api/groups/remove-member", "remove member", remove_member),
]
