"""`moldau storage`: gives the log directories of a node their identity, with the flags of kafka-storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from moldau.cli.options import format_option
from moldau.cli.output import print_json

if TYPE_CHECKING:
    from moldau.server.storage_format import Formatted

config_option = click.option(
    "-c", "--config", "file", required=True, metavar="FILE", help="The server.properties of the node."
)


def _values(file: str) -> dict[str, str]:
    from moldau.server.config_file import read_values

    return read_values(file)


Result = TypeVar("Result")


def _try(work: Callable[[], Result]) -> Result:
    """What the work returns; what it cannot do becomes one sentence."""
    from moldau.config.definitions import ConfigError
    from moldau.server.storage_format import FormatError
    from moldau.storage.meta_properties import DamagedMetaProperties

    try:
        return work()
    except (FormatError, ConfigError, DamagedMetaProperties) as error:
        raise click.ClickException(str(error)) from None


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)


@click.command("random-uuid")
@format_option
def random_uuid(output_format: str) -> None:
    """Print a random id for a cluster."""
    from moldau.server import storage_format

    uuid = storage_format.random_uuid()
    if output_format == "json":
        print_json({"uuid": uuid})
    else:
        click.echo(uuid)


@click.command("format")
@click.option("-t", "--cluster-id", required=True, metavar="ID", help="The id of the cluster; see random-uuid.")
@config_option
@click.option("-s", "--standalone", is_flag=True, help="The node is the only controller of a dynamic quorum.")
@click.option("-I", "--initial-controllers", metavar="ID@HOST:PORT:DIR-ID,...", help="The first dynamic quorum.")
@click.option("-N", "--no-initial-controllers", is_flag=True, help="The node joins a dynamic quorum later.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Leave directories alone that are formatted already.")
@click.option("--force", is_flag=True, help="Also format directories that have other things in them.")
@click.option("-r", "--release-version", metavar="VERSION", help="The metadata.version by release, such as 4.3-IV0.")
@click.option("-f", "--feature", "features", multiple=True, metavar="NAME=LEVEL", help="A feature level.")
@click.option("-S", "--add-scram", multiple=True, metavar="TEXT", help="SCRAM-SHA-256=[name=alice,password=secret]")
@format_option
def format_storage(
    cluster_id: str,
    file: str,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    ignore_formatted: bool,
    force: bool,
    release_version: str | None,
    features: tuple[str, ...],
    add_scram: tuple[str, ...],
    output_format: str,
) -> None:
    """Format the log directories of a node.

    \b
    Example:
      moldau storage format -t $(moldau storage random-uuid) -c server.properties --standalone
    """
    from moldau.server import storage_format
    from moldau.server.posix_disk import PosixDisk

    options = storage_format.FormatOptions(
        standalone=standalone,
        initial_controllers=initial_controllers,
        no_initial_controllers=no_initial_controllers,
        ignore_formatted=ignore_formatted,
        force=force,
        release_version=release_version,
        features=list(features),
        add_scram=list(add_scram),
    )
    values = _values(file)
    done = _try(lambda: storage_format.format_directories(values, cluster_id, PosixDisk(), options))
    _tell_unserved(values)
    if output_format == "json":
        print_json(_formatted_json(done, cluster_id))
    else:
        _print_lines(done.lines())


def _tell_unserved(values: dict[str, str]) -> None:
    """The directories are as good for a later version and for Apache Kafka, but this one will not start on them."""
    from moldau.config.broker_config import BrokerConfig
    from moldau.config.unserved import unserved_settings

    for sentence in unserved_settings(BrokerConfig(values, warn=False)):
        click.echo(f"`moldau server` will not start with this file: {sentence}", err=True)


def _formatted_json(done: Formatted, cluster_id: str) -> dict[str, object]:
    from moldau.protocol.uuids import uuid_to_text

    rows = [
        {"path": each.path, "kind": each.kind, "directory_id": uuid_to_text(each.directory_id)}
        for each in done.directories
    ]
    return {"cluster_id": cluster_id, "features": done.levels, "formatted": rows}


@click.command("info")
@config_option
@format_option
@click.pass_context
def info(context: click.Context, file: str, output_format: str) -> None:
    """Show what the log directories of a node hold: whose they are, who wrote them, whether they can be opened.

    Exit code 1 when one of them cannot be opened by this version. `moldau kafka-storage info` prints what Kafka's tool
    prints.
    """
    from moldau.cli.kafka.files import ReadOnlyDisk
    from moldau.cli.storage_view import print_report, report_json
    from moldau.server.storage_report import storage_report

    values = _values(file)
    report = _try(lambda: storage_report(values, ReadOnlyDisk()))
    if output_format == "json":
        print_json(report_json(report))
    else:
        print_report(report)
    context.exit(0 if all(each.can_be_opened for each in report.directories) else 1)


@click.command("version-mapping")
@click.option("-r", "--release-version", metavar="VERSION", help="The release. Default: the latest.")
@format_option
def version_mapping(release_version: str | None, output_format: str) -> None:
    """Show the feature levels that belong to a release."""
    from moldau.server import storage_format

    levels = _try(lambda: storage_format.release_features(release_version))
    if output_format == "json":
        print_json(levels)
    else:
        _print_lines([storage_format.level_text(name, level) for name, level in levels.items()])


@click.command("feature-dependencies")
@click.option(
    "-f", "--feature", "features", multiple=True, required=True, metavar="NAME=LEVEL", help="A feature level."
)
@format_option
def feature_dependencies(features: tuple[str, ...], output_format: str) -> None:
    """Show which other levels a feature level needs."""
    from moldau.server import storage_format

    if output_format == "json":
        needs = _try(lambda: storage_format.needed_features(list(features)))
        print_json([{"feature": name, "level": level, "requires": needed} for name, level, needed in needs])
    else:
        _print_lines(_try(lambda: storage_format.feature_dependencies(list(features))))
