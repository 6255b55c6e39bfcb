"""What `kafka-reassign-partitions` does: generate, execute, verify, cancel, list, in the words of the real tool."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from moldau.cli.kafka.admin_tools import ask, java_failure, java_text
from moldau.cli.kafka.options import JavaFailure
from moldau.cli.kafka.reassign_plan import (
    COMMAND_FAILED,
    OPERATION_FAILED,
    Assignment,
    Moves,
    Plan,
    brokers_of,
    check_executable,
    duplicates,
    parse_plan,
    parse_topics,
    plan_json,
    proposed_moves,
    throttled_replicas,
)
from moldau.client.admin import (
    BROKER,
    TOPIC,
    ConfigChange,
    ConfigResource,
    PartitionReassignment,
    TopicPartitionReplica,
)
from moldau.client.errors import ClientError, error_for
from moldau.client.results import TopicPartition
from moldau.protocol.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError

if TYPE_CHECKING:
    from moldau.client.admin import Admin

TERSE = "org.apache.kafka.tools.TerseException"
EXECUTION = "java.util.concurrent.ExecutionException"

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DIRECTORY_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"

EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a "
    "new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
VERIFY_PERIODICALLY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)
INVALID_FACTOR = "org.apache.kafka.common.errors.InvalidReplicationFactorException"
NO_BROKERS = "All brokers are currently fenced, or have all their log directories cordoned."
RETRY_S = 0.1


class Limits(NamedTuple):
    broker_throttle: int
    """Bytes a second between brokers; -1: none."""
    directory_throttle: int
    timeout_ms: int


def _list(items: Iterable[object], separator: str = ",") -> str:
    return separator.join(str(item) for item in items)


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _wrapped(error: ClientError, call: str) -> JavaFailure:
    """An error that Java's tool gets from a future."""
    failure = java_failure(error, call)
    return JavaFailure(EXECUTION, java_text(failure), failure)


# What there is


def _topics(admin: Admin, names: Iterable[str]) -> Assignment:
    found: Assignment = {}
    for name, outcome in admin.describe_topics(list(dict.fromkeys(names))).items():
        try:
            topic = outcome.get()
        except ClientError as error:
            if error.code == UNKNOWN_TOPIC_OR_PARTITION:
                error = error_for(UNKNOWN_TOPIC_OR_PARTITION, f"Topic {name} not found.")
            raise _wrapped(error, "describeTopics") from None
        for index, partition in topic.partitions.items():
            found[TopicPartition(topic.name, index)] = list(partition.replicas)
    return found


def _directories(admin: Admin, assignment: Assignment) -> dict[TopicPartitionReplica, str]:
    replicas = [
        TopicPartitionReplica(*partition, broker) for partition, brokers in assignment.items() for broker in brokers
    ]
    found = admin.describe_replica_log_dirs(replicas) if replicas else {}
    return {
        replica: outcome.get().current_directory or "any"
        for replica, outcome in found.items()
        if outcome.error is None and outcome.get().current_directory is not None
    }


def _going_on(
    admin: Admin, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, PartitionReassignment]:
    wanted = None if partitions is None else list(partitions)
    if wanted is not None and not wanted:
        return {}
    try:
        return admin.list_partition_reassignments(wanted)
    except ClientError as error:
        raise _wrapped(error, "listPartitionReassignments") from None


# list


def list_reassignments(admin: Admin) -> None:
    found = _going_on(admin)
    if not found:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for partition in sorted(found):
        row = found[partition]
        text = f"{partition}: replicas: {_list(row.replicas)}."
        text += f" adding: {_list(row.adding_replicas)}." if row.adding_replicas else ""
        text += f" removing: {_list(row.removing_replicas)}." if row.removing_replicas else ""
        print(text)


# generate


def generate(admin: Admin, text: str, broker_list: str, by_rack: bool) -> None:
    brokers, topics = _generate_arguments(text, broker_list)
    current = _topics(admin, topics)
    racks = _racks(admin, brokers, by_rack)
    proposed = _propose(current, racks)
    print(f"Current partition replica assignment\n{plan_json(current, _directories(admin, current))}\n")
    print(f"Proposed partition reassignment configuration\n{plan_json(proposed, {})}")


