"""What this machine remembers of a log directory for as long as it goes on: a few words in tmpfs, beside no data.

A note in the directory itself would be there after a restored backup, after a failed disk came back without what was
written last, and could not be taken back when the disk takes nothing any more. So the note is in memory (/dev/shm), and
it is believed only for the directory it was written for: the same inode on the same mount, in which a small file lies
that was written with it and never touched since. Beside the note lies a file with details, which changes every second
and belongs to the note whose token it begins with. Where there is no tmpfs, or another one as in a new container, or
where the kernel gives the number of an ended mount to the next one (before Linux 6.8), nothing is remembered, and that
is always safe.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import secrets
import struct
import sys
import threading

logger = logging.getLogger("moldau.server")

MEMORY_DIRECTORY = "/dev/shm"
MOUNTS_FILE = "/proc/self/mountinfo"
BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
ANCHOR_FILE = "moldau.run"
PREFIX = "moldau-run-"
NOTE_BYTES_MAX = 8192
NAMESPACE_FILE = "/proc/self/ns/mnt"

DETAILS_SUFFIX = ".details"
TOKEN_BYTES = 32

STATX_MNT_ID_UNIQUE = 0x4000
STATX_SIZE = 256
STATX_MNT_ID_AT = 0x90
AT_FDCWD = -100


class MachineMemory:
    """`directory` is the tmpfs; empty: there is none. `remember_details` may be called on another thread."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._places: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        self._lock = threading.Lock()
        """Held while details are written, so that none are left behind when their note goes."""

    def remember(self, directory: str, text: str, details: bytes = b"") -> None:
        """Raises OSError when the directory cannot be written to; one that is full is not remembered."""
        if not self._directory:
            return
        self.forget(directory)
        if not _mount_id(directory):
            return
        token = secrets.token_hex(TOKEN_BYTES // 2)
        anchor = f"{directory}/{ANCHOR_FILE}"
        try:
            _replace(anchor, token.encode("ascii"))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                return
            raise
        note = {
            "path": os.path.abspath(directory),
            "identity": _identity(directory),
            "anchor": _anchor_identity(anchor),
            "token": token,
            "text": text,
            "namespace": _namespace(),
        }
        place = self._place(directory)
        try:
            _replace(place + DETAILS_SUFFIX, token.encode("ascii") + details)
            _replace(place, json.dumps(note).encode())
            self._tokens[directory] = token
            self._remove_leftovers()
        except OSError as error:
            logger.warning(
                "cannot write the run note %s, a killed broker registers as one that may have lost records: %s",
                place,
                error,
            )

    def remember_details(self, directory: str, details: bytes) -> None:
        """Nothing happens if nothing is remembered of the directory; raises OSError when the tmpfs is full."""
        with self._lock:
            token = self._tokens.get(directory)
            if token is not None:
                _replace(self._places[directory] + DETAILS_SUFFIX, token.encode("ascii") + details)

    def recall_details(self, directory: str) -> bytes:
        """What came with what `recall` returns, as it was last; empty if it is of another note, or of none."""
        try:
            place = self._place(directory)
            token, found = str(_read_own(place)["token"]).encode("ascii"), _read_bytes(place + DETAILS_SUFFIX, -1)
        except (OSError, ValueError, KeyError) as error:
            logger.warning("ignoring the log end offsets in the run note of log directory %s: %s", directory, error)
            return b""
        return found[TOKEN_BYTES:] if found[:TOKEN_BYTES] == token else b""

    def recall(self, directory: str) -> str:
        """What was remembered of this directory; empty if that was nothing, or nothing that is still sure."""
        if not self._directory:
            return ""
        try:
            note = _read_own(self._place(directory))
            anchor = f"{directory}/{ANCHOR_FILE}"
            if note["identity"] != _identity(directory) or note["anchor"] != _anchor_identity(anchor):
                return ""
            with open(anchor, "rb") as file:
                token = file.read(NOTE_BYTES_MAX).decode("ascii")
            return str(note["text"]) if note["token"] == token else ""
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("ignoring the run note of log directory %s: %s", directory, error)
            return ""

    def forget(self, directory: str) -> None:
        """Works without the disk, which may be why. The file in the directory means nothing without the note."""
        path = os.path.abspath(directory)
        with self._lock:
            self._tokens.pop(directory, None)
            places = {self._places.pop(directory, "")}
            places.update(place for place, note in self._own_notes() if note.get("path") == path)
            for place in places:
                _remove_note(place)
        if self._directory:
            _remove(f"{directory}/{ANCHOR_FILE}")

    def _place(self, directory: str) -> str:
        status = os.stat(directory)
        place = f"{self._directory}/{PREFIX}{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}"
        self._places[directory] = place
        return place

    def _own_notes(self) -> list[tuple[str, dict[str, object]]]:
        found: list[tuple[str, dict[str, object]]] = []
        if not self._directory:
            return found
        for name in os.listdir(self._directory):
            if name.startswith(f"{PREFIX}{os.geteuid()}-") and not name.endswith(DETAILS_SUFFIX):
                place = f"{self._directory}/{name}"
                try:
                    found.append((place, _read_own(place)))
                except (OSError, ValueError):
                    continue
        return found

    def _remove_leftovers(self) -> None:
        """Of directories that are gone: whoever was killed there will not come back. Paths mean something only to those
        who see the same mounts; a container may see others."""
        for place, note in self._own_notes():
            if note.get("namespace") == _namespace() and not os.path.isdir(str(note.get("path"))):
                _remove_note(place)


def find_memory_directory() -> str:
    """/dev/shm, if it is in memory and nowhere else; empty if it is not."""
    kind = ""
    try:
        with open(MOUNTS_FILE, encoding="utf-8", errors="replace") as file:
            for line in file:
                fields, _, rest = line.partition(" - ")
                if fields.split()[4] == MEMORY_DIRECTORY:
                    kind = rest.split()[0]  # the last one lies on top
    except (OSError, IndexError):
        return ""
    return MEMORY_DIRECTORY if kind == "tmpfs" and os.access(MEMORY_DIRECTORY, os.W_OK | os.X_OK) else ""


def _identity(directory: str) -> str:
    """The machine's run, the mount, the directory. A mount that was ended and made again is another one."""
    status = os.stat(directory)
    with open(BOOT_ID_FILE, encoding="ascii") as file:
        boot_id = file.read().strip()
    return f"{boot_id} {_mount_id(directory)} {status.st_dev} {status.st_ino}"


def _namespace() -> str:
    try:
        return os.readlink(NAMESPACE_FILE)
    except OSError:
        return ""


def _anchor_identity(path: str) -> list[int]:
    status = os.lstat(path)
    return [status.st_ino, status.st_ctime_ns, status.st_size]


def _mount_id(path: str) -> str:
    """A number that no other mount gets until the machine ends; empty where the kernel has none (before Linux 6.8)."""
    if sys.platform != "linux":
        return ""
    import ctypes  # a quarter of a megabyte, for this alone

    call = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    if call is None:
        return ""
    buffer = ctypes.create_string_buffer(STATX_SIZE)
    if call(AT_FDCWD, os.fsencode(path), 0, STATX_MNT_ID_UNIQUE, buffer) == 0:
        (mask,) = struct.unpack_from("=I", buffer.raw, 0)
        if mask & STATX_MNT_ID_UNIQUE:
            (mount_id,) = struct.unpack_from("=Q", buffer.raw, STATX_MNT_ID_AT)
            return f"{STATX_MNT_ID_UNIQUE:x}:{mount_id}"
    return ""


def _read_bytes(place: str, size_max: int) -> bytes:
    """Everybody may write to the directory, so what somebody else put there counts for nothing."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise ValueError(f"{place} belongs to somebody else")
        return file.read(size_max)


def _read_own(place: str) -> dict[str, object]:
    note = json.loads(_read_bytes(place, NOTE_BYTES_MAX))
    if not isinstance(note, dict):
        raise ValueError(f"{place} is no note")
    return note


def _replace(path: str, data: bytes) -> None:
    temporary = path + ".tmp"
    _remove(temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
    os.replace(temporary, path)


def _remove_note(place: str) -> None:
    """The note first: details without one mean nothing."""
    if place:
        _remove(place)
        _remove(place + DETAILS_SUFFIX)
        _remove(f"{place}{DETAILS_SUFFIX}.tmp")


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        pass
