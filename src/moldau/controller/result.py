"""What a verb of the controller decides: records, and the response that waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.protocol.primitives import Message

VersionedRecord = tuple[Message, int]


@dataclass(slots=True)
class Result:
    """Records to append, and the response (of the verb's API) once they are committed.

    Few enough records are always one batch. More are several batches: in a metadata transaction if `is_atomic`, else
    each stands for itself, in order.
    """

    records: list[VersionedRecord]
    response: Any = None
    is_atomic: bool = True
