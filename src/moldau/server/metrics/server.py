"""The node as a whole: its state, how busy its loop is, and what it has under way to the controller."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.net.listener_group import ListenerGroup
from moldau.net.turns import Turns
from moldau.node.node import Node
from moldau.server.metrics.metric import COUNTER, GAUGE, Metric, percent

NOT_RUNNING, STARTING, RECOVERY, RUNNING, PENDING_CONTROLLED_SHUTDOWN, SHUTTING_DOWN = 0, 1, 2, 3, 6, 7
"""Kafka's BrokerState."""

HANDLERS = "kafka_server_kafkarequesthandlerpool"
SOCKETS = "kafka_network_socketserver"
FORWARDING = "kafka_server_forwardingmanager"


def state_metrics(node: Node, is_stopping: bool) -> list[Metric]:
    about = "0 not running, 1 starting, 2 recovery, 3 running, 6 pending controlled shutdown, 7 shutting down"
    return [Metric("kafka_server_kafkaserver_brokerstate", GAUGE, about, broker_state(node, is_stopping))]


def broker_state(node: Node, is_stopping: bool) -> int:
    lifecycle = node.lifecycle
    if lifecycle.is_leaving:
        return PENDING_CONTROLLED_SHUTDOWN
    if is_stopping:
        return SHUTTING_DOWN
    if node.is_ready:
        return RUNNING
    return RECOVERY if lifecycle.was_registered else STARTING


def idle_metrics(node: Node, turns: Turns, groups: Iterable[ListenerGroup], up_s: float) -> list[Metric]:
    """One loop does what Kafka has network threads and handlers for: they are all as idle as it is."""
    busy = min(1.0, turns.busy_seconds / up_s) if up_s > 0 else 0.0
    idle = round(1.0 - busy, 6)
    about = "Share of the time since the start in which the event loop had nothing to do"
    metrics = [
        Metric(
            f"{HANDLERS}_requesthandleravgidle_percent",
            GAUGE,
            about,
            idle,
            confluent=f"{HANDLERS}_requesthandleravgidlepercent_total",
        ),
        percent(f"{SOCKETS}_networkprocessoravgidle", about, idle),
        Metric("kafka_server_raftmetrics_poll_idle_ratio_avg", GAUGE, about, idle),
    ]
    if node.is_broker:
        metrics.append(percent(f"{HANDLERS}_brokerrequesthandleravgidle", about, idle))
    if node.config.is_controller:
        metrics.append(Metric("kafka_controller_controllereventmanager_avgidleratio", GAUGE, about, idle))
        metrics.append(percent(f"{HANDLERS}_controllerrequesthandleravgidle", about, idle))
    processor = percent("kafka_network_processor_idle", about)
    processor.values[(("networkProcessor", "0"),)] = idle
    blocked = percent(
        "kafka_network_acceptor_acceptorblocked", "Share of the time in which a limit kept clients waiting"
    )
    expired = 0
    for group in groups:
        for listener in group.listeners:
            share = listener.blocked_ms_total / 1000 / up_s if up_s > 0 else 0.0
            blocked.values[(("listener", listener.name),)] = round(min(1.0, share), 6)
            if listener.gate_keeper is not None:
                expired += listener.gate_keeper.expired_total
    killed = Metric(
        f"{SOCKETS}_expiredconnectionskilledcount",
        COUNTER,
        "Connections closed because their session was over",
        expired,
    )
    prefix = "kafka_server_socket_server_metrics"
    loop = [
        Metric(
            f"{prefix}_io_ratio", GAUGE, "Share of the time since the start in turns of the event loop", round(busy, 6)
        ),
        Metric(f"{prefix}_io_wait_ratio", GAUGE, about, idle),
        Metric(f"{prefix}_select_total", COUNTER, "Turns of the event loop", turns.turns_total),
        Metric(
            f"{prefix}_io_time_ns_avg",
            GAUGE,
            "Mean time of a turn of the event loop, in ns",
            int(1e9 * turns.busy_seconds / max(1, turns.turns_total)),
        ),
    ]
    return [*metrics, processor, blocked, killed, *loop]


def forwarding_metrics(node: Node, now_ms: int) -> list[Metric]:
    """Requests that this broker passes on to the active controller."""
    forwarding = node.forwarding
    metrics = [
        Metric(f"{FORWARDING}_queuelength", GAUGE, "Requests on their way to the controller", forwarding.open_requests)
    ]
    found = forwarding.remote_ms.quantiles([0.99, 0.999], now_ms / 1000) or [0.0, 0.0]
    for part, value in zip(("p99", "p999"), found, strict=True):
        about = "Time until the controller's response, in ms"
        metrics.append(Metric(f"{FORWARDING}_remotetimems_{part}", GAUGE, about, value))
        metrics.append(Metric(f"{FORWARDING}_queuetimems_{part}", GAUGE, "Time before sending; it is done at once", 0))
    return metrics
