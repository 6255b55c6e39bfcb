"""What a consumer was told about its group: id, protocol, timeouts, assignors; checked as Kafka checks it."""

from __future__ import annotations

from typing import NamedTuple

from moldau.client.assignors import Assignor, RebalanceProtocol, find_assignors
from moldau.client.config import ClientConfig
from moldau.client.errors import ConfigError, error_for
from moldau.protocol.errors import INVALID_GROUP_ID

CLASSIC = "classic"
CONSUMER = "consumer"

# Settings that only one of the two protocols has: the broker decides about the others.
_CLASSIC_ONLY = ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms")
_CONSUMER_ONLY = ("group.remote.assignor",)


class GroupSettings(NamedTuple):
    """Everything a member of a group needs to know before it knows its group."""

    group_id: str
    protocol: str = CLASSIC
    instance_id: str | None = None
    assignors: tuple[Assignor, ...] = ()
    rebalance_protocol: RebalanceProtocol = RebalanceProtocol.EAGER
    remote_assignor: str | None = None
    rack: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    # Also the time that a rebalance may take: the user joins it by calling poll().
    max_poll_interval_ms: int = 300_000
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    # Whatever the isolation level, as Java: offsets that a transaction is about to change are waited for.
    require_stable: bool = True


def read_group_settings(config: ClientConfig, strategies: list[object] | None = None) -> GroupSettings:
    """strategies: partition.assignment.strategy where it has assignors of the user's own in it."""
    group_id = config.get_text("group.id")
    if not group_id.strip():
        raise error_for(INVALID_GROUP_ID, "The group.id must not be empty or blank.")
    protocol = config.get_text("group.protocol").lower()
    _check_protocol(config, protocol, strategies is not None)
    session_timeout_ms = config.get_int("session.timeout.ms")
    heartbeat_interval_ms = config.get_int("heartbeat.interval.ms")
    if protocol == CLASSIC and heartbeat_interval_ms >= session_timeout_ms:
        raise ConfigError("heartbeat.interval.ms must be lower than session.timeout.ms.")
    assignors: list[Assignor] = []
    if protocol == CLASSIC:
        assignors = find_assignors(strategies or config.get_text("partition.assignment.strategy"))
    instance_id = config.get_optional("group.instance.id")
    if instance_id is not None:
        check_instance_id(instance_id)
    return GroupSettings(
        group_id,
        protocol,
        instance_id,
        tuple(assignors),
        choose_rebalance_protocol(assignors),
        config.get_optional("group.remote.assignor"),
        config.get_text("client.rack") or None,
        session_timeout_ms,
        heartbeat_interval_ms,
        config.get_int("max.poll.interval.ms"),
        config.get_bool("enable.auto.commit"),
        config.get_int("auto.commit.interval.ms"),
    )


def choose_rebalance_protocol(assignors: list[Assignor]) -> RebalanceProtocol:
    """The latest one that all assignors have: a member cannot know which assignor the group will agree on."""
    common = set(RebalanceProtocol)
    for assignor in assignors:
        common &= set(assignor.protocols)
    if not common:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ConfigError(f"The assignors {names} have no rebalance protocol in common.")
    return max(common, key=lambda item: item.value) if assignors else RebalanceProtocol.COOPERATIVE


def check_instance_id(instance_id: str) -> None:
    """Kafka's rule: a file name of at most 249 characters."""
    fine = all(char.isascii() and (char.isalnum() or char in "._-") for char in instance_id)
    if not instance_id or instance_id in (".", "..") or len(instance_id) > 249 or not fine:
        raise ConfigError(
            f"Invalid value {instance_id!r} for group.instance.id: it must have 1 to 249 letters, digits, '.', '_' or"
            " '-', and must not be '.' or '..'."
        )


def _check_protocol(config: ClientConfig, protocol: str, own_strategies: bool) -> None:
    excluded = _CONSUMER_ONLY if protocol == CLASSIC else _CLASSIC_ONLY
    given = set(config.given)
    if own_strategies:
        given.add("partition.assignment.strategy")
    for name in excluded:
        if name in given:
            raise ConfigError(f"{name} cannot be set when group.protocol={protocol.upper()}.")
