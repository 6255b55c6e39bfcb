"""What a verb of the controller decides: records, and the answer that waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.protocol.primitives import Message

VersionedRecord = tuple[Message, int]


@dataclass(slots=True)
class Result:
    """Records to append, all or nothing, and the response (of the verb's API) once they are committed."""

    records: list[VersionedRecord]
    response: Any = None
