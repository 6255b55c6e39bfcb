"""From nothing to the first message: a fresh clone and empty caches, and every line with the seconds since its command.

    python3 bench/first_minute.py                     make demo, twice
    python3 bench/first_minute.py --target wheel      another target of the Makefile, once

Needs nothing but git, make and Python. Clones the commit that is checked out into a temporary directory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the lines of a make target on a fresh clone with empty caches.")
    parser.add_argument("--target", default="demo")
    parser.add_argument("--runs", type=int, help="how often in that clone; two for the demo, else one")
    arguments = parser.parse_args()
    runs = arguments.runs or (2 if arguments.target == "demo" else 1)
    with tempfile.TemporaryDirectory(prefix="moldau-first-") as directory:
        clone = Path(directory, "moldau")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        environment = {**os.environ, "PIP_CACHE_DIR": str(Path(directory, "cache"))}
        codes = []
        for run in range(1, runs + 1):
            print(f"--- make {arguments.target}, run {run}, load {os.getloadavg()[0]:.1f}", flush=True)
            codes.append(timed_lines(["make", arguments.target], clone, environment))
    return max(codes)


def timed_lines(command: list[str], directory: Path, environment: dict[str, str]) -> int:
    began = time.monotonic()
    running = subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert running.stdout is not None
    for line in running.stdout:
        print(f"{time.monotonic() - began:7.1f}  {line}", end="", flush=True)
    code = running.wait()
    print(f"{time.monotonic() - began:7.1f}  ended with code {code}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
