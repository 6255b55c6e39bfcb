"""The threads that read cold data: a few for each log directory, so that a slow device holds up its own readers only.

Every connection has at most one part of at most a megabyte waiting here, and a lane takes them in the order in which
they came: however many read old data, each gets its part of the device in turn. Small reads (a place in an index, the
headers around it) go first: a request waits for them before it can even be answered.

The threads are daemons and nobody waits for them at the end: a device that hangs must not keep a node from stopping.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections import deque
from collections.abc import Callable

from moldau.server.residency import PAGE_BYTES, count_cached_pages
from moldau.storage.disk import Reading

log = logging.getLogger("moldau.server")

THREADS_PER_LANE = 4
SMALL_BYTES = 64 << 10
WINDOW_BYTES = 1 << 20
AHEAD_BYTES = 256 << 10

Post = Callable[[Callable[[], None]], None]
Finished = Callable[[OSError | None], None]


class ColdJob(Reading):
    """One read; the descriptor is its own and is closed whatever happens."""

    __slots__ = ("descriptor", "finished", "position", "read", "size")

    def __init__(
        self,
        descriptor: int,
        position: int,
        size: int,
        read: Callable[[int, int, int], None],
        finished: Finished,
    ) -> None:
        super().__init__()
        self.descriptor = descriptor
        self.position = position
        self.size = size
        self.read = read
        self.finished = finished


class Lane:
    """The queue of one device. Everything here is touched under its lock."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changed = threading.Condition()
        self.small: deque[ColdJob] = deque()
        self.large: deque[ColdJob] = deque()
        self.threads = 0
        self.idle = 0
        self.closed = False


class ColdReaders:
    """`post` runs a function in the node's own turn; `submit` and `close` are called there."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._lanes: dict[str, Lane] = {}
        # For metrics.
        self.reads_total = 0
        self.bytes_total = 0

    def submit(self, lane_name: str, job: ColdJob) -> None:
        lane = self._lanes.get(lane_name)
        if lane is None:
            lane = self._lanes[lane_name] = Lane(lane_name)
        self.reads_total += 1
        self.bytes_total += job.size
        with lane.changed:
            (lane.small if job.size <= SMALL_BYTES else lane.large).append(job)
            waiting = len(lane.small) + len(lane.large)
            starts_thread = waiting > lane.idle and lane.threads < THREADS_PER_LANE
            if starts_thread:
                lane.threads += 1
            lane.changed.notify()
        if starts_thread:
            threading.Thread(target=self._run, args=(lane,), name=f"cold reads {lane.name}", daemon=True).start()

    def _run(self, lane: Lane) -> None:
        while True:
            with lane.changed:
                while not lane.small and not lane.large and not lane.closed:
                    lane.idle += 1
                    lane.changed.wait()
                    lane.idle -= 1
                if lane.closed:
                    lane.threads -= 1
                    return
                job = lane.small.popleft() if lane.small else lane.large.popleft()
            self._do(job)

    def _do(self, job: ColdJob) -> None:
        """On a thread. Whatever goes wrong, the one who waits is told: a connection would wait forever."""
        failure: OSError | None = None
        try:
            if not job.cancelled:
                job.read(job.descriptor, job.position, job.size)
        except OSError as error:
            failure = error
        except Exception as error:
            log.exception("unexpected error in a reader thread")
            failure = OSError(errno.EIO, f"unexpected error in a reader thread: {error!r}")
        finally:
            os.close(job.descriptor)
        try:
            self._post(lambda: job.finished(failure))
        except RuntimeError:
            pass  # the loop is closed: the process is ending and nobody waits for this any more

    def close(self) -> None:
        """Gives up what nobody has begun, and does not wait for what is under way."""
        for lane in self._lanes.values():
            with lane.changed:
                lane.closed = True
                given_up = [*lane.small, *lane.large]
                lane.small.clear()
                lane.large.clear()
                lane.changed.notify_all()
            for job in given_up:
                os.close(job.descriptor)
        self._lanes = {}


_buffers = threading.local()


def stop_read_ahead(descriptor: int) -> None:
    """The system shall read what it is asked for and no more. Else it marks a page behind which it would go on, and
    whoever meets that page first has to begin with the next part, of up to some megabytes: that would be the loop,
    with a question or a `sendfile`, for milliseconds. Not where pages cannot be counted: samples tell the truth only
    as long as what is around them comes with them."""
    if hasattr(os, "posix_fadvise") and count_cached_pages(descriptor, 0, PAGE_BYTES) >= 0:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)


def warm(descriptor: int, position: int, size: int) -> None:
    """On a thread: the bytes are in the system's memory when this returns, as far as the file has them. Behind a whole
    window a little more is under way, so that the device does not rest while the window is sent."""
    stop_read_ahead(descriptor)
    if hasattr(os, "posix_fadvise"):
        ahead = AHEAD_BYTES if size >= WINDOW_BYTES else 0
        os.posix_fadvise(descriptor, position, size + ahead, os.POSIX_FADV_WILLNEED)
    buffer: bytearray | None = getattr(_buffers, "buffer", None)
    if buffer is None:
        buffer = _buffers.buffer = bytearray(
            WINDOW_BYTES
        )  # one call a window: each return takes the interpreter's lock
    view = memoryview(buffer)
    while size > 0:
        count = os.preadv(descriptor, [view[: min(size, len(view))]], position)
        if count == 0:
            return
        position += count
        size -= count
