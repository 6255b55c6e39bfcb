"""`make demo`: from a fresh clone to records on the screen within a minute; then the compiled build, then a lake.

Needs nothing but Python. What a part needs is set up just before it, in an environment of the demo's own (.venv-demo),
and every wait says what it waits for:

1. a broker, a topic and a real client (demo_broker.py): the run-time packages and confluent-kafka;
2. the same with the hot modules compiled: mypyc and a C compiler;
3. a pipeline that fills a lake table through Spark (demo_pipeline.py): Spark's packages and Java.

What the second and the third need is fetched and compiled side by side, with the first part on the screen already. A
second `make demo` finds everything there, and starts Spark while it shows the broker. Ctrl-C at any time ends whatever
runs and removes the demo's data.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from demo_setup import Setup, keeping_bytecode
from demo_steps import SetupFailed, Steps

TOOLS = Path(__file__).resolve().parent


def main() -> int:
    began = time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    directory = Path(tempfile.mkdtemp(prefix="moldau-demo-"))
    steps = Steps(began)
    try:
        show(steps, Setup(steps), directory)
        steps.say(
            f"\nThe demo took {time.monotonic() - began:.0f} s. Its temporary directory is gone now."
            " Start your own: moldau server"
        )
        return 0
    except SetupFailed as failure:
        steps.say(f"\nthe demo cannot go on: {failure}")
        return 1
    except KeyboardInterrupt:
        steps.say("\nstopping")
        return 130
    finally:
        # What is stopped here must not be interrupted by a second Ctrl-C.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        steps.end_all()
        shutil.rmtree(directory, ignore_errors=True)


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def show(steps: Steps, setup: Setup, directory: Path) -> None:
    setup.make_ready_to_run()
    compiled = setup.is_compiled()
    if compiled and setup.has_spark() and setup.make_java_ready():
        show_at_once(steps, setup, directory)
        return
    run_part(steps, setup, compiled, "demo_broker.py", directory / "first")
    wants_compiled = not compiled and setup.can_compile()
    wants_lake = setup.make_java_ready()
    if wants_compiled or (wants_lake and not setup.has_spark()):
        steps.say("\nThat was the broker. Its compiled build and the lake need more, which comes now (once).")
        setup.make_rest_ready(wants_compiled, wants_lake)
    if wants_compiled:
        compiled = True
        run_part(steps, setup, compiled, "demo_broker.py", directory / "second")
    if wants_lake:
        run_part(steps, setup, compiled, "demo_pipeline.py", directory / "lake", str(setup.spark_archive))
    else:
        steps.say("\nThe lake is left out: Spark needs Java 17 or newer.")


def show_at_once(steps: Steps, setup: Setup, directory: Path) -> None:
    """With everything there: Spark, which takes longest, starts while the broker is shown."""
    steps.say("Everything is set up. Spark starts beside the first part, whose figures are lower for that.\n")
    begin = directory / "begin"
    lake = start_part(steps, setup, True, "demo_pipeline.py", directory / "lake", str(setup.spark_archive), str(begin))
    run_part(steps, setup, True, "demo_broker.py", directory / "first")
    begin.touch()
    wait_for_part(lake, "demo_pipeline.py")


def run_part(steps: Steps, setup: Setup, compiled: bool, name: str, directory: Path, *arguments: str) -> None:
    wait_for_part(start_part(steps, setup, compiled, name, directory, *arguments), name)


def wait_for_part(part: subprocess.Popen[bytes], name: str) -> None:
    code = part.wait()
    if code:
        raise SetupFailed(f"{name} ended with code {code}; what went wrong is above")


def start_part(
    steps: Steps, setup: Setup, compiled: bool, name: str, directory: Path, *arguments: str
) -> subprocess.Popen[bytes]:
    """Starts one part of the demo in its environment, with its output on the screen."""
    directory.mkdir()
    environment = keeping_bytecode(os.environ)
    environment.pop("PYTHONPATH", None)
    if not compiled:
        environment["PYTHONPATH"] = str(setup.sources)
    command = [str(setup.python), str(TOOLS / name), *arguments]
    return steps.start(command, cwd=directory, env=environment)


if __name__ == "__main__":
    sys.exit(main())
