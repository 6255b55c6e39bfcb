"""Waits until a broker offers to take metrics, and has them pushed from then on; costs nothing where none does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.client.errors import ConfigError, RequestTimeoutError, UnsupportedVersionError
from moldau.client.metrics.names import Metrics
from moldau.protocol.api_table import GET_TELEMETRY_SUBSCRIPTIONS

if TYPE_CHECKING:
    from moldau.client.config import ClientConfig
    from moldau.client.connection.cluster import Cluster
    from moldau.client.telemetry.pushing import Pushing

SETTING = "enable.metrics.push"
CLOSE_MS_MAX = 1000


class Telemetry:
    """That of one client, from its making until it is closed."""

    def __init__(self, config: ClientConfig, cluster: Cluster, metrics: Callable[[], Metrics]) -> None:
        self._config = config
        self._metrics = metrics
        self._lock = threading.Lock()
        self._pushing: Pushing | None = None
        self._has_heard = threading.Event()  # what a broker offers
        self._is_closed = False
        self.is_on = config.get_bool(SETTING)
        if self.is_on:
            cluster.meter.on_versions = self._on_versions

    def _on_versions(self, offered: dict[int, tuple[int, int]]) -> None:
        """Called by whichever thread drives the client's network."""
        if self._pushing is None and GET_TELEMETRY_SUBSCRIPTIONS in offered:
            from moldau.client.telemetry.pushing import Pushing

            with self._lock:
                if self._pushing is None and not self._is_closed:
                    self._pushing = Pushing(self._config, self._metrics)
        self._has_heard.set()

    def instance_id(self, timeout_ms: int) -> bytes:
        """The id that brokers know this client's metrics by; waits for it."""
        if not self.is_on:
            raise ConfigError(f"Telemetry is not enabled: set {SETTING} to true.")
        end_s = time.monotonic() + timeout_ms / 1000
        if not self._has_heard.wait(timeout_ms / 1000):
            raise RequestTimeoutError("No broker was connected to within the timeout.")
        pushing = self._pushing
        if pushing is None:
            raise UnsupportedVersionError("No broker that this client is connected to offers to take its metrics.")
        return pushing.instance_id(max(0.0, end_s - time.monotonic()))

    def close(self, timeout_ms: int | None = None) -> None:
        """Pushes a last time, within a moment; to be called while what is measured is still there."""
        with self._lock:
            self._is_closed = True
            pushing, self._pushing = self._pushing, None
        if pushing is not None:
            pushing.close(CLOSE_MS_MAX if timeout_ms is None else min(CLOSE_MS_MAX, timeout_ms))
