"""What this machine remembers of a log directory for as long as it goes on: a few words in tmpfs, beside no data.

A note in the directory itself would be there after a restored backup, after a failed disk came back without what was
written last, and could not be taken back when the disk takes nothing any more. So the note is in memory (/dev/shm), and
it is believed only for the directory it was written for: the same inode on the same mount, in which a small file lies
that was written with it and never touched since. Where there is no tmpfs, or another one as in a new container,
nothing is remembered, and that is always safe.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import secrets
import struct
import sys

logger = logging.getLogger("moldau.server")

MEMORY_FOLDER = "/dev/shm"
MOUNTS_FILE = "/proc/self/mountinfo"
BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
ANCHOR_FILE = "moldau.run"
PREFIX = "moldau-run-"
NOTE_BYTES_MAX = 8192
NAMESPACE_FILE = "/proc/self/ns/mnt"

STATX_MNT_ID_UNIQUE = 0x4000
STATX_MNT_ID = 0x1000
STATX_SIZE = 256
STATX_MNT_ID_AT = 0x90
AT_FDCWD = -100


class MachineMemory:
    """`folder` is the tmpfs; empty: there is none."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._places: dict[str, str] = {}

    def remember(self, directory: str, text: str) -> None:
        """Raises OSError when the directory cannot be written to; one that is full is not remembered."""
        if not self._folder:
            return
        self.forget(directory)
        token = secrets.token_hex(16)
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
            _replace(place, json.dumps(note).encode())
            self._remove_leftovers()
        except OSError as error:
            logger.warning("%s cannot be written, so a killed process counts as one that lost data: %s", place, error)

    def recall(self, directory: str) -> str:
        """What was remembered of this directory; empty if that was nothing, or nothing that is still sure."""
        if not self._folder:
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
            logger.warning("what was remembered of %s is not believed: %s", directory, error)
            return ""

    def forget(self, directory: str) -> None:
        """Works without the disk, which may be why. The file in the directory means nothing without the note."""
        path = os.path.abspath(directory)
        places = {self._places.pop(directory, "")}
        places.update(place for place, note in self._own_notes() if note.get("path") == path)
        for place in places:
            _remove(place)
        if self._folder:
            _remove(f"{directory}/{ANCHOR_FILE}")

    def _place(self, directory: str) -> str:
        status = os.stat(directory)
        place = f"{self._folder}/{PREFIX}{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}"
        self._places[directory] = place
        return place

    def _own_notes(self) -> list[tuple[str, dict[str, object]]]:
        found: list[tuple[str, dict[str, object]]] = []
        if not self._folder:
            return found
        for name in os.listdir(self._folder):
            if name.startswith(f"{PREFIX}{os.geteuid()}-"):
                place = f"{self._folder}/{name}"
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
                _remove(place)


def find_memory_folder() -> str:
    """/dev/shm, if it is in memory and nowhere else; empty if it is not."""
    kind = ""
    try:
        with open(MOUNTS_FILE, encoding="utf-8", errors="replace") as file:
            for line in file:
                fields, _, rest = line.partition(" - ")
                if fields.split()[4] == MEMORY_FOLDER:
                    kind = rest.split()[0]  # the last one lies on top
    except (OSError, IndexError):
        return ""
    return MEMORY_FOLDER if kind == "tmpfs" and os.access(MEMORY_FOLDER, os.W_OK | os.X_OK) else ""


def _identity(directory: str) -> str:
    """The machine's run, the mount, the directory. A mount that was ended and made again is another one, wherever the
    kernel can tell (Linux 6.8)."""
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
    if sys.platform != "linux":
        return ""
    import ctypes  # a quarter of a megabyte, for this alone

    call = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    if call is None:
        return ""
    for wanted in (STATX_MNT_ID_UNIQUE, STATX_MNT_ID):
        buffer = ctypes.create_string_buffer(STATX_SIZE)
        if call(AT_FDCWD, os.fsencode(path), 0, wanted, buffer) == 0:
            (mask,) = struct.unpack_from("=I", buffer.raw, 0)
            if mask & wanted:
                (mount_id,) = struct.unpack_from("=Q", buffer.raw, STATX_MNT_ID_AT)
                return f"{wanted:x}:{mount_id}"
    return ""


def _read_own(place: str) -> dict[str, object]:
    """Everybody may write to the folder, so what somebody else put there counts for nothing."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise ValueError(f"{place} belongs to somebody else")
        note = json.loads(os.read(descriptor, NOTE_BYTES_MAX))
    finally:
        os.close(descriptor)
    if not isinstance(note, dict):
        raise ValueError(f"{place} is no note")
    return note


def _replace(path: str, data: bytes) -> None:
    temporary = path + ".tmp"
    _remove(temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        pass
