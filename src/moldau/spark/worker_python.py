"""The Python that Spark's worker processes run where they share this machine and this environment with the driver.

Spark has its workers import pyspark from an archive without bytecode, and starts half a dozen kinds of them for a
query: each compiles the same 150 modules again, which is 1.2 s of its 1.5 s of CPU. The pyspark that is installed here
is the same and has its bytecode, so workers are started by a script that takes the archive out of their path.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from importlib.util import find_spec

SHELL = "/bin/sh"
_SCRIPT = """#!{shell}
path=:$PYTHONPATH:
for archive in {archives}; do
    while case $path in *":$archive:"*) true ;; *) false ;; esac; do
        path="${{path%%":$archive:"*}}:${{path#*":$archive:"}}"
    done
done
path=${{path#:}}
export PYTHONPATH="${{path%:}}"
exec {python} "$@"
"""
_made: list[str] = []


def local_worker_python() -> str:
    """What workers of a local master are started with: a script that lives as long as this process, or plain Python."""
    archives = pyspark_archives()
    if not archives or not os.access(SHELL, os.X_OK):
        return sys.executable
    if not _made:
        try:
            _made.append(_write_script(worker_script(sys.executable, archives)))
        except OSError:
            return sys.executable
    return _made[0]


def pyspark_archives() -> list[str]:
    """The archives of the installed pyspark in the order of workers' paths; none where Spark comes from elsewhere."""
    if os.environ.get("SPARK_HOME"):
        return []
    found = find_spec("pyspark")
    if found is None or not found.origin or find_spec("py4j") is None:
        return []
    directory = os.path.join(os.path.dirname(found.origin), "python", "lib")
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    own = [name for name in names if name == "pyspark.zip"]
    bridge = [name for name in names if name.startswith("py4j-") and name.endswith(".zip")]
    return [os.path.join(directory, name) for name in own + bridge]


def worker_script(python: str, archives: list[str]) -> str:
    """A script that runs this Python without the archives in its path, where Spark puts them twice."""
    return _SCRIPT.format(
        shell=SHELL, archives=" ".join(shlex.quote(archive) for archive in archives), python=shlex.quote(python)
    )


def _write_script(text: str) -> str:
    directory = tempfile.mkdtemp(prefix="moldau-spark-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = os.path.join(directory, "python")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o700)
    return path
