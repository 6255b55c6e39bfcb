"""Where a transactional producer is, and where it may go from there."""

from __future__ import annotations

from enum import Enum
from typing import Final


class State(Enum):
    """Where a transactional producer is."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    PREPARED = "prepared"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "abortable error"
    FATAL_ERROR = "fatal error"


# State to the states that may follow it. Responses may be what they like: an error in any state ends the producer.
SUCCESSORS: Final = {
    State.UNINITIALIZED: (State.INITIALIZING, State.FATAL_ERROR),
    State.INITIALIZING: (
        State.READY,
        State.PREPARED,
        State.UNINITIALIZED,
        State.ABORTABLE_ERROR,
        State.FATAL_ERROR,
    ),
    State.READY: (State.IN_TRANSACTION, State.FATAL_ERROR),
    State.IN_TRANSACTION: (
        State.PREPARED,
        State.COMMITTING,
        State.ABORTING,
        State.ABORTABLE_ERROR,
        State.FATAL_ERROR,
    ),
    State.PREPARED: (State.READY, State.COMMITTING, State.ABORTING, State.ABORTABLE_ERROR, State.FATAL_ERROR),
    State.COMMITTING: (State.READY, State.ABORTABLE_ERROR, State.FATAL_ERROR),
    State.ABORTING: (State.READY, State.IN_TRANSACTION, State.FATAL_ERROR),
    State.ABORTABLE_ERROR: (State.ABORTABLE_ERROR, State.ABORTING, State.FATAL_ERROR),
    State.FATAL_ERROR: (),
}
