"""The ACLs of an image by id, in the order they came; an image with other ACLs shares most of it with the one before.

They are in chunks of some hundreds. A change copies the chunks that it touches, so one ACL that comes or goes among
100,000 costs a look at each chunk and the copy of one, not of all. Two small chunks never stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moldau.protocol.stored.metadata_records import AccessControlEntryRecord

CHUNK_MAX: Final = 512

Chunk = dict[bytes, AccessControlEntryRecord]


class AclMap:
    """Never changed once it is made."""

    __slots__ = ("_chunks", "_count")

    def __init__(self, chunks: list[Chunk] | None = None) -> None:
        self._chunks: list[Chunk] = chunks or []
        self._count = sum(map(len, self._chunks))

    def __len__(self) -> int:
        return self._count

    def get(self, acl_id: bytes) -> AccessControlEntryRecord | None:
        for chunk in self._chunks:
            if acl_id in chunk:
                return chunk[acl_id]
        return None

    def items(self) -> Iterator[tuple[bytes, AccessControlEntryRecord]]:
        for chunk in self._chunks:
            yield from chunk.items()

    def values(self) -> Iterator[AccessControlEntryRecord]:
        for chunk in self._chunks:
            yield from chunk.values()

    def with_changes(self, changes: dict[bytes, AccessControlEntryRecord | None]) -> AclMap:
        """The map with records by their id; None where one is gone."""
        if not changes:
            return self
        chunks: list[Chunk] = []
        added = {acl_id: record for acl_id, record in changes.items() if record is not None}
        for chunk in self._chunks:
            touched = changes.keys() & chunk.keys()
            _append(chunks, _changed(chunk, touched, added) if touched else chunk)
        new = list(added.items())
        if new and chunks and len(chunks[-1]) < CHUNK_MAX:
            last = chunks.pop()
            new = [*last.items(), *new]
        for start in range(0, len(new), CHUNK_MAX):
            chunks.append(dict(new[start : start + CHUNK_MAX]))
        return AclMap(chunks)


def _changed(chunk: Chunk, touched: set[bytes], added: Chunk) -> Chunk:
    """A copy of a chunk without what is gone; takes what stays at its place out of `added`."""
    chunk = dict(chunk)
    for acl_id in touched:
        record = added.pop(acl_id, None)
        if record is None:
            del chunk[acl_id]
        else:
            chunk[acl_id] = record
    return chunk


def _append(chunks: list[Chunk], chunk: Chunk) -> None:
    if chunks and len(chunks[-1]) + len(chunk) <= CHUNK_MAX // 2:
        chunks[-1] = {**chunks[-1], **chunk}
    elif chunk:
        chunks.append(chunk)
