"""What once stopped the loop or let somebody else's disk end a session, planted again: each as it was written then.

They replace methods of interpreted classes, as those of `planted_bugs.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from moldau.config.log_config import LogConfig
from moldau.node import metadata_snapshots
from moldau.node.coordinator_log import PartitionLog
from moldau.node.node import Node
from moldau.raft import following
from moldau.raft.core import RaftCore
from moldau.sim.kernel.disk import SimDisk
from moldau.storage import retention_run
from moldau.storage.deleted_logs import DeletedLog, DeletedLogs
from moldau.storage.disk import Done, File
from moldau.storage.flush_job import FlushJob
from moldau.storage.index import StoredEntries, Stretch
from moldau.storage.truncation import Truncation

POOL_THREADS = 4


class Pool:
    """Threads that do whatever comes, in the order in which it came."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.running = 0
        self.queue: deque[Callable[[], None]] = deque()

    def submit(self, begin: Callable[[], None]) -> None:
        if self.running == POOL_THREADS:
            self.queue.append(begin)
        else:
            self.running += 1
            begin()

    def on_done(self) -> None:
        if self.queue:
            self.queue.popleft()()
        else:
            self.running -= 1


def one_pool_for_everything(patch: pytest.MonkeyPatch) -> None:
    """The sync of the metadata log waits in line behind those of segments."""
    original = SimDisk._do_later
    pools: dict[SimDisk, Pool] = {}

    def do_later(self: SimDisk, path: str, work: Callable[[], None], done: Done) -> None:
        pool = pools.get(self)
        if pool is None or pool.generation != self.generation:
            pool = pools[self] = Pool(self.generation)

        def finished(error: OSError | None) -> None:
            pool.on_done()
            done(error)

        pool.submit(lambda: original(self, path, work, finished))

    patch.setattr(SimDisk, "_do_later", do_later)


def brokers_wait_for_their_sync(patch: pytest.MonkeyPatch) -> None:
    """A broker fetches metadata only when what it has is on its disk."""

    def may_fetch(core: RaftCore) -> bool:
        return core.log.is_settled() and core.synced_offset == core.log.end_offset()

    patch.setattr(following, "_may_fetch", may_fetch)


def load_whole_indexes(patch: pytest.MonkeyPatch) -> None:
    """The last entry of an index is looked for in all of it."""

    def read_last(self: StoredEntries) -> Stretch:
        count = self.disk.size(self.path) // self.entry_size
        self.read(0, count)
        return self.read(max(0, count - 1), count)

    patch.setattr(StoredEntries, "read_last", read_last)


def look_at_all_logs_in_one_turn(patch: pytest.MonkeyPatch) -> None:
    """A retention run is over when its turn is."""
    patch.setattr(retention_run, "SEGMENTS_PER_TURN", 1 << 30)


def load_coordinators_on_the_loop(patch: pytest.MonkeyPatch) -> None:
    """A coordinator reads its log, however cold it is, in its turn."""

    def read_now(self: PartitionLog, log: Any, file: File, position: int, size: int) -> bytes:
        return file.read(position, size)

    patch.setattr(PartitionLog, "_read_now", read_now)


def finish_truncations_at_once(patch: pytest.MonkeyPatch) -> None:
    """Whoever cuts a log waits until that is durable."""

    def start(self: Truncation, write_checkpoints: object) -> None:
        self.finish(self.log.disk.blocking())

    patch.setattr(Truncation, "start", start)


def sync_directories_at_once(patch: pytest.MonkeyPatch) -> None:
    """The folder of a log is synced where its flush ends, which is in a turn."""
    original = FlushJob._sync_directory

    def sync_directory(self: FlushJob) -> bool:
        self.log.disk.blocking().sync_directory(self.log.directory)
        return original(self)

    patch.setattr(FlushJob, "_sync_directory", sync_directory)


def remove_deleted_logs_at_once(patch: pytest.MonkeyPatch) -> None:
    """The files of a deleted topic go in a turn, all of them."""

    def remove(self: DeletedLogs, log: DeletedLog, now_ms: int) -> None:
        self._logs.remove(log)
        self._disk.blocking().remove_tree(log.path)

    patch.setattr(DeletedLogs, "_remove", remove)


def encode_snapshots_in_one_turn(patch: pytest.MonkeyPatch) -> None:
    """A snapshot of the metadata is encoded in the turn that begins it."""
    patch.setattr(metadata_snapshots, "RECORDS_PER_TURN", 1 << 30)


class KeepsEverything(dict[str, LogConfig]):
    def pop(self, *arguments: Any) -> Any:
        return None

    def clear(self) -> None:
        pass


def remember_topics_for_ever(patch: pytest.MonkeyPatch) -> None:
    """What a node knows of a topic stays when the topic goes."""
    original = Node._make_logs

    def make_logs(self: Node, *arguments: Any) -> Any:
        self._log_configs = KeepsEverything()
        return original(self, *arguments)

    patch.setattr(Node, "_make_logs", make_logs)
