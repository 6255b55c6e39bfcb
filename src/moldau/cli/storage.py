"""`moldau storage`: gives the log directories of a node their identity, with the flags of kafka-storage."""

from __future__ import annotations

from collections.abc import Callable

import click

config_option = click.option(
    "-c", "--config", "file", required=True, metavar="FILE", help="The server.properties of the node."
)


def _values(file: str) -> dict[str, str]:
    from moldau.server.config_file import read_values

    return read_values(file)


def _run(work: Callable[[], list[str]]) -> None:
    """Prints what the work returns; what it cannot do becomes one sentence."""
    from moldau.config.definitions import ConfigError
    from moldau.server.storage_format import FormatError
    from moldau.storage.meta_properties import DamagedMetaProperties

    try:
        lines = work()
    except (FormatError, ConfigError, DamagedMetaProperties) as error:
        raise click.ClickException(str(error)) from None
    for line in lines:
        click.echo(line)


@click.command("random-uuid")
def random_uuid() -> None:
    """Print a random id for a cluster."""
    import os

    from moldau.protocol import uuids

    click.echo(uuids.uuid_to_text(uuids.random_uuid(os.urandom)))


@click.command("format")
@click.option("-t", "--cluster-id", required=True, metavar="ID", help="The id of the cluster; see random-uuid.")
@config_option
@click.option("-s", "--standalone", is_flag=True, help="The node is the only controller of a dynamic quorum.")
@click.option("-I", "--initial-controllers", metavar="ID@HOST:PORT:DIR-ID,...", help="The first dynamic quorum.")
@click.option("-N", "--no-initial-controllers", is_flag=True, help="The node joins a dynamic quorum later.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Leave directories alone that are formatted already.")
@click.option("-r", "--release-version", metavar="VERSION", help="The metadata.version by release, such as 4.3-IV0.")
@click.option("-f", "--feature", "features", multiple=True, metavar="NAME=LEVEL", help="A feature level.")
@click.option("-S", "--add-scram", multiple=True, metavar="TEXT", help="SCRAM-SHA-256=[name=alice,password=secret]")
def format_storage(
    cluster_id: str,
    file: str,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    ignore_formatted: bool,
    release_version: str | None,
    features: tuple[str, ...],
    add_scram: tuple[str, ...],
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
        release_version=release_version,
        features=list(features),
        add_scram=list(add_scram),
    )
    _run(lambda: storage_format.format_storage(_values(file), cluster_id, PosixDisk(), options))


@click.command("info")
@config_option
@click.pass_context
def info(context: click.Context, file: str) -> None:
    """Show what the log directories of a node hold; exit code 1 when something is wrong with them."""
    from moldau.server import storage_format
    from moldau.server.posix_disk import PosixDisk

    code = 0

    def work() -> list[str]:
        nonlocal code
        lines, code = storage_format.storage_info(_values(file), PosixDisk())
        return lines

    _run(work)
    context.exit(code)


@click.command("version-mapping")
@click.option("-r", "--release-version", metavar="VERSION", help="The release. Default: the latest.")
def version_mapping(release_version: str | None) -> None:
    """Show the feature levels that belong to a release."""
    from moldau.server import storage_format

    _run(lambda: storage_format.version_mapping(release_version))


@click.command("feature-dependencies")
@click.option(
    "-f", "--feature", "features", multiple=True, required=True, metavar="NAME=LEVEL", help="A feature level."
)
def feature_dependencies(features: tuple[str, ...]) -> None:
    """Show which other levels a feature level needs."""
    from moldau.server import storage_format

    _run(lambda: storage_format.feature_dependencies(list(features)))
