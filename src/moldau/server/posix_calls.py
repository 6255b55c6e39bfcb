"""System calls on files, each brought to its end: reads and writes that may be short, space, write-back."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from moldau.storage.disk import Buffer

PARTS_PER_WRITE_MAX = 512  # below IOV_MAX of Linux and macOS (1024)
FALLOC_FL_KEEP_SIZE = 1
SYNC_FILE_RANGE_WRITE = 2


def reserve_space(descriptor: int, size: int) -> None:
    """Blocks for `size` bytes, while the file keeps its size, so that appends go on where it ends.

    Only Linux has this; elsewhere, and on file systems without it, the file grows as it is written.
    """
    if sys.platform != "linux":
        return
    import ctypes  # few want this, and it takes a megabyte

    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if call is None:
        return
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if call(descriptor, FALLOC_FL_KEEP_SIZE, 0, size) != 0:
        number = ctypes.get_errno()
        if number not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise OSError(number, os.strerror(number))


def begin_write_back(descriptor: int, position: int, size: int) -> None:
    """Dirty pages of that range are on their way when this returns; may wait for a full queue of the device."""
    if sys.platform != "linux":
        return
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
        call(descriptor, position, size, SYNC_FILE_RANGE_WRITE)  # it is advice: what fails now, the sync reports


def write_back_and_close(descriptor: int, position: int, size: int) -> None:
    try:
        begin_write_back(descriptor, position, size)
    finally:
        os.close(descriptor)


def read_whole_file(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size + 1)
        while len(data) <= size:
            more = os.read(descriptor, size + 1 - len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)


def read_all(descriptor: int, position: int, size: int) -> bytes:
    """Up to `size` bytes, fewer at the end of the file: one call may return less than there is (2 GB, signals)."""
    data = os.pread(descriptor, size, position)
    if len(data) == size or not data:
        return data
    chunks = [data]
    received = len(data)
    while received < size:
        data = os.pread(descriptor, size - received, position + received)
        if not data:
            break
        chunks.append(data)
        received += len(data)
    return b"".join(chunks)


def write_all(descriptor: int, parts: Sequence[Buffer]) -> int:
    """Writes every byte of all parts; a short write goes on where it stopped."""
    total = 0
    pending = [memoryview(part).cast("B") for part in parts if len(part)]
    index = 0
    while index < len(pending):
        written = os.writev(descriptor, pending[index : index + PARTS_PER_WRITE_MAX])
        total += written
        while index < len(pending) and written >= len(pending[index]):
            written -= len(pending[index])
            index += 1
        if written:
            pending[index] = pending[index][written:]
    return total
