"""Starts Spark for loads and pipelines, and turns its errors into sentences."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.lake.errors import LakeError
from moldau.lake.extras import need
from moldau.spark.worker_python import local_worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# All cores of this machine, and four tries for each task, as a cluster gives them.
DEFAULT_MASTER = "local[*,4]"

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.log.level": "ERROR",
}


def start_session(master: str | None, name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this program, or a new one. Workers use the Python that runs this."""
    sql = need("pyspark.sql")
    active: SparkSession | None = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    check_java()
    chosen = master or os.environ.get("SPARK_MASTER") or DEFAULT_MASTER
    # The driver's Python runs what plans a source, as workers that Spark starts besides those of tasks.
    script = local_worker_python()
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        # Other machines do not have the script that a session before may have left here.
        if os.environ.get(variable, script) == script:
            os.environ[variable] = script if chosen.startswith("local") else sys.executable
    builder = sql.SparkSession.builder.appName(name).master(chosen)
    given = {**_SETTINGS, **(settings or {})}
    if chosen.startswith("local"):
        # Nobody else needs to reach a driver that is its own executor.
        given.setdefault("spark.driver.host", "127.0.0.1")
        given.setdefault("spark.driver.bindAddress", "127.0.0.1")
    for key, value in given.items():
        builder = builder.config(key, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise LakeError(f"Spark does not start with master {chosen}: {first_line(error)}") from error
    return session


def check_java() -> None:
    """Raises LakeError where there is no Java to start Spark with."""
    home = os.environ.get("JAVA_HOME")
    if home and os.access(os.path.join(home, "bin", "java"), os.X_OK):
        return
    if shutil.which("java") is None:
        raise LakeError(
            "Spark needs Java 17 or newer, and there is none: install it with the system's package manager"
            " (Debian: apt install default-jre-headless; macOS: brew install openjdk), or set JAVA_HOME."
        )


def first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


_OURS = re.compile(r"(?:moldau\.\S+?|builtins\.|OSError)?(?:ReadError|LakeError|OptionError|ClientError): (.+)")


def raise_sentence(error: Exception) -> None:
    """Raises LakeError with the last line of a task's traceback, if that is what the error is about."""
    text = str(error)
    found = _OURS.findall(text)
    if found:
        raise LakeError(found[-1].strip()) from error
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s*[\w.]+(Error|Exception): ", line)]
    if lines:
        raise LakeError(f"A task failed on all its tries: {lines[-1]}") from error
    if "SparkContext" in text or "stopped" in text.lower():
        raise LakeError(f"Spark was stopped before the round was committed: {first_line(error)}") from error


def parallelism(session: Any) -> int:
    """How many tasks run at a time."""
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except Exception:
        # Spark Connect has no context.
        return max(1, int(session.conf.get("spark.default.parallelism", "8")))
