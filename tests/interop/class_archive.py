"""An archive of Apache Kafka's classes beside its jars, so that its tools start with a third less work.

Class data sharing: the JVM maps classes that were parsed and verified once. The archive is made in the background by
the first process of a run that finds none for this Java and these jars; whoever starts a tool before it is there does
without. A JVM that cannot use the archive says nothing and does without as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.pace import patience

SECONDS_MAX = patience(180)
# A port where nobody listens: the tool loads what every client needs, and gives up.
CLIENT_SETTINGS = "default.api.timeout.ms=300\nrequest.timeout.ms=200\n"
LESSONS = (
    ["org.apache.kafka.tools.TopicCommand", "--bootstrap-server", "127.0.0.1:1", "--list", "--command-config"],
    [
        "org.apache.kafka.tools.ConsoleProducer",
        "--bootstrap-server",
        "127.0.0.1:1",
        "--topic",
        "t",
        "--producer.config",
    ],
)


class ClassArchive:
    """`options` is what a `java` command gets in addition; `common` are the options that all of them have."""

    def __init__(self, cache: Path, libs: Path, common: list[str]) -> None:
        self._cache = cache
        self._libs = libs
        self._common = common
        self._has_begun = False

    def options(self) -> list[str]:
        if self._path.exists():
            # Without any word of the JVM's own: it is not part of what a tool says.
            return [f"-XX:SharedArchiveFile={self._path}", "-Xlog:disable"]
        if not self._has_begun:
            self._has_begun = True
            threading.Thread(target=self._make, name="class archive", daemon=True).start()
        return []

    @functools.cached_property
    def _path(self) -> Path:
        banner = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
        jars = [(jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in sorted(self._libs.glob("*.jar"))]
        key = hashlib.sha256(repr((banner, jars)).encode()).hexdigest()[:16]
        return self._cache / f"moldau-interop-classes-{key}.jsa"

    def _make(self) -> None:
        with contextlib.suppress(OSError, subprocess.SubprocessError), self._alone() as is_alone:
            if is_alone and not self._path.exists():
                with tempfile.TemporaryDirectory(dir=self._cache, prefix="classes-") as folder:
                    self._dump(Path(folder))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether nobody else makes it: another worker of the run, or another run."""
        with (self._cache / "moldau-interop-classes.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _dump(self, folder: Path) -> None:
        settings = folder / "client.properties"
        settings.write_text(CLIENT_SETTINGS)
        names: dict[str, None] = {}
        for number, lesson in enumerate(LESSONS):
            loaded = folder / f"{number}.list"
            self._run(f"-XX:DumpLoadedClassList={loaded}", *self._common, *self._class_path, *lesson, str(settings))
            names.update(dict.fromkeys(loaded.read_text().splitlines()))
        (folder / "all.list").write_text("\n".join(names) + "\n")
        made = folder / "classes.jsa"
        listed = f"-XX:SharedClassListFile={folder / 'all.list'}"
        code = self._run("-Xshare:dump", listed, f"-XX:SharedArchiveFile={made}", *self._class_path)
        if code == 0 and made.exists():
            made.rename(self._path)

    @property
    def _class_path(self) -> list[str]:
        return ["-cp", f"{self._libs}/*"]

    def _run(self, *arguments: str) -> int:
        done = subprocess.run(
            ["java", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS_MAX,
        )
        return done.returncode
