"""Whether parts of a file are in the system's memory: asked for before the one thread reads or sends them.

`preadv2` with RWF_NOWAIT reads what is there and never waits for the medium. One byte of it is the question: it costs
a microsecond and does not take pages for there that are still on their way. A part is asked about at both ends and
every 512 KB. Where somebody reads cold data that is not enough: to ask for a page that is missing has it read, so that
samples are there soon and what is between them is not. There the pages are counted (`cachestat`, since Linux 6.5),
which reads nothing, misses no hole and costs six microseconds whatever the size.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

SAMPLE_EVERY_BYTES = 512 << 10
RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
HAS_NOWAIT = RWF_NOWAIT != 0 and sys.platform == "linux"
# Not every file system can answer at once.
UNSUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
CACHESTAT = 451
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class CannotTell(Exception):
    """This file system does not say what is in memory."""


_ONE_BYTE = [bytearray(1)]


def is_here(descriptor: int, position: int) -> bool:
    """Whether the page is in memory; also behind the end of the file, where nobody waits. Raises CannotTell."""
    try:
        os.preadv(descriptor, _ONE_BYTE, position, RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in UNSUPPORTED:
            raise CannotTell from error
        raise
    return True


def are_here(descriptor: int, position: int, end: int) -> bool:
    """The same for a part, by samples. The ends come first: they are where cold data begins or ends."""
    if not is_here(descriptor, position) or not is_here(descriptor, end - 1):
        return False
    sample = position + SAMPLE_EVERY_BYTES
    while sample < end - 1:
        if not is_here(descriptor, sample):
            return False
        sample += SAMPLE_EVERY_BYTES
    return True


def read_resident(descriptor: int, position: int, size: int) -> bytearray | None:
    """All of these bytes, or None if some are not in memory or behind the end. Raises CannotTell."""
    data = bytearray(size)
    try:
        count = os.preadv(descriptor, [data], position, RWF_NOWAIT)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno in UNSUPPORTED:
            raise CannotTell from error
        raise
    return data if count == size else None


_cachestat: list[Callable[[int, int, int], int]] = []


def count_cached_pages(descriptor: int, position: int, size: int) -> int:
    """How many pages of a part are in memory or on their way there; -1 where that cannot be told (before Linux 6.5).
    Starts no reading, other than a question with RWF_NOWAIT. It costs a few microseconds."""
    if sys.platform != "linux":
        return -1
    if not _cachestat:
        _cachestat.append(_find_cachestat())
    return _cachestat[0](descriptor, position, size)


def _find_cachestat() -> Callable[[int, int, int], int]:
    import ctypes  # a megabyte, for those who need it

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)
    call.restype = ctypes.c_long
    word = ctypes.sizeof(ctypes.c_uint64)

    def count(descriptor: int, position: int, size: int) -> int:
        words = (ctypes.c_uint64 * 7)(position, size)
        at = ctypes.addressof(words)
        return int(words[2]) if call(CACHESTAT, descriptor, at, at + 2 * word, 0) == 0 else -1

    return count


def count_missing_pages(descriptor: int, position: int, end: int) -> int:
    """How many pages of a part, which ends within the file, are not in memory; -1 where that cannot be told."""
    first = position // PAGE_BYTES * PAGE_BYTES
    pages = -(-(end - first) // PAGE_BYTES)
    cached = count_cached_pages(descriptor, first, pages * PAGE_BYTES)
    return -1 if cached < 0 else max(0, pages - cached)


def find_cold(descriptor: int, start: int, end: int) -> list[tuple[int, int]]:
    """The runs of pages, from and to, that are not in memory; none where the system does not tell."""
    pages = (end - start) // PAGE_BYTES
    cached = count_cached_pages(descriptor, start, end - start)
    if cached < 0 or cached >= pages:
        return []
    if cached == 0:
        return [(start, end)]
    runs: list[tuple[int, int]] = []
    for at in range(start, end, PAGE_BYTES):
        if count_cached_pages(descriptor, at, PAGE_BYTES) == 0:
            if runs and runs[-1][1] == at:
                runs[-1] = (runs[-1][0], at + PAGE_BYTES)
            else:
                runs.append((at, at + PAGE_BYTES))
    return runs


def read_and_leave_no_trace(descriptor: int, position: int, size: int) -> bytes:
    """Reads, and drops from memory what was not there before: who passes over everything once must not push out what
    others read again and again."""
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # else the system reads on behind the part
    start = position // PAGE_BYTES * PAGE_BYTES
    end = -(-(position + size) // PAGE_BYTES) * PAGE_BYTES
    cold = find_cold(descriptor, start, end)
    data = bytearray()
    while len(data) < size:
        piece = os.pread(descriptor, size - len(data), position + len(data))
        if not piece:
            break
        data += piece
    for first, last in cold:
        os.posix_fadvise(descriptor, first, last - first, os.POSIX_FADV_DONTNEED)
    return bytes(data)
