"""What can become of a record in a share partition: its states and the ways from one to another; acknowledgement types.

    not in flight ──acquire──> ACQUIRED ──accept──────────────> ACKNOWLEDGED
                                │  ^  └─reject, gap, limit────> ARCHIVED (with a dead letter topic: ARCHIVING before)
              release, timeout, │  │                              ^
              end of session    v  │ acquire (count + 1)          │ log start, compaction, aborted transaction
                              AVAILABLE ─────────────────────────┘

ACKNOWLEDGED and ARCHIVED are final. A record that is rejected or was delivered as often as allowed is ARCHIVING, which
is stored, until its dead letter is written; a gap gets none. Kafka: RecordState, AcknowledgeType.
"""

from __future__ import annotations

from typing import Final

AVAILABLE: Final = 0
ACQUIRED: Final = 1  # never stored: whoever loads the state finds such a record available
ACKNOWLEDGED: Final = 2
ARCHIVING: Final = 3
ARCHIVED: Final = 4

SUCCESSORS: Final[dict[int, tuple[int, ...]]] = {
    AVAILABLE: (ACQUIRED, ARCHIVED),
    ACQUIRED: (AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED),
    ACKNOWLEDGED: (),
    ARCHIVING: (ARCHIVED,),
    ARCHIVED: (),
}

# Why a record is ARCHIVING; of one that was loaded nobody knows.
UNKNOWN_CAUSE: Final = 0
REJECTED: Final = 1
DELIVERED_TOO_OFTEN: Final = 2

GAP: Final = 0
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4


def is_final(state: int) -> bool:
    return state in (ACKNOWLEDGED, ARCHIVED)
