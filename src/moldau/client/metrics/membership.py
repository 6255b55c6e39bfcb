"""What members of groups count: heartbeats, joins, commits, and what rebalances cost."""

from __future__ import annotations

from collections.abc import Callable

from moldau.client.metrics.window import Tally, Window
from moldau.protocol.messages.join_group_request import JoinGroupRequest
from moldau.protocol.messages.sync_group_request import SyncGroupRequest
from moldau.protocol.primitives import Message


class GroupMeter:
    """What a member of a group asks its coordinator, and what rebalances cost."""

    def __init__(self, window: Window, clock: Callable[[], int]) -> None:
        self.now_ms = clock
        self.heartbeats_ms = Tally(window)
        self.joins_ms = Tally(window)
        self.syncs_ms = Tally(window)
        self.commits_ms = Tally(window)
        self.rebalances_ms = Tally(window)
        self.failed_rebalances = Tally(window)
        # By the listener's method.
        self.listener_ms = {name: Tally(window) for name in ("revoked", "assigned", "lost")}
        self.heartbeat_sent_ms: int | None = None
        self.rebalanced_ms: int | None = None
        self._rebalancing_since_ms: int | None = None

    def on_request(self, request: Message) -> None:
        if "Heartbeat" in type(request).__name__:
            self.heartbeat_sent_ms = self.now_ms()

    def on_response(self, request: Message, latency_ms: int) -> None:
        """The coordinator responded without an error."""
        if isinstance(request, JoinGroupRequest):
            self.joins_ms.record(latency_ms)
        elif isinstance(request, SyncGroupRequest):
            self.syncs_ms.record(latency_ms)
        elif "Heartbeat" in type(request).__name__:
            self.heartbeats_ms.record(latency_ms)

    def begin_rebalance(self) -> None:
        """One that goes on already and begins again has failed before."""
        if self._rebalancing_since_ms is None:
            self._rebalancing_since_ms = self.now_ms()
        else:
            self.failed_rebalances.add(1)

    def end_rebalance(self, failed: bool = False) -> None:
        if self._rebalancing_since_ms is None:
            return
        since_ms, self._rebalancing_since_ms = self._rebalancing_since_ms, None
        if failed:
            self.failed_rebalances.add(1)
            return
        self.rebalanced_ms = self.now_ms()
        self.rebalances_ms.record(self.rebalanced_ms - since_ms)

    def on_listener(self, name: str, began_ms: int) -> None:
        self.listener_ms[name].record(max(0, self.now_ms() - began_ms))
