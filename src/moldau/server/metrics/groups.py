"""Groups and transactions that this broker coordinates, under the names of Kafka's coordinators."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.coordinator.group.group import CLASSIC, CONSUMER, SHARE, STREAMS
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.runtime import CoordinatorRuntime
from moldau.coordinator.shard import ACTIVE, FAILED, LOADING
from moldau.coordinator.share.machine import ShareMachine
from moldau.node.coordinators import Coordinators
from moldau.node.node import Node
from moldau.protocol.topic_names import SHARE_TOPIC
from moldau.server.metrics.hosted import BLOCK_SIZE
from moldau.server.metrics.metric import COUNTER, GAUGE, Metric
from moldau.server.metrics.rates import Rates
from moldau.server.metrics.spread import average_metrics, spread_metrics

MANAGER = "kafka_coordinator_group_groupmetadatamanager"
GROUPS = "kafka_server_group_coordinator_metrics"
SHARES = "kafka_server_share_coordinator_metrics"
TRANSACTIONS = "kafka_server_transaction_coordinator_metrics"
MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
VERIFICATION = "kafka_server_addpartitionstotxnmanager"

CLASSIC_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
SHARE_STATES = ("Empty", "Stable", "Dead")
STREAMS_STATES = ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead")
SHARD_STATES = {LOADING: "loading", ACTIVE: "active", FAILED: "failed"}


class GroupTotals:
    """Groups by kind and state, over all shards."""

    def __init__(self) -> None:
        self.states = {
            CLASSIC: dict.fromkeys(CLASSIC_STATES, 0),
            CONSUMER: dict.fromkeys(CONSUMER_STATES, 0),
            SHARE: dict.fromkeys(SHARE_STATES, 0),
            STREAMS: dict.fromkeys(STREAMS_STATES, 0),
        }
        self.offsets = 0
        self.share_rebalances = 0

    def count(self, coordinators: Coordinators) -> Iterator[None]:
        for shard in list(coordinators.groups.runtime.shards.values()):
            machine = shard.machine
            if not isinstance(machine, GroupMachine):
                continue
            self.share_rebalances += machine.share.rebalances_total
            state = machine.state
            for number, group in enumerate(list(state.groups.values())):
                states, name = self.states[group.kind], group.state_name()
                states[name] = states.get(name, 0) + 1
                if number % BLOCK_SIZE == BLOCK_SIZE - 1:
                    yield
            # Those that nobody ever joined have offsets and nothing else.
            only_offsets = sum(group_id not in state.groups for group_id in state.offsets.by_group)
            self.states[CLASSIC]["Empty"] += only_offsets
            self.offsets += len(state.offsets)
            yield


def group_metrics(coordinators: Coordinators, rates: Rates, now_ms: int, now_s: float) -> Iterator[Metric | None]:
    totals = GroupTotals()
    for _ in totals.count(coordinators):
        yield None
    classic = totals.states[CLASSIC]
    yield Metric(f"{MANAGER}_numoffsets", GAUGE, "Committed offsets", totals.offsets)
    yield Metric(f"{MANAGER}_numgroups", GAUGE, "Classic groups", sum(classic.values()))
    for state in CLASSIC_STATES:
        about = f"Classic groups in state {state}"
        yield Metric(f"{MANAGER}_numgroups{state.lower()}", GAUGE, about, classic[state])
    by_protocol = Metric(f"{GROUPS}_group_count", GAUGE, "Groups, by protocol")
    for kind, states in totals.states.items():
        by_protocol.values[(("protocol", kind),)] = sum(states.values())
    yield by_protocol
    for kind, about in (
        (CONSUMER, "Groups of the consumer protocol, by state"),
        (SHARE, "Share groups, by state"),
        (STREAMS, "Streams groups, by state"),
    ):
        of_kind = Metric(f"{GROUPS}_{kind}_group_count", GAUGE, about)
        of_kind.values = {(("state", state),): count for state, count in totals.states[kind].items()}
        yield of_kind
    counts = coordinators.groups.settings.counts
    for stem, about, count in (
        ("offset_commit", "Offsets committed", counts.offset_commits),
        ("offset_expiration", "Committed offsets that were too old to keep", counts.offset_expirations),
        ("offset_deletion", "Committed offsets that somebody deleted", counts.offset_deletions),
        ("group_completed_rebalance", "Rebalances of classic groups that were completed", counts.classic_rebalances),
        ("consumer_group_rebalance", "New epochs of groups of the consumer protocol", counts.consumer_rebalances),
        ("share_group_rebalance", "New epochs of share groups", totals.share_rebalances),
        ("streams_group_rebalance", "New epochs of streams groups", counts.streams_rebalances),
    ):
        yield Metric(f"{GROUPS}_{stem}_count", COUNTER, about, count)
        yield Metric(f"{GROUPS}_{stem}_rate", GAUGE, f"{about}, a second", rates.rate(stem, (), count, now_s))
    yield from runtime_metrics(GROUPS, coordinators.groups.runtime, now_ms)


def runtime_metrics(prefix: str, runtime: CoordinatorRuntime, now_ms: int) -> list[Metric]:
    """What every coordinator has: the partitions of its topic that it leads, and how long it loaded them."""
    partitions = Metric(f"{prefix}_num_partitions", GAUGE, "Partitions of the coordinator's topic, by state")
    found = dict.fromkeys(SHARD_STATES.values(), 0)
    for shard in runtime.shards.values():
        state = SHARD_STATES.get(shard.state)
        if state is not None:
            found[state] += 1
    partitions.values = {(("state", state),): count for state, count in found.items()}
    about = "Time that loading a partition of the coordinator's topic took, in ms"
    return [partitions, *average_metrics(f"{prefix}_partition_load_time", about, runtime.load_times, now_ms)]


def share_coordinator_metrics(coordinators: Coordinators, now_ms: int) -> list[Metric]:
    pruned = Metric(f"{SHARES}_last_pruned_offset", GAUGE, "Where the state topic begins")
    writes = 0
    for index, shard in coordinators.shares.runtime.shards.items():
        machine = shard.machine
        if isinstance(machine, ShareMachine):
            writes += machine.writes_total
            labels = (("topic", SHARE_TOPIC), ("partition", str(index)))
            pruned.values[labels] = coordinators.shares.pruned_to.get(index, 0)
    return [
        Metric(f"{SHARES}_write_total", COUNTER, "Writes of share states", writes),
        pruned,
        *runtime_metrics(SHARES, coordinators.shares.runtime, now_ms),
    ]


def transaction_metrics(node: Node, now_ms: int) -> list[Metric]:
    runtime = node.coordinators.transactions.runtime
    about = "Time that loading a partition of the transactions' topic took, in ms"
    verification = node.txn_verification
    return [
        *average_metrics(f"{TRANSACTIONS}_partition_load_time", about, runtime.load_times, now_ms),
        Metric(
            f"{MARKERS}_unknowndestinationqueuesize",
            GAUGE,
            "Ended transactions whose markers wait for a leader to be written to",
            node.txn_markers.without_destination,
        ),
        Metric(f"{MARKERS}_logappendretryqueuesize", GAUGE, "Ended transactions whose end must be written again", 0),
        Metric(
            f"{VERIFICATION}_verificationfailurerate_count",
            COUNTER,
            "Partitions of transactional writes that the coordinator refused",
            verification.failures_total,
        ),
        *spread_metrics(
            f"{VERIFICATION}_verificationtimems",
            "Time until the coordinator's response for a transactional write, in ms",
            {(): verification.times_ms},
            now_ms / 1000,
        ),
    ]
