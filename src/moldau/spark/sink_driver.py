"""What the driver does at the end of a batch: decides, writes the decision down, and ends all transactions by it.

The order is the protocol (docs/spark-sink.md): take over, read, decide, write, commit, abort what is left, write that
it is done. Each step may be the last before a crash, and a repetition of all of them gives the same result.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence

from moldau.client import Admin
from moldau.client.results import PreparedTransaction
from moldau.protocol import errors as codes
from moldau.spark.decisions import (
    SinkError,
    SinkState,
    SinkTransaction,
    Written,
    complete,
    decide,
    is_decided,
    leftovers,
    run_prefix,
)
from moldau.spark.sink_log import DecisionLog, TakenOver
from moldau.spark.sink_options import IGNORE, WriteOptions

logger = logging.getLogger("moldau.spark")

ONGOING = "Ongoing"
# After a failure Spark ends the other tasks of the batch one by one, and they may still begin transactions: one looks
# for them until none was open so many times.
ABORT_QUIET_LOOKS = 10
ABORT_LOOKS_MAX = 50
ABORT_PAUSE_SECONDS = 0.2
# The coordinator's ways to say that this transaction is not open any more.
_ENDED_BY_OTHERS = frozenset(
    {
        codes.PRODUCER_FENCED,
        codes.INVALID_PRODUCER_EPOCH,
        codes.INVALID_TXN_STATE,
        codes.INVALID_PRODUCER_ID_MAPPING,
        codes.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


class SinkDriver:
    """Ends the batches of one query; to be closed, or used with `with`."""

    def __init__(self, options: WriteOptions, sink: str, admin: Admin | None = None) -> None:
        self._options = options
        self._sink = sink
        self._ids = f"{options.id_prefix}.{sink}."
        self._timeout_ms = int(options.producer_config["max.block.ms"])
        self._log = DecisionLog(options.contact_config, options.decision_topic, sink, self._timeout_ms, admin)
        self._admin = self._log.admin
        # What is written down last, while nobody else has taken over; whether that is so, only a write tells.
        self._state: SinkState | None = None
        self._is_decider = False

    def close(self) -> None:
        self._log.close()

    def __enter__(self) -> SinkDriver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def commit(self, batch: int, messages: Sequence[Written]) -> None:
        """Commits what the tasks of a batch have written; rolls forward where the batch was decided before."""
        written = [message.transaction for message in messages if message.transaction is not None]
        if not written and not any(message.is_skipped for message in messages):
            return
        two_phase = all(message.two_phase for message in messages if message.transaction is not None)
        if self._is_decider:
            try:
                self._commit(batch, written, two_phase)
                return
            except TakenOver:
                # Another process of the driver has decided since, or another run.
                self._is_decider = False
        self._take_over()
        self._commit(batch, written, two_phase)

    def _commit(self, batch: int, written: Sequence[SinkTransaction], two_phase: bool) -> None:
        state = self._state
        try:
            was_decided = is_decided(state, batch)
        except SinkError:
            self._end_exactly(written, commit=False)
            raise
        open_names = self._open_names()
        if was_decided:
            assert state is not None
            self._end_exactly([item for item in written if item not in state.transactions], commit=False)
            if not state.is_done:
                logger.info("Batch %d was decided before: it is rolled forward.", batch)
                self._carry_out(state, open_names)
            return
        if state is not None and not state.is_done:
            # Spark goes on only after a commit, so that this takes a checkpoint that was tampered with.
            self._carry_out(state, open_names)
        if not two_phase:
            self._check_alive(written)
        decided = decide(self._state, batch, written, open_names)
        self._write(decided)
        self._carry_out(decided, open_names)

    def abort(self, batch: int, messages: Sequence[Written], run: str) -> None:
        """Aborts what the tasks of a batch have written, unless it is decided: then a later commit ends it.

        Spark calls this also where commit() failed, and nobody knows at which step. run: the one that failed; what its
        attempts without a report have left open goes as well, for nobody else can decide on it.
        """
        self._take_over()
        decided = () if self._state is None else self._state.transactions
        written = [message.transaction for message in messages if message.transaction is not None]
        self._end_exactly([item for item in written if item not in decided], commit=False)
        kept = {item.name for item in decided}
        quiet = 0
        for _ in range(ABORT_LOOKS_MAX):
            names = {name for name in self._open_names() if name.startswith(run_prefix(batch, run))} - kept
            self._fence(names)
            quiet = 0 if names else quiet + 1
            if quiet == ABORT_QUIET_LOOKS:
                return
            time.sleep(ABORT_PAUSE_SECONDS)

    # Steps

    def _take_over(self) -> None:
        self._state = self._log.take_over(self._options.id_prefix)
        self._is_decider = True

    def _write(self, state: SinkState) -> None:
        self._log.write(state)
        self._state = state

    def _carry_out(self, decided: SinkState, open_names: Collection[str]) -> None:
        """Commits the transactions of a decision, aborts what it leaves behind, and writes down that it is done."""
        following = self._end_exactly(decided.transactions, commit=True)
        missing = [item for item in decided.transactions if item.name not in following]
        if missing:
            current = self._log.read()
            if current is not None and (current.batch > decided.batch or current.is_done):
                return  # another run of the same query has carried it out
            self._report_lost(decided, missing)
        self._fence(leftovers(decided, open_names))
        self._write(complete(decided, following))
        # Tasks of the next batch read it: it must be there for them.
        self._log.read()

    def _end_exactly(
        self, transactions: Sequence[SinkTransaction], commit: bool
    ) -> dict[str, PreparedTransaction | None]:
        """Ends these transactions and no others of the same ids; gives those of which it is known."""
        if not transactions:
            return {}
        ids = {self._ids + item.name: item for item in transactions}
        prepared = {id_: item.prepared for id_, item in ids.items()}
        outcomes = self._admin.end_transactions(prepared, commit, self._timeout_ms)
        ended: dict[str, PreparedTransaction | None] = {}
        for id_, outcome in outcomes.items():
            if outcome.error is None:
                ended[ids[id_].name] = outcome.get()
            elif outcome.error.code not in _ENDED_BY_OTHERS:
                raise outcome.error
        return ended

    def _report_lost(self, decided: SinkState, lost: Sequence[SinkTransaction]) -> None:
        names = ", ".join(self._ids + item.name for item in lost)
        sentence = (
            f"Batch {decided.batch} was committed, but brokers have aborted {len(lost)} of its"
            f" {len(decided.transactions)} transactions before they heard of it ({names}): their timeout was over, or"
            " somebody has terminated them. The records of these tasks are missing from the topics."
        )
        if self._options.on_lost == IGNORE:
            logger.error("%s The query goes on, as onLostTransactions=ignore says.", sentence)
            return
        raise SinkError(
            f"{sentence} Write them again from the source, then start the query once with onLostTransactions=ignore."
        )

    def _open_names(self) -> set[str]:
        """The transactions of this query that are open now, whoever has begun them."""
        listed = self._admin.list_transactions(states=[ONGOING], timeout_ms=self._timeout_ms)
        return {
            item.transactional_id.removeprefix(self._ids)
            for item in listed.get()
            if item.transactional_id.startswith(self._ids)
        }

    def _fence(self, names: Collection[str]) -> None:
        """Aborts what attempts have left behind that failed, lost or were forgotten."""
        if not names:
            return
        logger.info("%d transactions that no decision names are aborted.", len(names))
        for id_, outcome in self._admin.fence_producers([self._ids + name for name in names], self._timeout_ms).items():
            if outcome.error is not None:
                logger.warning("The transaction %s could not be aborted: %s", id_, outcome.error.message)

    def _check_alive(self, written: Sequence[SinkTransaction]) -> None:
        """Without two-phase commit transactions may be over by now, and then nothing of the batch must count."""
        ids = {self._ids + item.name: item for item in written}
        for id_, outcome in self._admin.describe_transactions(list(ids), self._timeout_ms).items():
            found = outcome.get()
            item = ids[id_]
            if found.state != ONGOING or (found.producer_id, found.producer_epoch) != item[1:]:
                raise SinkError(
                    f"The transaction {id_} is over before the batch is ({found.state}): it took longer than"
                    f" {self._options.transaction_timeout_ms} ms. Nothing was committed. Make batches smaller, raise"
                    " kafka.transaction.timeout.ms, or switch two-phase commit on in the brokers."
                )


# Spark makes a writer for each commit, and often in a process that has committed before: its connections are kept, and
# as long as nobody else has decided, what it has written last is the newest decision.
_kept: tuple[str, SinkDriver] | None = None


def commit_batch(options: WriteOptions, sink: str, batch: int, messages: Sequence[Written]) -> None:
    """Commits with the driver that this process has kept, if it has one."""
    global _kept
    key = f"{sink} {options.identity}"
    kept, _kept = _kept, None
    if kept is not None and kept[0] != key:
        kept[1].close()
        kept = None
    driver = SinkDriver(options, sink) if kept is None else kept[1]
    try:
        driver.commit(batch, messages)
    except BaseException:
        driver.close()
        raise
    _kept = (key, driver)
