"""`moldau server`: configuration, storage check, then the process runs until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.node.metadata_node import CannotStart as MetadataCannotStart
from moldau.server.config_file import load_config
from moldau.server.posix_disk import PosixDisk
from moldau.server.process import ServerProcess, StartFailed
from moldau.storage.log_manager import CannotStart as LogsCannotStart


def run(file: str | None, overrides: list[str]) -> int:
    """Runs a node; returns the exit code."""
    set_up_logging(os.environ.get("MOLDAU_LOG_LEVEL", "WARNING"))
    try:
        config = load_config(file, overrides)
        if file is None:
            format_if_new(config)
    except (ConfigError, OSError) as error:
        return fail(str(error))

    def report_ready(process: ServerProcess) -> None:
        names = process.config.controller_listener_names
        for_clients = [listener for listener in process.listeners if listener.name not in names]
        addresses = ", ".join(f"{shown.host or '*'}:{shown.port}" for shown in for_clients or process.listeners)
        print(f"moldau ready: node {process.node.node_id} on {addresses} ({process_age_ms():.0f} ms)", flush=True)

    try:
        asyncio.run(ServerProcess(config, report_ready).run())
    except (StartFailed, MetadataCannotStart, LogsCannotStart) as error:
        return fail(str(error))
    except KeyboardInterrupt:
        return 130
    return 0


def process_age_ms() -> float:
    """How long ago this process began, interpreter and imports included; 0 where the system does not say."""
    try:
        with open("/proc/self/stat") as stat, open("/proc/uptime") as uptime:
            ticks = int(stat.read().rpartition(")")[2].split()[19])
            return 1000 * (float(uptime.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return 0.0


def fail(message: str) -> int:
    print(f"moldau server: {message}", file=sys.stderr)
    return 1


def format_if_new(config: BrokerConfig) -> None:
    """The embedded default formats its own folder the first time."""
    if any(os.path.exists(os.path.join(path, "meta.properties")) for path in config.log_dirs):
        return
    from moldau.server.storage_format import FormatOptions, format_storage, random_uuid

    options = FormatOptions(standalone=not config.voters)
    format_storage(config.values, random_uuid(), PosixDisk(), options)


def set_up_logging(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)", stream=sys.stderr
    )
