"""What the active controller does by itself: fences the silent, keeps the log moving, gives leaderships back.

The node asks for one duty after the other (`take`) and appends what each decides before it asks again, so that a duty
always sees what the one before it changed. Kafka keeps the same in PeriodicTaskControlManager.
"""

from __future__ import annotations

from typing import Final

from moldau.controller.brokers import Brokers
from moldau.controller.delegation_tokens import SECRET_KEY, DelegationTokens
from moldau.controller.leadership import Leadership
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.metadata.delta import MetadataDelta
from moldau.protocol.stored.metadata_records import NoOpRecord
from moldau.records.clocks import NEVER_MS

ELECTIONS_PER_BATCH_MAX: Final = 1000
TOKEN_CHECK_KEY: Final = "delegation.token.expiry.check.interval.ms"
UNCLEAN_KEY: Final = "unclean.leader.election.enable"


class Duties:
    def __init__(
        self, state: ControllerState, brokers: Brokers, leadership: Leadership, tokens: DelegationTokens
    ) -> None:
        self.state = state
        self.brokers = brokers
        self.leadership = leadership
        self.tokens = tokens
        self._tokens_ms = NEVER_MS
        self._no_op_ms = NEVER_MS
        self._balance_ms = NEVER_MS
        self._unclean_ms = NEVER_MS

    def activate(self, now_ms: int) -> None:
        """The controller takes over: every interval begins now."""
        config = self.state.config
        self.brokers.activate(now_ms)
        if config.get_int("metadata.max.idle.interval.ms") > 0:
            self._no_op_ms = now_ms + config.get_int("metadata.max.idle.interval.ms")
        if config.get_bool("auto.leader.rebalance.enable"):
            self._balance_ms = now_ms + 1000 * config.get_int("leader.imbalance.check.interval.seconds")
        self._unclean_ms = now_ms + config.get_int("unclean.leader.election.interval.ms")
        if config.get_str(SECRET_KEY):
            self._tokens_ms = now_ms + config.get_int(TOKEN_CHECK_KEY)

    def next_ms(self, now_ms: int) -> int:
        """When `take` will have something to do."""
        expiry = self.brokers.next_expiry_ms(now_ms)
        due = min(self._no_op_ms, self._balance_ms, self._unclean_ms, self._tokens_ms)
        return due if expiry is None else min(due, expiry)

    def take(self, now_ms: int) -> Result | None:
        """The next thing that is due, or None."""
        expiry = self.brokers.next_expiry_ms(now_ms)
        if expiry is not None and now_ms >= expiry:
            return self.brokers.fence_stale(now_ms)
        if now_ms >= self._unclean_ms:
            return self._elect_unclean(now_ms)
        if now_ms >= self._balance_ms:
            return self._balance(now_ms)
        if now_ms >= self._tokens_ms:
            return self._remove_tokens(now_ms)
        if now_ms >= self._no_op_ms:
            self._no_op_ms = now_ms + self.state.config.get_int("metadata.max.idle.interval.ms")
            return no_op()
        return None

    def on_replayed(self, delta: MetadataDelta) -> None:
        """An unclean election that was just allowed is held at once."""
        if any(UNCLEAN_KEY in changes for changes in delta.changed_configs.values()):
            self._unclean_ms = 0

    def _elect_unclean(self, now_ms: int) -> Result:
        records, has_more = self.leadership.elect_unclean(ELECTIONS_PER_BATCH_MAX)
        interval_ms = self.state.config.get_int("unclean.leader.election.interval.ms")
        self._unclean_ms = now_ms + _pause_ms(records, has_more, interval_ms)
        return Result(records)

    def _balance(self, now_ms: int) -> Result:
        records, has_more = self.leadership.balance(ELECTIONS_PER_BATCH_MAX)
        interval_ms = 1000 * self.state.config.get_int("leader.imbalance.check.interval.seconds")
        self._balance_ms = now_ms + _pause_ms(records, has_more, interval_ms)
        return Result(records)

    def _remove_tokens(self, now_ms: int) -> Result:
        records, has_more = self.tokens.remove_expired(now_ms)
        self._tokens_ms = now_ms + _pause_ms(records, has_more, self.state.config.get_int(TOKEN_CHECK_KEY))
        return Result(records)


def _pause_ms(records: list[VersionedRecord], has_more: bool, interval_ms: int) -> int:
    """Others get their turn between the batches of a large election."""
    return 1 if has_more and records else interval_ms


def no_op() -> Result:
    """Keeps the log moving while nothing happens, so that a lagging follower can be told from an idle one."""
    return Result([(NoOpRecord(), 0)])
