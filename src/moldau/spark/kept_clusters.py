"""Connections and metadata live longer than tasks: the next of a worker process finds them as the last has left them.

Only Spark's worker processes keep something, and a minute after their last task Spark ends those. What is kept may be
old, as it may be in a long read: leaders that moved and topics that were created again are found out on the way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from moldau.client.config import ClientConfig
from moldau.client.connection.cluster import Cluster
from moldau.spark.worker_process import is_worker

# Brokers and what is between may drop connections that nobody uses, and topics change: what is older is made anew.
KEEP_SECONDS = 30.0
KEPT_MAX = 8

Key = tuple[tuple[str, str], ...]

_kept: list[tuple[Key, float, Cluster]] = []


def take_cluster(client_config: Mapping[str, str], settings: ClientConfig) -> Cluster:
    """One that the task before has left, or a new one."""
    key = _key(client_config)
    for place, (found, left_at, cluster) in enumerate(_kept):
        if found == key:
            del _kept[place]
            if time.monotonic() - left_at < KEEP_SECONDS:
                cluster.network.poll(0)  # connections that were closed meanwhile are noticed
                return cluster
            cluster.close()
            break
    return Cluster(settings)


def leave_cluster(client_config: Mapping[str, str], cluster: Cluster) -> None:
    """Keeps a cluster for the next task, if nothing is on its way that a later task would not understand."""
    if not is_worker() or any(cluster.network.in_flight_count(row.address) for row in cluster.brokers.values()):
        cluster.close()
        return
    _kept.append((_key(client_config), time.monotonic(), cluster))
    if len(_kept) > KEPT_MAX:
        _kept.pop(0)[2].close()


def _key(client_config: Mapping[str, str]) -> Key:
    return tuple(sorted(client_config.items()))
