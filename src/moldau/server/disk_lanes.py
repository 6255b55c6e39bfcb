"""The threads of the disk: a lane for each kind of work that may wait, so that no kind waits behind another.

The metadata log has a thread of its own: the quorum must not wait because segments are being synced. Each log directory
has a few for its own durability, so that a slow device holds up its own partitions and no others. Removals have theirs,
and so have reads of cold data (`cold_readers.py`). Work for one key (a file, a directory) is done in the order in which
it was asked for.
"""

from __future__ import annotations

import errno
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from moldau.protocol.topic_names import METADATA_DIRECTORY

log = logging.getLogger("moldau.server")

METADATA_LANE = "metadata"
REMOVE_LANE = "remove"
MEMORY_LANE = "memory"
THREADS_PER_DIRECTORY = 4

Post = Callable[[Callable[[], None]], None]
Done = Callable[[OSError | None], None]


class Work:
    """One thing to do on a thread, and who hears how it went."""

    __slots__ = ("done", "job")

    def __init__(self, job: Callable[[], None], done: Done) -> None:
        self.job = job
        self.done = done


class DiskLanes:
    """See the module. `post` runs a function in the node's own turn; everything but `_run` is called there."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._lanes: dict[str, ThreadPoolExecutor] = {}
        self._directories: list[str] = []
        # What waits behind work of the same key; a key is here as long as something of it is under way.
        self._queues: dict[str, deque[Work]] = {}
        self.pending = 0

    def add_directory(self, path: str) -> None:
        """A log directory: what belongs to it gets a lane of its own."""
        if path not in self._directories:
            self._directories.append(path)
            self._directories.sort(key=len, reverse=True)

    def lane_of(self, path: str) -> str:
        """The lane for durability of what lies at `path`."""
        if METADATA_DIRECTORY in path:
            return METADATA_LANE
        for directory in self._directories:
            if path.startswith(directory):
                return directory
        return ""

    def submit(self, lane: str, key: str, job: Callable[[], None], done: Done) -> None:
        """Does `job` on a thread of the lane, after everything that was asked for with the same key; an empty key has
        no order. `done` is called in the node's own turn, whatever happens."""
        self.pending += 1
        work = Work(job, done)
        if key:
            queue = self._queues.get(key)
            if queue is not None:
                queue.append(work)
                return
            self._queues[key] = deque()
        self._start(lane, key, work)

    def _start(self, lane: str, key: str, work: Work) -> None:
        self._executor(lane).submit(self._run, lane, key, work)

    def _executor(self, lane: str) -> ThreadPoolExecutor:
        found = self._lanes.get(lane)
        if found is None:
            threads = THREADS_PER_DIRECTORY
            if lane in (METADATA_LANE, REMOVE_LANE, MEMORY_LANE):
                threads = 1
            found = self._lanes[lane] = ThreadPoolExecutor(threads, thread_name_prefix=f"disk {lane}")
        return found

    def _run(self, lane: str, key: str, work: Work) -> None:
        """On a thread. Whatever goes wrong, the one who waits is told: a callback that is lost stops a log for good."""
        failure: OSError | None = None
        try:
            work.job()
        except OSError as error:
            failure = error
        except Exception as error:
            log.exception("unexpected error in a disk thread")
            failure = OSError(errno.EIO, f"unexpected error in a disk thread: {error!r}")
        try:
            self._post(lambda: self._finish(lane, key, work, failure))
        except RuntimeError:
            pass  # the loop is closed: the process is ending and nobody waits for this any more

    def _finish(self, lane: str, key: str, work: Work, failure: OSError | None) -> None:
        self.pending -= 1
        queue = self._queues.get(key)
        if queue:
            self._start(lane, key, queue.popleft())
        elif queue is not None:
            del self._queues[key]
        work.done(failure)

    def finish_all(self) -> None:
        """Does everything that was asked for before this returns, on this thread where no other has begun it; who
        waits for it is not told. For the end of a node, whose last words must not be overtaken by earlier ones."""
        queues, self._queues = self._queues, {}
        lanes, self._lanes = self._lanes, {}
        for executor in lanes.values():
            executor.shutdown(wait=True)
        for queue in queues.values():
            for work in queue:
                try:
                    work.job()
                except OSError as error:
                    log.warning("cannot finish a write during shutdown: %s", error)

    def close(self) -> None:
        for executor in self._lanes.values():
            executor.shutdown(wait=True)
        self._lanes.clear()
