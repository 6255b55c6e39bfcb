"""Lines of Apache Kafka's log that tools wait for before they use a broker, testcontainers for one."""

from __future__ import annotations

import time


def ready_lines(node_id: int, is_broker: bool, had_zookeeper: bool, now_s: float | None = None) -> list[str]:
    """In Kafka's order and wording; a broker that had been given a ZooKeeper is waited for by another line."""
    now_s = time.time() if now_s is None else now_s
    lines = [(f"Kafka startTimeMs: {int(now_s * 1000)}", "org.apache.kafka.common.utils.AppInfoParser")]
    if is_broker:
        unfenced = "The broker has been unfenced. Transitioning from RECOVERY to RUNNING."
        lines.insert(0, (f"[BrokerLifecycleManager id={node_id}] {unfenced}", "kafka.server.BrokerLifecycleManager"))
    lines.append((f"[KafkaRaftServer nodeId={node_id}] Kafka Server started", "kafka.server.KafkaRaftServer"))
    if had_zookeeper:
        lines.append((f"[KafkaServer id={node_id}] started", "kafka.server.KafkaServer"))
    stamp = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(now_s))},{int(now_s * 1000) % 1000:03d}"
    return [f"[{stamp}] INFO {text} ({logger})" for text, logger in lines]
