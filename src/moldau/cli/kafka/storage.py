"""`kafka-storage`: gives the log directories of a node their identity, and shows what they hold."""

from __future__ import annotations

import sys
from typing import Any

from moldau.cli.kafka.admin_tools import read_config
from moldau.cli.kafka.options import JavaFailure
from moldau.cli.kafka.subcommands import CommandParser


def _parser() -> CommandParser:
    parser = CommandParser(prog="kafka-storage", description="The log directories of a node.")
    commands = parser.add_subparsers(dest="command")
    info = commands.add_parser("info", help="Show what the directories hold.")
    form = commands.add_parser("format", help="Format the directories.")
    for command in (info, form):
        command.add_argument("--config", "-c", required=True, help="The server.properties of the node.")
    form.add_argument("--cluster-id", "-t", required=True, help="The id of the cluster.")
    form.add_argument("--add-scram", "-S", action="append", default=[], help="A SCRAM user.")
    form.add_argument("--ignore-formatted", "-g", action="store_true", help="Leave formatted directories alone.")
    form.add_argument("--force", action="store_true", help="Also format directories that have other things in them.")
    form.add_argument("--release-version", "-r", help="The release that the metadata begins with.")
    form.add_argument("--feature", "-f", action="append", default=[], help="A feature, as name=level.")
    quorum = form.add_mutually_exclusive_group()
    quorum.add_argument("--standalone", "-s", action="store_true", help="A quorum of this node alone.")
    quorum.add_argument("--no-initial-controllers", "-N", action="store_true", help="The node joins a quorum later.")
    quorum.add_argument("--initial-controllers", "-I", help="The quorum: id@host:port:directory-id,...")
    mapping = commands.add_parser("version-mapping", help="The levels of a release.")
    mapping.add_argument("--release-version", "-r", help="The release.")
    needs = commands.add_parser("feature-dependencies", help="What a level needs.")
    needs.add_argument("--feature", "-f", action="append", required=True, help="A feature, as name=level.")
    commands.add_parser("random-uuid", help="Print a random id.")
    return parser


def main(arguments: list[str]) -> int:
    from moldau.config.definitions import ConfigError
    from moldau.server.storage_format import FormatError
    from moldau.storage.meta_properties import DamagedMetaProperties

    options = _parser().parse_args(arguments)
    try:
        lines, code = _run(options)
    except ConfigError as error:
        raise JavaFailure("org.apache.kafka.common.config.ConfigException", error.message) from None
    except (FormatError, DamagedMetaProperties) as error:
        text = str(error)
        if text.startswith(("Invalid cluster.id", "Invalid node.id")):
            raise JavaFailure("java.lang.RuntimeException", text) from None
        sys.stderr.write(f"{text}\n")
        return 1
    print("\n".join(lines))
    return code


def _run(options: Any) -> tuple[list[str], int]:
    """What the subcommand prints, and its exit code."""
    from moldau.server import storage_format
    from moldau.server.posix_disk import PosixDisk

    if options.command == "random-uuid":
        return [storage_format.random_uuid()], 0
    if options.command == "version-mapping":
        return storage_format.version_mapping(options.release_version), 0
    if options.command == "feature-dependencies":
        return storage_format.feature_dependencies(options.feature), 0
    values = read_config(options.config)
    if "process.roles" not in values:
        sentence = 'Missing required configuration "process.roles" which has no default value.'
        raise JavaFailure("org.apache.kafka.common.config.ConfigException", sentence)
    if options.command == "info":
        lines, code = storage_format.storage_info(values, PosixDisk())
        return [*lines, ""], code
    wanted = storage_format.FormatOptions(
        standalone=options.standalone,
        initial_controllers=options.initial_controllers,
        no_initial_controllers=options.no_initial_controllers,
        ignore_formatted=options.ignore_formatted,
        force=options.force,
        release_version=options.release_version,
        features=options.feature,
        add_scram=options.add_scram,
    )
    return storage_format.format_storage(values, options.cluster_id, PosixDisk(), wanted), 0
