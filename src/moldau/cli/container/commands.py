"""The steps of a container: configure, ensure, launch; kafka-server-start and -stop; and whether the node responds.

`configure` writes the properties that the environment asks for, `launch` formats what is not formatted yet and runs the
node from them. Between the two, others change that file, so the environment counts in `configure` alone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.container.layout import ROOT_VARIABLE, Layout, find_layout
from moldau.config.definitions import ConfigError

if TYPE_CHECKING:
    from moldau.config.broker_config import BrokerConfig
    from moldau.server.process import ServerProcess
    from moldau.server.storage_format import FormatOptions

USAGE = (
    "Usage: python -m moldau.cli.container configure|ensure|launch apache|confluent\n"
    "       python -m moldau.cli.container server-start FILE.properties [--override KEY=VALUE]...\n"
    "       python -m moldau.cli.container server-stop|health\n"
    "       python -m moldau.cli.container kafka-ready BROKERS SECONDS -b HOST:PORT[,…] [-c FILE.properties]"
)
DEFAULT_CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
"""What a container of apache/kafka without CLUSTER_ID formats its directories for."""
QUORUM_HINT = "Set KAFKA_CONTROLLER_QUORUM_VOTERS, or format the directory with kafka-storage before the first start."


def main(arguments: Sequence[str]) -> int:
    """Runs one step; returns the exit code."""
    from moldau.cli.container.settings import Refused

    command, rest = (arguments[0] if arguments else ""), list(arguments[1:])
    try:
        if command == "server-start" and rest:
            return _server_start(rest)
        if command == "server-stop" and not rest:
            return _server_stop()
        if command == "health" and not rest:
            return _health()
        if command in ("kafka-ready", "zk-ready"):
            from moldau.cli.container.readiness import wait_for_brokers

            return wait_for_brokers(rest) if command == "kafka-ready" else 0
        if command in ("configure", "ensure", "launch") and rest in (["apache"], ["confluent"]):
            steps = {"configure": _configure, "ensure": _ensure, "launch": _launch}
            return steps[command](find_layout(rest[0]))
    except (Refused, ConfigError) as error:
        print(str(error), file=sys.stderr)
        return 1
    print(USAGE, file=sys.stderr)
    return 2


def _configure(layout: Layout) -> int:
    from moldau.cli.container.settings import properties_text, settings_of
    from moldau.server.config_file import read_properties

    mounted = None
    if layout.mounted is not None and layout.mounted.exists():
        print(f"Settings of {layout.mounted} are used; variables of the environment win over them.")
        mounted = read_properties(str(layout.mounted))
    settings = settings_of(
        os.environ, layout.name == "confluent", str(layout.default_data()), str(layout.secrets), mounted, _read_secret
    )
    for note in settings.notes:
        print(note)
    path = layout.path_to_write()
    try:
        path.write_text(properties_text(settings.values), encoding="utf-8")
        path.chmod(0o640)  # there may be passwords in it
    except OSError as error:
        print(f"{path} file not writable: {error.strerror}. Give the container a tmpfs.", file=sys.stderr)
        return 1
    print(f"{len(settings.values)} settings are in {path}.", flush=True)
    return 0


def _read_secret(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _ensure(layout: Layout) -> int:
    """Directories that can be written to, and formatted for the cluster that was asked for."""
    return _format(layout, must_fit=True)


def _launch(layout: Layout) -> int:
    """In apache/kafka the launcher compares the cluster's id; in cp-kafka `ensure` does, which some leave out."""
    code = _format(layout, must_fit=layout.name == "apache")
    if code:
        return code
    return _serve(str(layout.path_to_read()), [])


def _format(layout: Layout, must_fit: bool) -> int:
    from moldau.config.broker_config import BrokerConfig
    from moldau.server.config_file import read_properties
    from moldau.server.posix_disk import PosixDisk
    from moldau.server.storage_format import FormatError, format_directories

    values = read_properties(str(layout.path_to_read()))
    config = BrokerConfig(values, warn=False)
    directories = list(dict.fromkeys([*config.log_dirs, config.metadata_log_dir]))
    for directory in directories:
        _check_writable(directory)
    if not must_fit and all(os.path.exists(os.path.join(directory, "meta.properties")) for directory in directories):
        return 0
    options = _format_options(config)
    cluster_id = os.environ.get("CLUSTER_ID", "").strip() or DEFAULT_CLUSTER_ID
    try:
        done = format_directories(values, cluster_id, PosixDisk(), options)
    except FormatError as error:
        print(f"{error} {QUORUM_HINT if 'controller.quorum.voters is not set' in str(error) else ''}", file=sys.stderr)
        return 1
    for formatted in done.directories:
        print(f"Formatting {formatted.kind} directory {formatted.path} for cluster {cluster_id}.", flush=True)
    return 0


