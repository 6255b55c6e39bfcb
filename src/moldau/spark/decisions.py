"""What the exactly-once sink remembers of a query: which batch is decided, by which transactions; and the rules for it.

A `SinkState` is one record of the decision topic; the last one counts. Everything here is a pure function of states,
and docs/spark-sink.md says why the rules are safe. A transaction has a name of its own below the query's: the batch
that it was made for and something that nobody else has, as in `17.3-9f2c61d0a4b8`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from moldau.client.results import PreparedTransaction

FORMAT_VERSION = 1
# A transactional id that no task has used in so many batches belongs to a process that is gone.
IDLE_BATCHES_MAX = 20

_NAME = re.compile(r"(\d+)\.[0-9a-z-]+")


class SinkError(RuntimeError):
    """The sink cannot go on; the message is a sentence that says what to do."""


class SinkTransaction(NamedTuple):
    """A transaction that a task has written and handed over."""

    name: str
    producer_id: int
    producer_epoch: int

    @property
    def prepared(self) -> PreparedTransaction:
        return PreparedTransaction(self.producer_id, self.producer_epoch)


@dataclass(frozen=True)
class Written:
    """What a task reports to the driver."""

    sink: str
    batch: int
    run: str
    rows: int = 0
    bytes: int = 0
    # None: nothing was written.
    transaction: SinkTransaction | None = None
    two_phase: bool = False
    # The batch had been decided before.
    is_skipped: bool = False


class Lease(NamedTuple):
    """A transactional id that may be used again, with the producer id and epoch of its next transaction."""

    name: str
    producer_id: int
    producer_epoch: int
    last_batch: int

    @property
    def following(self) -> PreparedTransaction:
        return PreparedTransaction(self.producer_id, self.producer_epoch)


@dataclass(frozen=True)
class SinkState:
    """The newest decision of a query. Until it is done, each of its transactions is to be committed."""

    batch: int
    is_done: bool
    transactions: tuple[SinkTransaction, ...] = ()
    leases: tuple[Lease, ...] = ()

    def to_bytes(self) -> bytes:
        fields = {
            "version": FORMAT_VERSION,
            "batch": self.batch,
            "state": "done" if self.is_done else "decided",
            "transactions": self.transactions,
            "leases": self.leases,
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(data: bytes) -> SinkState:
        try:
            fields = json.loads(data)
            version = int(fields["version"])
            if version > FORMAT_VERSION:
                raise SinkError(
                    f"The decision topic has a record of format {version}, and this version of Moldau knows up to"
                    f" {FORMAT_VERSION}: run the query with the newer version that wrote it."
                )
            return SinkState(
                int(fields["batch"]),
                fields["state"] == "done",
                tuple(SinkTransaction(str(name), int(id_), int(epoch)) for name, id_, epoch in fields["transactions"]),
                tuple(Lease(str(name), int(id_), int(epoch), int(last)) for name, id_, epoch, last in fields["leases"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise SinkError(
                f"A record of the decision topic is no decision ({error}): does somebody else write to that topic?"
            ) from None


def transaction_name(batch: int, run: str, partition: int, attempt: str) -> str:
    """run: hexadecimal digits that no other run of the batch has; attempt: the same for attempts of the task."""
    return f"{run_prefix(batch, run)}{partition}-{attempt}"


def run_prefix(batch: int, run: str) -> str:
    """What the names begin with that one run of a batch has made."""
    return f"{batch}.{run}-"


def batch_of(name: str) -> int | None:
    """The batch that a transaction's name was made for, None for a name that is not of this kind."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[1])


def is_decided(state: SinkState | None, batch: int) -> bool:
    """Whether the batch needs no writing any more; raises where the query has gone back behind its own decisions."""
    if state is None or batch > state.batch:
        return False
    if batch == state.batch:
        return True
    raise SinkError(
        f"Batch {batch} is to be written, but batch {state.batch} was committed already: the checkpoint is older than"
        " the topics, as after it was restored from a copy. Start the query with a new checkpoint location, from the"
        " offsets that are to be processed next."
    )


def decide(
    state: SinkState | None, batch: int, written: Sequence[SinkTransaction], open_names: Collection[str]
) -> SinkState:
    """The decision to commit what was written. open_names: transactions of the query that are open now."""
    names = {item.name for item in written}
    idle = () if state is None else state.leases
    leases = tuple(
        lease
        for lease in idle
        if lease.name not in names and lease.name not in open_names and batch - lease.last_batch <= IDLE_BATCHES_MAX
    )
    return SinkState(batch, False, tuple(written), leases)


def complete(decided: SinkState, following: Mapping[str, PreparedTransaction | None]) -> SinkState:
    """The decision is carried out. following: id and epoch after it, None for one that is not to be used again."""
    leases = list(decided.leases)
    for item in decided.transactions:
        told = following.get(item.name)
        if told is not None:
            leases.append(Lease(item.name, told.producer_id, told.producer_epoch, decided.batch))
    return replace(decided, is_done=True, transactions=(), leases=tuple(leases))


def leftovers(decided: SinkState, open_names: Collection[str]) -> list[str]:
    """What is open, belongs to the decided batch or an earlier one and is not part of any decision: never will be."""
    kept = {item.name for item in decided.transactions} | {lease.name for lease in decided.leases}
    found = []
    for name in open_names:
        made_for = batch_of(name)
        if made_for is not None and made_for <= decided.batch and name not in kept:
            found.append(name)
    return sorted(found)