def _generate_arguments(text: str, broker_list: str) -> tuple[list[int], list[str]]:
    brokers = []
    for part in broker_list.split(","):
        try:
            brokers.append(int(part))
        except ValueError:
            raise JavaFailure("java.lang.NumberFormatException", f'For input string: "{part}"') from None
    if duplicates(brokers):
        raise JavaFailure(
            COMMAND_FAILED, f"Broker list contains duplicate entries: [{_list(duplicates(brokers), ', ')}]"
        )
    topics = parse_topics(text)
    if duplicates(topics):
        names = _list(duplicates(topics), ", ")
        raise JavaFailure(COMMAND_FAILED, f"List of topics to reassign contains duplicate entries: [{names}]")
    return brokers, topics


def _racks(admin: Admin, brokers: list[int], by_rack: bool) -> dict[int, str | None]:
    found = ask("describeCluster", admin.describe_cluster).brokers
    racks = {broker.id: broker.rack if by_rack else None for broker in found if broker.id in brokers}
    without = [broker for broker, rack in racks.items() if rack is None]
    if by_rack and without and len(without) < len(racks):
        raise JavaFailure(
            OPERATION_FAILED,
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information.",
        )
    return dict(sorted(racks.items()))


def _propose(current: Assignment, racks: dict[int, str | None]) -> Assignment:
    """Each topic spread over the brokers as a new one would be, with as many replicas as it has."""
    import random

    from moldau.controller.placement import UsableBroker, place_replicas

    brokers = [UsableBroker(broker, rack, False) for broker, rack in racks.items()]
    proposed: Assignment = {}
    for topic in sorted({partition.topic for partition in current}):
        partitions = sorted(partition for partition in current if partition.topic == topic)
        if not brokers:
            raise JavaFailure(INVALID_FACTOR, NO_BROKERS)
        try:
            rows = place_replicas(brokers, len(partitions), len(current[partitions[0]]), random.Random())
        except KafkaError as error:
            raise JavaFailure(INVALID_FACTOR, error.message) from None
        proposed.update(zip(partitions, rows, strict=True))
    return proposed


# execute