def _format_options(config: BrokerConfig) -> FormatOptions:
    """A quorum without voters begins with this node if it names no other; who is to join one is formatted by hand."""
    from moldau.server.storage_format import FormatOptions

    options = FormatOptions(ignore_formatted=True)
    if config.is_controller and not config.voters:
        has_metadata = os.path.exists(os.path.join(config.metadata_log_dir, "meta.properties"))
        options.standalone = not has_metadata and _names_itself_alone(config)
        options.no_initial_controllers = has_metadata
    return options


def _names_itself_alone(config: BrokerConfig) -> bool:
    own_hosts = ("localhost", "127.0.0.1", "::1", os.uname().nodename)
    own_ports = {endpoint.port for endpoint in config.controller_listeners()}
    return all(host in own_hosts and port in own_ports for host, port in config.bootstrap_servers)


def _check_writable(directory: str) -> None:
    from moldau.cli.container.settings import Refused

    place = Path(directory)
    while not place.exists() and place != place.parent:
        place = place.parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise Refused(
            f"{directory} is not writable for user {os.getuid()} of group {os.getgid()}. Give the volume to that user, "
            "or run the container with another one (--user)."
        )


def _server_start(arguments: list[str]) -> int:
    """kafka-server-start: [-daemon] FILE.properties [--override KEY=VALUE]..."""
    from moldau.cli.container.settings import Refused
    from moldau.cli.server import BadArguments, parse_arguments

    if arguments[0] == "-daemon":
        raise Refused("kafka-server-start has no -daemon here: put it into the background with &.")
    try:
        asked = parse_arguments(arguments)
    except BadArguments as error:
        print(f"USAGE: kafka-server-start server.properties [--override property=value]*\n{error}", file=sys.stderr)
        return 1
    if asked.file is None:
        print("USAGE: kafka-server-start server.properties [--override property=value]*", file=sys.stderr)
        return 1
    return _serve(asked.file, asked.overrides)


def _serve(file: str, overrides: list[str]) -> int:
    from moldau.cli.container.settings import log_level_of
    from moldau.server.config_file import read_properties
    from moldau.server.main import run

    level = log_level_of(os.environ)
    for name in [name for name in os.environ if name.startswith("KAFKA_")]:
        del os.environ[name]  # they are in the file as far as they are wanted
    had_zookeeper = "zookeeper.connect" in read_properties(file)
    return run(file, overrides, log_level=level, on_ready=lambda process: announce(process, had_zookeeper))


def announce(process: ServerProcess, had_zookeeper: bool) -> None:
    """The lines of Kafka's log that others wait for, at every level of logging."""
    from moldau.cli.container.ready_lines import ready_lines

    config = process.config
    for line in ready_lines(config.node_id, config.is_broker, had_zookeeper):
        print(line)
    sys.stdout.flush()


def _server_stop() -> int:
    """kafka-server-stop: asks every server in this container to stop."""
    own_root = f"{ROOT_VARIABLE}={os.environ.get(ROOT_VARIABLE, '')}".encode()
    found = False
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            variables = path.with_name("environ").read_bytes().split(b"\0")
        except OSError:
            continue
        root = next((each for each in variables if each.startswith(ROOT_VARIABLE.encode())), own_root)
        if root == own_root and b"moldau.cli.container" in words and {b"launch", b"server-start"} & set(words):
            os.kill(int(path.parent.name), signal.SIGTERM)
            found = True
    if not found:
        print("No kafka server to stop", file=sys.stderr)
    return 0 if found else 1


def _health() -> int:
    """Of the node that was configured last; a container has one."""
    from moldau.cli.container.health import HealthProblem, check_health
    from moldau.server.config_file import read_properties

    paths = [find_layout(name).path_to_read() for name in ("apache", "confluent")]
    written = sorted((path for path in paths if path.exists()), key=lambda path: path.stat().st_mtime)
    if not written:
        print("The node is not configured yet.", file=sys.stderr)
        return 1
    try:
        print(check_health(read_properties(str(written[-1]))))
    except HealthProblem as error:
        print(str(error), file=sys.stderr)
        return 1
    return 0
