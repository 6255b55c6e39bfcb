"""Spark's own Kafka connector: its jars, fetched once by Maven into the user's cache, to hold ours against.

`python -m tests.spark.connector` fetches them and prints where they are. The set is the newest whose parts can all be
had; it runs under the pyspark that the tests use.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.pace import patience

VERSION = "4.2.0"
ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"spark-kafka-connector-{VERSION}"
FETCH_SECONDS_MAX = patience(300)


def jars() -> list[Path]:
    """The jars, fetched if they are not there yet; none where they cannot be had."""
    return [] if missing() else _paths()


@functools.cache
def missing() -> str | None:
    """Why the connector cannot be used here; None when it can."""
    if all(path.exists() for path in _paths()):
        return None
    if shutil.which("mvn") is None:
        return f"Spark's Kafka connector is not in {CACHE}, and Maven, which fetches it, is missing"
    with _alone():
        if all(path.exists() for path in _paths()):
            return None
        return _fetch()


def _paths() -> list[Path]:
    return [CACHE / f"{name}-{version}.jar" for _, name, version in ARTIFACTS]


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Several test processes start at the same time; one of them fetches."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch() -> str | None:
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        project = Path(folder) / "pom.xml"
        project.write_text(_project())
        output = Path(folder) / "jars"
        command = ["mvn", "-q", "-B", "-f", str(project), "dependency:copy-dependencies", f"-DoutputDirectory={output}"]
        try:
            done = subprocess.run(
                [*command, "-DexcludeTransitive=true"], capture_output=True, text=True, timeout=FETCH_SECONDS_MAX
            )
        except subprocess.TimeoutExpired:
            return f"Maven did not fetch Spark's Kafka connector within {FETCH_SECONDS_MAX} s"
        if done.returncode != 0:
            return f"Maven could not fetch Spark's Kafka connector: {(done.stdout + done.stderr).strip()[-500:]}"
        for path in _paths():
            os.replace(output / path.name, path)
    return None


def _project() -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
        for group, name, version in ARTIFACTS
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>tests</groupId><artifactId>connector</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


if __name__ == "__main__":
    print(missing() or "\n".join(str(path) for path in jars()))
