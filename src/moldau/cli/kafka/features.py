"""`kafka-features`: the levels of a cluster's features: show, raise, lower, switch off."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.admin_tools import Connect, ask, connect, java_failure
from moldau.cli.kafka.options import JavaFailure
from moldau.cli.kafka.subcommands import CommandParser, UsageError, connection_options

if TYPE_CHECKING:
    from moldau.client.admin import Admin

# command -> (what was done, what cannot be done, the way of the change: up, down, down with loss)
VERBS = {"upgrade": "upgraded", "downgrade": "downgraded", "disable": "disabled"}
# Commands that need no cluster.
TABLES = ("version-mapping", "feature-dependencies")
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def _parser() -> CommandParser:
    parser = CommandParser(prog="kafka-features", description="The features of a cluster.")
    connection_options(parser, required=False)
    parser.add_argument("--command-config", help="A file with settings for the admin client.")
    commands = parser.add_subparsers(dest="command")
    describe = commands.add_parser("describe", help="Show the features.")
    describe.add_argument("--node-id", type=int, help="As this node knows them.")
    for verb in VERBS:
        command = commands.add_parser(verb, help=f"Change features: {verb}.")
        if verb != "disable":
            command.add_argument("--metadata", help="A level of metadata.version by its name.")
            command.add_argument("--release-version", help="All levels of a release.")
        command.add_argument("--feature", action="append", default=[], help="A feature, as name=level.")
        if verb != "upgrade":
            command.add_argument("--unsafe", action="store_true", help="Also where metadata is lost.")
        command.add_argument("--dry-run", action="store_true", help="Only ask whether it could be done.")
    mapping = commands.add_parser("version-mapping", help="The levels of a release.")
    mapping.add_argument("--release-version", help="The release.")
    needs = commands.add_parser("feature-dependencies", help="What a level needs.")
    needs.add_argument("--feature", action="append", required=True, help="A feature, as name=level.")
    return parser


def main(arguments: list[str], connect: Connect = connect) -> int:
    try:
        options = _parser().parse_args(arguments)
        if options.command not in TABLES and not (options.bootstrap_server or options.bootstrap_controller):
            raise JavaFailure("", "You must specify either --bootstrap-controller or --bootstrap-server.")
    except (UsageError, JavaFailure) as error:
        reason = error.reason if isinstance(error, UsageError) else error.message
        sys.stderr.write(f"Command line error: {reason}. Type --help for help.")
        return 1
    try:
        if options.command in TABLES:
            _print_table(options)
            return 0
        where = (options.bootstrap_server, options.command_config, options.bootstrap_controller)
        with ask("", lambda: connect(*where)) as admin:
            if options.command == "describe":
                for line in feature_lines(admin, options.node_id):
                    print(line)
            else:
                _update(admin, options)
    except JavaFailure as failure:
        sys.stdout.flush()
        sys.stderr.write(f"{failure.message}\n")
        return 1
    return 0


def _print_table(options: Any) -> None:
    """What needs no cluster: the levels of releases and what they depend on."""
    from moldau.server import storage_format

    try:
        if options.command == "version-mapping":
            lines = storage_format.version_mapping(options.release_version)
        else:
            lines = storage_format.feature_dependencies(options.feature)
    except storage_format.FormatError as error:
        raise JavaFailure("java.lang.IllegalArgumentException", str(error)) from None
    print("\n".join(lines))


def feature_lines(admin: Admin, node_id: int | None) -> list[str]:
    from moldau.metadata.features import METADATA_VERSION, metadata_version_name

    found = ask("describeFeatures", lambda: admin.describe_features(node_id))

    def shown(name: str, level: int) -> str:
        return metadata_version_name(level) if name == METADATA_VERSION and level > 0 else str(level)

    epoch = "-" if found.finalized_epoch is None else str(found.finalized_epoch)
    lines = []
    for name in sorted(found.supported):
        low, high = found.supported[name]
        level = found.finalized[name].highest if name in found.finalized else 0
        lines.append(
            f"Feature: {name:<40}  SupportedMinVersion: {shown(name, low):<15}  "
            f"SupportedMaxVersion: {shown(name, high):<15}  FinalizedVersionLevel: {shown(name, level):<15}  "
            f"Epoch: {epoch}"
        )
    return lines


def _update(admin: Admin, options: Any) -> None:
    """Changes the features and tells of each what became of it."""
    from moldau.client.admin import FeatureUpdate

    levels = _read_levels(options)
    way = UPGRADE
    if options.command != "upgrade":
        way = UNSAFE_DOWNGRADE if options.unsafe else SAFE_DOWNGRADE
    updates = {name: FeatureUpdate(level, way) for name, level in levels.items()}
    outcomes = ask("updateFeatures", lambda: admin.update_features(updates, validate_only=options.dry_run))
    failed = 0
    for name in sorted(levels):
        to = "" if options.command == "disable" else f" to {levels[name]}"
        error = outcomes[name].error
        if error is not None:
            failed += 1
            cannot = "Can not" if options.dry_run else "Could not"
            print(f"{cannot} {options.command} {name}{to}. {java_failure(error).message}")
        else:
            print(f"{name} {'can be' if options.dry_run else 'was'} {VERBS[options.command]}{to}.")
    if failed:
        raise JavaFailure("TerseException", f"{failed} out of {len(levels)} operation(s) failed.")


def _read_levels(options: Any) -> dict[str, int]:
    from moldau.metadata.features import METADATA_VERSION, default_feature_levels
    from moldau.server.storage_format import FormatError, release_level

    terse = "TerseException"
    levels: dict[str, int] = {}
    if options.command == "disable":
        levels = dict.fromkeys(options.feature, 0)
    else:
        try:
            if options.release_version is not None:
                level = release_level(options.release_version)
                levels = {METADATA_VERSION: level, **default_feature_levels(level)}
            if options.metadata is not None:
                levels[METADATA_VERSION] = release_level(options.metadata)
        except FormatError as error:
            raise JavaFailure(terse, str(error)) from None
        for text in options.feature:
            name, equals, level_text = text.partition("=")
            if not equals:
                raise JavaFailure(terse, f"Can't parse feature=level string {text}: equals sign not found.")
            if not level_text.strip().isdecimal():
                raise JavaFailure(
                    terse, f"Can't parse feature=level string {text}: unable to parse {level_text.strip()} as a short."
                )
            levels[name.strip()] = int(level_text)
    if not levels:
        raise JavaFailure(terse, "You must specify at least one feature to " + options.command)
    return levels
