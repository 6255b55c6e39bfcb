"""`moldau profile`: keeps addresses and client settings under names, so that they need not be typed."""

from __future__ import annotations

import click

from moldau.cli import profiles
from moldau.cli.options import DEFAULT_BOOTSTRAP_SERVER, complete_profiles, format_option, parse_pairs
from moldau.cli.output import Styled, print_json, print_note, print_table, say

name_argument = click.argument("name", shell_complete=complete_profiles)


@click.command("list")
@format_option
def list_profiles(output_format: str) -> None:
    """List the profiles; the one in use has a star."""
    used = profiles.current()
    rows = [(name, name == used, profiles.read(name)) for name in profiles.names()]
    if output_format == "json":
        print_json(
            [
                {"name": name, "in_use": is_used, "bootstrap_servers": settings.get(profiles.BOOTSTRAP_SERVERS)}
                for name, is_used, settings in rows
            ]
        )
    elif not rows:
        click.echo("There are no profiles yet; `moldau profile create NAME -b HOST:PORT` makes one.", err=True)
    else:
        print_table(
            ("", "NAME", "BOOTSTRAP SERVERS", "OTHER SETTINGS"),
            [
                (
                    Styled("*", fg="green", bold=True) if is_used else "",
                    name,
                    settings.get(profiles.BOOTSTRAP_SERVERS, ""),
                    len(settings) - (profiles.BOOTSTRAP_SERVERS in settings),
                )
                for name, is_used, settings in rows
            ],
            right=("OTHER SETTINGS",),
        )


def _name_or_current(name: str | None) -> str:
    used = name or profiles.current()
    if used is None:
        raise profiles.ProfileError("No profile is in use. `moldau profile use NAME` takes one into use.")
    return used


@click.command()
@click.argument("name", required=False, shell_complete=complete_profiles)
@format_option
def show(name: str | None, output_format: str) -> None:
    """Show the settings of a profile, without NAME of the one in use; passwords stay hidden."""
    used = _name_or_current(name)
    settings = {key: profiles.shown(key, value) for key, value in profiles.read(used).items()}
    if output_format == "json":
        print_json({"name": used, "in_use": used == profiles.current(), "settings": settings})
        return
    print_table(("SETTING", "VALUE"), list(settings.items()))


@click.command()
@click.argument("name")
@click.option("-b", "--bootstrap-server", metavar="HOST:PORT[,...]", help="The address of the brokers.")
@click.option("-X", "settings", multiple=True, metavar="KEY=VALUE", help="A client setting; may be repeated.")
@click.option(
    "--from-file", type=click.Path(exists=True, dir_okay=False), help="A client.properties file to start from."
)
@click.option("--use/--no-use", default=None, help="Take it into use. Default: if it is the first.")
@click.option("--force", is_flag=True, help="Replace a profile of that name.")
@format_option
def create(
    name: str,
    bootstrap_server: str | None,
    settings: tuple[str, ...],
    from_file: str | None,
    use: bool | None,
    force: bool,
    output_format: str,
) -> None:
    """Create a profile from an address and client settings, or from a client.properties file.

    \b
    Examples:
      moldau profile create local -b localhost:9092
      moldau profile create prod -b kafka-1:9092,kafka-2:9092 -X client.id=ops -X acks=all
      moldau profile create staging --from-file client.properties --use
    """
    chosen = {} if from_file is None else profiles.read_file(from_file)
    chosen.update(parse_pairs("-X", settings))
    if bootstrap_server is not None:
        chosen = {profiles.BOOTSTRAP_SERVERS: bootstrap_server, **chosen}
        chosen[profiles.BOOTSTRAP_SERVERS] = bootstrap_server
    if profiles.BOOTSTRAP_SERVERS not in chosen:
        raise click.UsageError(f"Say where the brokers are: --bootstrap-server {DEFAULT_BOOTSTRAP_SERVER}.")
    _check(chosen)
    if profiles.exists(name) and not force:
        raise profiles.ProfileError(f"There is a profile {name} already. --force replaces it.")
    first = not profiles.names()
    profiles.write(name, chosen)
    say(output_format, f"Created profile {name}.")
    if use or (use is None and first):
        profiles.use(name)
        say(output_format, f"Profile {name} is in use.")
    elif profiles.current() != name:
        print_note(f"`moldau profile use {name}` takes it into use.")
    if output_format == "json":
        print_json(_state(name))


def _state(name: str) -> dict[str, object]:
    return {"name": name, "in_use": profiles.current() == name, "path": str(profiles.path_of(name))}


def _check(settings: dict[str, str]) -> None:
    """Refuses what no client would take, while one still remembers what one meant."""
    from moldau.client import config

    config.parse_addresses(settings[profiles.BOOTSTRAP_SERVERS])
    every = {**config.ADMIN, **config.CONSUMER, **config.PRODUCER}
    config.ClientConfig(every, settings)


@click.command()
@click.argument("name", required=False, shell_complete=complete_profiles)
@click.option("--none", is_flag=True, help="Use no profile from now on.")
@format_option
def use(name: str | None, none: bool, output_format: str) -> None:
    """Take a profile into use: commands without --bootstrap-server go there from now on."""
    if (name is None) == (not none):
        raise click.UsageError("Name a profile, or say --none.")
    profiles.use(name)
    say(output_format, "No profile is in use." if name is None else f"Profile {name} is in use.")
    if output_format == "json":
        print_json({"in_use": name})


@click.command()
@name_argument
@format_option
def delete(name: str, output_format: str) -> None:
    """Delete a profile."""
    was_used = profiles.current() == name
    profiles.delete(name)
    say(output_format, f"Deleted profile {name}.{' No profile is in use now.' if was_used else ''}")
    if output_format == "json":
        print_json({"deleted": name, "in_use": profiles.current()})


@click.command()
@click.argument("name", required=False, shell_complete=complete_profiles)
@format_option
def path(name: str | None, output_format: str) -> None:
    """Print where a profile is kept, to edit it; without NAME that of the one in use."""
    used = _name_or_current(name)
    profiles.read(used)
    if output_format == "json":
        print_json(_state(used))
    else:
        click.echo(profiles.path_of(used))
