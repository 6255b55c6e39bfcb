"""One writer at a time: a lock in the table's or pipeline's directory that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from types import TracebackType

from moldau.lake.errors import LakeError

DIRECTORY = "_moldau"


class WriterLock:
    """Holds `_moldau/NAME` of a directory by flock; the holder is written into it, for the sentence that others get."""

    def __init__(self, directory: str, what: str, name: str = "lock") -> None:
        """what: `load of orders`, as the refusal of others will name it."""
        self.path = os.path.join(directory, DIRECTORY, name)
        self._what = what
        self._file: int | None = None

    def __enter__(self) -> WriterLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Takes the lock, or raises LakeError that says who has it. The file is never removed, or"
        " there would be two."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        # Python's files do not pass to child processes, so that Spark's JVM cannot outlive us with the lock.
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = read_holder(self.path)
            os.close(file)
            raise LakeError(
                f"{os.path.dirname(os.path.dirname(self.path))} is in use by {holder}. Wait until"
                " that has ended, or end it."
            ) from None
        except OSError as error:
            os.close(file)
            raise LakeError(f"{self.path} cannot be locked: {error.strerror}.") from None
        note = {"what": self._what, "pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%F %T")}
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(note).encode(), 0)
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def is_held(path: str) -> bool:
    """Whether a process holds the lock of this file now."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def read_holder(path: str) -> str:
    """Who holds the lock, in words."""
    try:
        with open(path, encoding="utf-8") as file:
            note = json.load(file)
        return f"{note['what']} (process {note['pid']} on {note['host']} since {note['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
