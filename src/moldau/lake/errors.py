"""What the lake raises on purpose: each message is a sentence that says what to do."""

from __future__ import annotations

from moldau.client.errors import ClientError
from moldau.protocol.errors import INVALID_REQUEST


class LakeError(ClientError):
    """Something about a table, a load or a pipeline that people can mend."""

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_REQUEST, message)


class LostRaceError(LakeError):
    """Another writer moved the table's positions since they were read: nothing of this round was committed."""


class NoTableError(LakeError):
    """There is no table, or only the beginning of one that a kill left behind."""


class CommitConflict(Exception):
    """Another commit came first. Whether it moved the positions is looked at next; never seen by users."""
