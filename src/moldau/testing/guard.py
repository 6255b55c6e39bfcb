"""Cleans up behind tests that were killed: ends the nodes and removes their directory when this process is gone.

The guard is a shell that reads from a pipe whose other end only this process has. When the pipe ends without a
farewell, however that came about, it kills what it was told of, paused nodes included, and removes the directory. A
shell needs a megabyte and a millisecond; the system's own way (PR_SET_PDEATHSIG) looks at the thread that started a
process, not at its process, leaves the directory behind, and is Linux's alone.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

# Nodes have a session of their own each, so that a number names the group of a node and of its workers.
SCRIPT = """
nodes=' '
while read -r word number; do
  case $word in
    started) nodes="$nodes$number ";;
    ended) nodes="${nodes%%" $number "*} ${nodes#*" $number "}";;
    farewell) exit 0;;
  esac
done
for number in $nodes; do kill -s KILL -- "-$number"; done
tries=0
while ! rm -rf -- "$@" && [ $tries -lt 20 ]; do sleep 0.1; tries=$((tries + 1)); done
"""


class Guard:
    """Watches over the nodes of one cluster; does nothing where there is no shell."""

    def __init__(self, leftovers: Iterable[Path]) -> None:
        """leftovers: what is to be removed."""
        self._shell: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", SCRIPT, "moldau-test-guard", *map(str, leftovers)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )

    def started(self, pid: int) -> None:
        self._say(f"started {pid}\n")

    def ended(self, pid: int) -> None:
        self._say(f"ended {pid}\n")

    def close(self) -> None:
        """All nodes are gone, and so is what they left."""
        self._say("farewell\n")
        shell, self._shell = self._shell, None
        if shell is not None:
            if shell.stdin is not None:
                with contextlib.suppress(OSError):
                    shell.stdin.close()
            shell.wait()

    def _say(self, line: str) -> None:
        if self._shell is not None and self._shell.stdin is not None:
            with contextlib.suppress(OSError):  # somebody ended it: the nodes still notice the end of their own input
                self._shell.stdin.write(line.encode())
                self._shell.stdin.flush()
