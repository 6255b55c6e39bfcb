"""`moldau server`: configuration, storage check, then the process runs until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.config.unserved import check_served, read_by_nobody, without_effect
from moldau.security.sasl_settings import check_logins
from moldau.server.certificates import Certificates
from moldau.server.config_file import (
    DEFAULT_DATA_DIRECTORY,
    DEFAULT_PORT,
    built_in_values,
    given_names,
    load_config,
)
from moldau.server.directory_check import DirectoryInUse, check_no_cluster
from moldau.server.log_lines import set_up_logging
from moldau.server.logins import check_sources
from moldau.server.posix_disk import PosixDisk
from moldau.server.process import CannotListen, ServerProcess, StartFailed
from moldau.storage.log_manager import CannotStart

log = logging.getLogger("moldau.server")


def run(
    file: str | None,
    overrides: list[str],
    *,
    port: int | None = None,
    data_directory: str | None = None,
    force: bool = False,
    cluster_id: str | None = None,
    log_level: str | None = None,
    log_format: str | None = None,
    on_ready: Callable[[ServerProcess], None] | None = None,
) -> int:
    """Runs a node; returns the exit code. Port, directory, force and cluster id are for a start without a file."""
    try:
        set_up_logging(log_level or os.environ.get("MOLDAU_LOG_LEVEL") or "WARNING", log_format)
    except ValueError as error:
        return fail(f"{error}. Look at MOLDAU_LOG_LEVEL and MOLDAU_LOG_FORMAT.")
    try:
        built_in = built_in_values(DEFAULT_PORT if port is None else port, data_directory or DEFAULT_DATA_DIRECTORY)
        config = load_config(file, overrides, built_in=built_in)
        check_served(config)
        certificates = Certificates(config)
        check_logins(config)
        check_sources(config)
        check_directories(config, may_format=file is None)
        if file is None:
            format_if_new(config, force, cluster_id)
        tell_without_effect(config, given_names(file, overrides))
    except (ConfigError, DirectoryInUse) as error:
        return fail(str(error))
    except OSError as error:
        return fail(directory_sentence(error, file))

    def report_ready(process: ServerProcess) -> None:
        names = process.config.controller_listener_names
        for_clients = [listener for listener in process.listeners if listener.name not in names]
        addresses = ", ".join(f"{shown.host or '*'}:{shown.port}" for shown in for_clients or process.listeners)
        log.info("node %d is ready on %s", process.node.node_id, addresses)
        say(f"moldau ready: node {process.node.node_id} on {addresses} ({process_age_ms():.0f} ms), {time_of_day()}")
        if on_ready is not None:
            on_ready(process)

    try:
        asyncio.run(ServerProcess(config, report_ready, certificates).run())
        say(f"moldau stopped: node {config.node_id}, {time_of_day()}")
    except CannotListen as error:
        return fail(f"{error} {port_advice(config, file)}")
    except (StartFailed, CannotStart) as error:
        return fail(str(error))
    except KeyboardInterrupt:
        return 130
    return 0


def say(line: str) -> None:
    """To whoever started this, if they still listen; a pipe that nobody reads is no reason to end with an error."""
    try:
        print(line, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lives)


def time_of_day() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def directory_sentence(error: OSError, file: str | None) -> str:
    """What is wrong with a directory or file, and what to do about it."""
    if error.filename is None:
        return str(error)
    place = "with --data-dir" if file is None else f"by log.dirs in {file}"
    return f"{error.filename} cannot be used: {error.strerror}. Choose another directory {place}."


def process_age_ms() -> float:
    """How long ago this process began, interpreter and imports included; 0 where the system does not say."""
    try:
        with open("/proc/self/stat") as stat, open("/proc/uptime") as uptime:
            ticks = int(stat.read().rpartition(")")[2].split()[19])
            return 1000 * (float(uptime.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return 0.0


def fail(message: str) -> int:
    for line in message.splitlines() or [""]:
        print(f"moldau server: {line}", file=sys.stderr)
    return 1


def check_directories(config: BrokerConfig, may_format: bool) -> None:
    """Before anything is written, be it a lock: what is no log directory is left as it is."""
    disk = PosixDisk()
    for path in dict.fromkeys([*config.log_dirs, config.metadata_log_dir]):
        check_no_cluster(disk, path)
        if not may_format:
            check_is_formatted(path)


def check_is_formatted(path: str) -> None:
    """A directory that is missing, or cannot be looked into, is a matter of the node, which may do without it."""
    if not os.path.isdir(path):
        return
    try:
        os.stat(os.path.join(path, "meta.properties"))
    except FileNotFoundError:
        raise DirectoryInUse(f"No `meta.properties` found in {path} (have you run `moldau storage format`?)") from None
    except OSError:
        return


def format_if_new(config: BrokerConfig, force: bool, cluster_id: str | None = None) -> None:
    """The embedded default formats its own directory the first time."""
    if any(os.path.exists(os.path.join(path, "meta.properties")) for path in config.log_dirs):
        return
    from moldau.server.storage_format import FormatError, FormatOptions, format_storage, random_uuid

    options = FormatOptions(standalone=not config.voters, force=force)
    try:
        format_storage(config.values, cluster_id or random_uuid(), PosixDisk(), options)
    except FormatError as error:
        raise ConfigError(str(error)) from None


def tell_without_effect(config: BrokerConfig, given: list[str]) -> None:
    """Once, in one line each for what may come and what will not: nothing that somebody has set is silently ignored."""
    names = without_effect(config, given)
    if names:
        log.warning("settings that are known but have no effect yet: %s", ", ".join(names))
    names = read_by_nobody(given)
    if names:
        log.warning("settings without effect here: %s", ", ".join(names))


def port_advice(config: BrokerConfig, file: str | None) -> str:
    """What to do about an address that cannot be had, so that it works when it is done."""
    if file is None and config.values["listeners"] == built_in_values(config.listeners[0].port)["listeners"]:
        return "Choose another port with --port, and another directory with --data-dir where both are to run."
    where = "with --override" if file is None else f"in {file}"
    return f"Set `listeners` {where} to addresses that are free; it names all of them: {config.values['listeners']}"