def execute(admin: Admin, text: str, limits: Limits, additional: bool, may_change_factor: bool) -> None:
    plan = parse_plan(text)
    check_executable(plan)
    going_on = _going_on(admin)
    if going_on and not additional:
        raise JavaFailure(TERSE, EXISTING)
    _check_brokers(admin, plan)
    proposed = plan.assignment
    current = _current(admin, proposed)
    print(
        f"Current partition replica assignment\n\n{plan_json(current, _directories(admin, current))}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    _throttle(admin, plan, current, going_on, limits)
    errors = _alter(admin, dict(proposed), may_change_factor)
    if errors:
        raise JavaFailure(TERSE, f"Error reassigning partition(s):\n{errors}")
    print(f"Successfully started partition reassignment{_s(len(proposed))} for {_list(sorted(proposed))}")
    if plan.directories:
        _move(admin, plan.directories, limits.timeout_ms)


def _check_brokers(admin: Admin, plan: Plan) -> None:
    known = {broker.id for broker in ask("describeCluster", admin.describe_cluster).brokers}
    for _, replicas in plan.parts:
        for broker in replicas:
            if broker not in known:
                raise JavaFailure(COMMAND_FAILED, f"Unknown broker id {broker}")


def _current(admin: Admin, proposed: Assignment) -> Assignment:
    every = _topics(admin, [partition.topic for partition in proposed])
    missing = [partition for partition in proposed if partition not in every]
    if missing:
        unknown = error_for(UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition: {missing[0]}")
        raise _wrapped(unknown, "describeTopics")
    return {partition: every[partition] for partition in proposed}


def _throttle(
    admin: Admin,
    plan: Plan,
    current: Assignment,
    going_on: dict[TopicPartition, PartitionReassignment],
    limits: Limits,
) -> None:
    if limits.broker_throttle < 0 and limits.directory_throttle < 0:
        return
    print(VERIFY_PERIODICALLY)
    if limits.broker_throttle >= 0:
        set_broker_throttle(admin, proposed_moves(going_on, plan.assignment, current), limits.broker_throttle)
        print(f"The inter-broker throttle limit was set to {limits.broker_throttle} B/s")
    if limits.directory_throttle >= 0:
        brokers = sorted({replica.broker_id for replica in plan.directories})
        _set_on_brokers(admin, brokers, {DIRECTORY_RATE: str(limits.directory_throttle)})
        print(f"The replica-alter-dir throttle limit was set to {limits.directory_throttle} B/s")


def set_broker_throttle(admin: Admin, moves: Moves, rate: int) -> None:
    """Limits what the moves take: each topic says which replicas count, each broker how much they may."""
    changes: dict[ConfigResource, list[ConfigChange]] = {}
    for topic, of_topic in moves.items():
        lists = {LEADER_REPLICAS: throttled_replicas(of_topic, True)}
        lists[FOLLOWER_REPLICAS] = throttled_replicas(of_topic, False)
        changes[ConfigResource(TOPIC, topic)] = [ConfigChange(name, value) for name, value in lists.items()]
    _alter_configs(admin, changes)
    _set_on_brokers(admin, brokers_of(moves), {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)})


def _set_on_brokers(admin: Admin, brokers: list[int], values: dict[str, str]) -> None:
    operations = [ConfigChange(name, value) for name, value in values.items()]
    _alter_configs(admin, {ConfigResource(BROKER, str(broker)): operations for broker in brokers})


def _alter_configs(admin: Admin, changes: dict[ConfigResource, list[ConfigChange]]) -> None:
    if not changes:
        return
    for outcome in admin.incremental_alter_configs(changes).values():
        if outcome.error is not None:
            raise _wrapped(outcome.error, "incrementalAlterConfigs")


def _alter(admin: Admin, changes: dict[TopicPartition, list[int] | None], may_change_factor: bool) -> str:
    """Starts or, with None, ends reassignments; returns the lines of those that failed."""
    outcomes = ask(
        "alterPartitionReassignments", lambda: admin.alter_partition_reassignments(changes, may_change_factor)
    )
    failed = {partition: outcome.error for partition, outcome in outcomes.items() if outcome.error is not None}
    lines = [f"{partition}: {java_failure(failed[partition]).message}" for partition in sorted(failed)]
    return "\n".join(lines)


def _move(admin: Admin, wanted: dict[TopicPartitionReplica, str], timeout_ms: int) -> None:
    """Moves replicas between directories; a replica that is not there yet is tried again until the time is over."""
    pending = dict(wanted)
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        outcomes = admin.alter_replica_log_dirs(pending)
        started = []
        for replica, outcome in outcomes.items():
            error = outcome.error
            if error is None:
                started.append(replica)
            elif error.name != "REPLICA_NOT_AVAILABLE":
                name = f"{replica.topic}-{replica.partition}-{replica.broker_id}"
                raise JavaFailure(
                    COMMAND_FAILED, f"Failed to alter dir for {name}", _wrapped(error, "alterReplicaLogDirs")
                )
        for replica in started:
            target = f"{pending[replica]} for replica {replica.topic}-{replica.partition}"
            print(f"Successfully started moving log directory to {target} with broker {replica.broker_id} ")
        pending = {replica: path for replica, path in pending.items() if replica not in started}
        if not pending:
            return
        if time.monotonic() >= deadline:
            text = f"Timed out before log directory move{_s(len(pending))} could be started for: {_replicas(pending)}"
            raise JavaFailure(TERSE, text)
        time.sleep(RETRY_S)


def _replica(replica: TopicPartitionReplica) -> str:
    return f"{replica.topic}-{replica.partition}-{replica.broker_id}"


def _replicas(replicas: Iterable[TopicPartitionReplica]) -> str:
    return _list(_replica(each) for each in sorted(replicas, key=lambda each: (each.broker_id, *each[:2])))


# verify


def verify(admin: Admin, text: str, preserve_throttles: bool) -> None:
    plan = parse_plan(text)
    print("Status of partition reassignment:")
    going_on = _going_on(admin, [partition for partition, _ in plan.parts])
    active = False
    existing = {topic.name: topic for topic in ask("listTopics", admin.list_topics)}
    for partition, target in sorted(plan.parts):
        topic = existing.get(partition.topic)
        row = topic.partitions.get(partition.partition) if topic is not None else None
        current = going_on[partition].replicas if partition in going_on else list(row.replicas) if row else []
        if partition in going_on and _is_moving(going_on[partition], target):
            active = True
            print(f"Reassignment of partition {partition} is still in progress.")
        elif current == target:
            print(f"Reassignment of partition {partition} is completed.")
        else:
            sets = f"{_list(current)} rather than {_list(target)}"
            print(f"There is no active reassignment of partition {partition}, but replica set is {sets}.")
    moving = _verify_moves(admin, plan)
    if not active and not moving and not preserve_throttles:
        clear_throttles(admin, plan)


def _is_moving(going_on: PartitionReassignment, target: list[int]) -> bool:
    return bool(going_on.adding_replicas or going_on.removing_replicas)


def _verify_moves(admin: Admin, plan: Plan) -> bool:
    """Prints a line for each replica that shall be in a certain directory; says whether one is on its way."""
    lines = []
    moving = False
    states = admin.describe_replica_log_dirs(plan.directories) if plan.directories else {}
    for replica in sorted(plan.directories):
        wanted = plan.directories[replica]
        partition = f"{replica.topic}-{replica.partition}"
        try:
            state = states[replica].get()
        except ClientError as error:
            raise _wrapped(error, "describeReplicaLogDirs") from None
        if state.current_directory is None:
            where = f"is not found in any live log dir on broker {replica.broker_id}"
            lines.append(f"Partition {partition} {where}. There is likely an offline log directory on the broker.")
        elif state.future_directory == wanted:
            moving = True
            lines.append(f"Reassignment of replica {_replica(replica)} is still in progress.")
        elif state.future_directory is not None:
            moving = True
            instead = f"is being moved to log dir {state.future_directory} instead of {wanted}"
            lines.append(f"Partition {partition} on broker {replica.broker_id} {instead}.")
        elif state.current_directory == wanted:
            lines.append(f"Reassignment of replica {_replica(replica)} completed successfully.")
        else:
            still = f"is not being moved from log dir {state.current_directory} to {wanted}"
            lines.append(f"Partition {partition} on broker {replica.broker_id} {still}.")
    print("\n".join(lines))
    return moving


def clear_throttles(admin: Admin, plan: Plan) -> None:
    brokers = {broker.id for broker in ask("describeCluster", admin.describe_cluster).brokers}
    brokers |= {broker for _, replicas in plan.parts for broker in replicas}
    print(f"Clearing broker-level throttles on broker{_s(len(brokers))} {_list(sorted(brokers))}")
    delete_throttles(admin, sorted(brokers), [])
    topics = sorted({partition.topic for partition, _ in plan.parts})
    print(f"Clearing topic-level throttles on topic{_s(len(topics))} {_list(topics)}")
    delete_throttles(admin, [], topics)


def delete_throttles(admin: Admin, brokers: list[int], topics: list[str]) -> None:
    rates = [_delete(name) for name in (LEADER_RATE, FOLLOWER_RATE, DIRECTORY_RATE)]
    lists = [_delete(name) for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
    changes = {ConfigResource(BROKER, str(broker)): rates for broker in brokers}
    _alter_configs(admin, changes | {ConfigResource(TOPIC, topic): lists for topic in topics})


def _delete(name: str) -> ConfigChange:
    from moldau.client.admin import DELETE

    return ConfigChange(name, None, DELETE)


# cancel


def cancel(admin: Admin, text: str, preserve_throttles: bool, timeout_ms: int) -> None:
    plan = parse_plan(text)
    going_on = _going_on(admin, [partition for partition, _ in plan.parts])
    active = {partition for partition, row in going_on.items() if row.adding_replicas or row.removing_replicas}
    if active:
        errors = _alter(admin, dict.fromkeys(sorted(active)), True)
        if errors:
            raise JavaFailure(TERSE, f"Error cancelling partition reassignment{_s(len(active))} for:\n{errors}")
        print(f"Successfully cancelled partition reassignment{_s(len(active))} for: {_list(sorted(active))}")
    else:
        print("None of the specified partition reassignments are active.")
    moving = _moving_back(admin, plan)
    if moving:
        _move(admin, moving, timeout_ms)
    else:
        print("None of the specified partition moves are active.", end="")
    if not preserve_throttles:
        clear_throttles(admin, plan)


def _moving_back(admin: Admin, plan: Plan) -> dict[TopicPartitionReplica, str]:
    """A move between directories ends when the replica is told to go where it is."""
    states = admin.describe_replica_log_dirs(plan.directories) if plan.directories else {}
    found = {replica: outcome.get() for replica, outcome in states.items() if outcome.error is None}
    return {
        replica: state.current_directory
        for replica, state in found.items()
        if state.future_directory is not None and state.current_directory is not None
    }
