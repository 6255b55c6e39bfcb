"""Runs several nodes as processes of one machine: starts them, shows what they say, restarts what dies.

A node's standard input is a pipe whose other end only this process has: however this process ends, the nodes notice
and stop. Each node has a session of its own, so that Ctrl-C reaches this process alone, which then stops them in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from moldau.server.local_cluster import LocalCluster, PlannedNode
from moldau.server.process import PARENT_VARIABLE

READY_PREFIX: Final = b"moldau ready:"
RESTART_FIRST_S: Final = 0.2
RESTART_MAX_S: Final = 10.0
# Who ran so long gets the short wait again.
HEALTHY_S: Final = 30.0
STOP_S_MAX: Final = 60.0
LINE_BYTES_MAX: Final = 1 << 16
START_FAILED: Final = 1

Say = Callable[[PlannedNode | None, str], None]
"""Shows a line of a node, or of the supervisor itself."""


class Member:
    """One node and the process that it has at the moment."""

    def __init__(self, node: PlannedNode, command: list[str]) -> None:
        self.node = node
        self.command = command
        self.process: asyncio.subprocess.Process | None = None
        self.is_ready = False
        self.starts = 0
        self.wait_s = RESTART_FIRST_S

    @property
    def pid(self) -> int | None:
        return None if self.process is None else self.process.pid

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


class Supervisor:
    """`run` returns the exit code: 0 when it was told to stop, 1 when the cluster could not be started."""

    def __init__(
        self, cluster: LocalCluster, overrides: Sequence[str], say: Say, on_ready: Callable[[Supervisor], None]
    ) -> None:
        self.cluster = cluster
        self.members = [Member(node, server_command(cluster, node, overrides)) for node in cluster.nodes]
        self._say = say
        self._on_ready = on_ready
        self._has_reported_ready = False
        self._failed = False
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal)
        tasks = [asyncio.create_task(self._keep_running(member)) for member in self.members]
        try:
            await self._stopping.wait()
            await self._stop_in_order()
            await asyncio.gather(*tasks)
        finally:
            for member in self.members:
                member.signal(signal.SIGKILL)
        return START_FAILED if self._failed else 0

    def _on_signal(self) -> None:
        if not self._stopping.is_set():
            self._say(None, "stopping; once more to kill what is left")
            self._stopping.set()
            return
        for member in self.members:
            member.signal(signal.SIGKILL)

    # One node

    async def _keep_running(self, member: Member) -> None:
        while not self._stopping.is_set():
            started = time.monotonic()
            await self._run_once(member)
            if self._stopping.is_set():
                return
            if time.monotonic() - started > HEALTHY_S:
                member.wait_s = RESTART_FIRST_S
            self._say(None, f"{member.node.name} is started again in {member.wait_s:.1f} s")
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), member.wait_s)
            member.wait_s = min(RESTART_MAX_S, 2 * member.wait_s)

    async def _run_once(self, member: Member) -> None:
        process = await asyncio.create_subprocess_exec(
            *member.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=child_environment(),
            start_new_session=True,
        )
        member.process = process
        member.starts += 1
        assert process.stdout is not None
        await self._show_output(member, process.stdout)
        code = await process.wait()
        member.is_ready = False
        if not self._stopping.is_set():
            self._on_ended(member, code)

    async def _show_output(self, member: Member, output: asyncio.StreamReader) -> None:
        rest = b""
        while True:
            data = await output.read(LINE_BYTES_MAX)
            *lines, rest = (rest + data).split(b"\n")
            if not data or len(rest) > LINE_BYTES_MAX:
                lines, rest = [*lines, rest] if rest else lines, b""
            for line in lines:
                self._say(member.node, line.decode(errors="replace"))
                if line.startswith(READY_PREFIX):
                    self._on_member_ready(member)
            if not data:
                return

    def _on_member_ready(self, member: Member) -> None:
        member.is_ready = True
        if not self._has_reported_ready and all(other.is_ready for other in self.members):
            self._has_reported_ready = True
            self._on_ready(self)

    def _on_ended(self, member: Member, code: int) -> None:
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        self._say(None, f"{member.node.name} ended {how}")
        if code == START_FAILED and member.starts == 1 and not self._has_reported_ready:
            # It said why: a wrong setting or a port that is taken, which another try does not mend.
            self._failed = True
            self._stopping.set()

    # The end

    async def _stop_in_order(self) -> None:
        """Brokers first, while there are controllers to take leave of; without a majority nobody need wait for one."""
        brokers = [member for member in self.members if not member.node.is_controller]
        await self._stop(brokers)
        voters = [member for member in self.members if member.node.is_controller and is_running(member)]
        majority = len(self.cluster.controllers()) // 2 + 1
        while len(voters) >= majority:
            await self._stop([voters.pop(0)])
        await self._stop(voters, hurry=True)

    async def _stop(self, members: list[Member], hurry: bool = False) -> None:
        waits = []
        for member in members:
            if member.process is not None and is_running(member):
                member.signal(signal.SIGTERM)
                waits.append(asyncio.create_task(member.process.wait()))
        if hurry and waits:
            await asyncio.sleep(0.05)
            for member in members:
                member.signal(signal.SIGTERM)
        if not waits:
            return
        await asyncio.wait(waits, timeout=STOP_S_MAX)
        for member in members:
            if is_running(member):
                self._say(None, f"{member.node.name} does not stop and is killed")
                member.signal(signal.SIGKILL)


def is_running(member: Member) -> bool:
    return member.process is not None and member.process.returncode is None


def server_command(cluster: LocalCluster, node: PlannedNode, overrides: Sequence[str]) -> list[str]:
    """The settings of the user are in the file; given again they also win over KAFKA_ variables of the environment."""
    command = [sys.executable, "-m", "moldau", "server", str(cluster.properties_file(node))]
    for override in overrides:
        command += ["--override", override]
    return command


def child_environment() -> dict[str, str]:
    return {**os.environ, PARENT_VARIABLE: "1", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
