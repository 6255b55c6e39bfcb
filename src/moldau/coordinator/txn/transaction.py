"""One transactional id: its producer, its state, the partitions of its transaction. Plain data, replaced by replay."""

from __future__ import annotations

from typing import Final

EMPTY: Final = 0
ONGOING: Final = 1
PREPARE_COMMIT: Final = 2
PREPARE_ABORT: Final = 3
COMPLETE_COMMIT: Final = 4
COMPLETE_ABORT: Final = 5
DEAD: Final = 6
PREPARE_EPOCH_FENCE: Final = 7

STATE_NAMES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""Dead and PrepareEpochFence are passed in memory only; here, where a step is one turn, nobody ever sees them."""

# State to the states it may follow. An abort that finds nothing open raises the epoch; a producer id that is used up is
# exchanged for another without a change of the state.
PREDECESSORS: Final = {
    EMPTY: (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    ONGOING: (EMPTY, ONGOING, COMPLETE_COMMIT, COMPLETE_ABORT),
    PREPARE_COMMIT: (ONGOING,),
    PREPARE_ABORT: (EMPTY, ONGOING, COMPLETE_COMMIT, COMPLETE_ABORT),
    COMPLETE_COMMIT: (PREPARE_COMMIT, COMPLETE_COMMIT),
    COMPLETE_ABORT: (PREPARE_ABORT, COMPLETE_ABORT),
}

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 0x7FFF
NO_TIMEOUT_MS: Final = 0x7FFFFFFF
"""Of a transaction that somebody outside decides (KIP-939): it never times out."""

TopicPartition = tuple[str, int]


class Transaction:
    """See the module. Verbs make a copy, change that, and have it written."""

    def __init__(self, transactional_id: str, producer_id: int, timeout_ms: int, wall_ms: int) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.previous_producer_id = NO_PRODUCER_ID
        self.next_producer_id = NO_PRODUCER_ID
        self.epoch = NO_EPOCH
        self.next_epoch = NO_EPOCH
        # The epoch before, by which a retry of the same request is known. Not written: a failover forgets it.
        self.last_epoch = NO_EPOCH
        self.timeout_ms = timeout_ms
        self.state = EMPTY
        self.partitions: frozenset[TopicPartition] = frozenset()
        # As they are written: the wall clock's.
        self.start_ms = NO_TIME
        self.updated_ms = wall_ms
        # Since when its timeout counts, on the steady clock. Not written: a coordinator that loads it works it out.
        self.open_since_ms = NO_TIME
        self.client_version = 0

    def successor(self, wall_ms: int) -> Transaction:
        """A copy that may be changed and becomes the next record of this id."""
        other = Transaction(self.transactional_id, self.producer_id, self.timeout_ms, wall_ms)
        other.previous_producer_id = self.producer_id
        other.next_producer_id = self.next_producer_id
        other.epoch = self.epoch
        other.next_epoch = self.next_epoch
        other.last_epoch = self.last_epoch
        other.state = self.state
        other.partitions = self.partitions
        other.start_ms = self.start_ms
        other.open_since_ms = self.open_since_ms
        other.client_version = self.client_version
        return other

    def may_follow(self, known: Transaction) -> bool:
        """Whether this may be the next record of an id. A log may have states that are not in the table."""
        if known.state in PREDECESSORS and known.state not in PREDECESSORS[self.state]:
            return False
        return self.producer_id != known.producer_id or self.epoch >= known.epoch

    def __repr__(self) -> str:
        name = STATE_NAMES[self.state] if 0 <= self.state < len(STATE_NAMES) else str(self.state)
        return f"Transaction({self.transactional_id}, {name}, producer {self.producer_id} in epoch {self.epoch})"

    @property
    def is_preparing(self) -> bool:
        """Decided, and its markers are on their way."""
        return self.state == PREPARE_COMMIT or self.state == PREPARE_ABORT

    @property
    def is_epoch_exhausted(self) -> bool:
        """The last epoch is kept back for fencing."""
        return is_exhausted(self.epoch)

    @property
    def open_producer(self) -> tuple[int, int]:
        """Producer id and epoch of whoever may end the transaction that is open, or was kept for it."""
        if self.next_epoch == NO_EPOCH:
            return self.producer_id, self.epoch
        return self.producer_id if self.next_producer_id == NO_PRODUCER_ID else self.next_producer_id, self.next_epoch

    @property
    def client_producer(self) -> tuple[int, int]:
        """Producer id and epoch that the client uses next: not those of a transaction that was kept for it."""
        if self.next_producer_id != NO_PRODUCER_ID and self.is_preparing:
            return self.next_producer_id, 0
        return self.producer_id, self.epoch


def is_exhausted(epoch: int) -> bool:
    return epoch >= EPOCH_MAX - 1
