"""`moldau server`: configuration, storage check, then the process runs until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time

from moldau.config.definitions import ConfigError
from moldau.server.process import ServerProcess, StartFailed


def run(file: str | None, overrides: list[str]) -> int:
    """Runs a node; returns the exit code."""
    started = time.perf_counter()
    set_up_logging(os.environ.get("MOLDAU_LOG_LEVEL", "WARNING"))
    try:
        config = load(file, overrides)
    except (ConfigError, OSError) as error:
        print(f"moldau server: {error}", file=sys.stderr)
        return 1

    def report_ready(process: ServerProcess) -> None:
        names = process.config.controller_listener_names
        addresses = ", ".join(
            f"{listener.host or '*'}:{listener.port}" for listener in process.listeners if listener.name not in names
        )
        took_ms = (time.perf_counter() - started) * 1000
        print(f"moldau ready: node {process.node.node_id} on {addresses} ({took_ms:.0f} ms)", flush=True)

    process = ServerProcess(config, report_ready)
    try:
        asyncio.run(process.run())
    except StartFailed as error:
        print(f"moldau server: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def set_up_logging(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)", stream=sys.stderr
    )
