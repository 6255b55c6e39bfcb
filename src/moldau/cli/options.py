"""Options that several commands share: where the brokers are, profiles, client settings, output format.

An address given by flag or environment stands for itself: settings of the profile in use, which may hold passwords, are
not sent to it unless the profile was named as well.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.admin.topics import TopicAdmin

Command = TypeVar("Command", bound=Callable[..., object])

DEFAULT_BOOTSTRAP_SERVER = "localhost:9092"
ADDRESS_VARIABLE = "MOLDAU_BOOTSTRAP_SERVER"
PROFILE_VARIABLE = "MOLDAU_PROFILE"
_PROFILE = "moldau.profile"
_ORIGIN = "moldau.origin"

ADMIN = "admin"
PRODUCER = "producer"
CONSUMER = "consumer"
SHARE_CONSUMER = "share consumer"


class Connection:
    """How a command reaches the brokers."""

    def __init__(
        self, bootstrap_server: str, timeout_s: float, settings: dict[str, str], profile: dict[str, str] | None = None
    ) -> None:
        """settings: those of -X, all of which the client must know. profile: those that may be for other clients."""
        self.bootstrap_server = bootstrap_server
        self.timeout_s = timeout_s
        self.timeout_ms = int(timeout_s * 1000)
        self.settings = settings
        self.profile = profile or {}

    def config(self, kind: str = ADMIN, /, **more: object) -> dict[str, object]:
        """The client's settings: ours, those of the profile, those of -X; the later ones win."""
        return {
            "client.id": "moldau-cli",
            # Most commands are over before anything could be pushed.
            "enable.metrics.push": False,
            "request.timeout.ms": self.timeout_ms,
            "socket.connection.setup.timeout.ms": min(self.timeout_ms, 10_000),
            **{name.replace("_", "."): value for name, value in more.items()},
            **self._profile_settings(kind),
            "bootstrap.servers": self.bootstrap_server,
            **self.settings,
        }

    def _profile_settings(self, kind: str) -> dict[str, str]:
        """A profile serves all kinds of clients, so each takes what it knows; a name that none knows is an error."""
        if not self.profile:
            return {}
        from moldau.client import config

        kinds = {
            ADMIN: config.ADMIN,
            PRODUCER: config.PRODUCER,
            CONSUMER: config.CONSUMER,
            SHARE_CONSUMER: config.SHARE_CONSUMER,
        }
        known_elsewhere = {name for rows in kinds.values() for name in rows} - set(kinds[kind])
        return {name: value for name, value in self.profile.items() if name.replace("_", ".") not in known_elsewhere}


def open_admin(connection: Connection, timeout_ms: int | None = None) -> Admin:
    """An admin client that tells at once when nobody is there."""
    from moldau.client.admin import Admin
    from moldau.client.wiring import wired

    limit_ms = connection.timeout_ms if timeout_ms is None else timeout_ms
    return Admin(config=wired(connection.config(ADMIN, default_api_timeout_ms=limit_ms), first_contact_ms=0))


def open_topic_admin(connection: Connection) -> TopicAdmin:
    """The part of open_admin() that knows topics: a command that needs no more starts sooner."""
    from moldau.client.admin.topics import TopicAdmin
    from moldau.client.wiring import wired

    limit_ms = connection.timeout_ms
    return TopicAdmin(config=wired(connection.config(ADMIN, default_api_timeout_ms=limit_ms), first_contact_ms=0))


def _keep_profile(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    ctx.meta[_PROFILE] = (value, ctx.get_parameter_source("profile"))


def complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from moldau.cli import profiles

    return [name for name in profiles.names() if name.startswith(incomplete)]


def connection_options(command: Command) -> Command:
    """Adds --bootstrap-server, --profile, --timeout and -X; the command reads them with connection_of()."""
    for option in (
        click.option(
            "-X",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of the client by its Kafka name; may be repeated.",
        ),
        click.option(
            "--timeout",
            "timeout_s",
            type=click.FloatRange(min=0, min_open=True),
            default=15.0,
            show_default=True,
            metavar="SECONDS",
            help="How long to wait for responses.",
        ),
        click.option(
            "--profile",
            envvar=PROFILE_VARIABLE,
            metavar="NAME",
            expose_value=False,
            is_eager=True,
            callback=_keep_profile,
            shell_complete=complete_profiles,
            help="Take address and settings from this profile; see `moldau profile`.",
        ),
        click.option(
            "-b",
            "--bootstrap-server",
            envvar=ADDRESS_VARIABLE,
            metavar="HOST:PORT[,...]",
            help=f"Where to find a broker. Default: {ADDRESS_VARIABLE}, else the profile in use,"
            f" else {DEFAULT_BOOTSTRAP_SERVER}.",
        ),
    ):
        command = option(command)
    return command


def connection_of(bootstrap_server: str | None, timeout_s: float, settings: Iterable[str]) -> Connection:
    """The connection that the flags, the environment and the profile in use describe, the first of them first."""
    from moldau.cli.notices import show_notices

    show_notices()
    given = parse_pairs("-X", settings)
    ctx = click.get_current_context()
    address, profile, origin = resolve(bootstrap_server, ctx.get_parameter_source("bootstrap_server"), ctx)
    ctx.find_root().meta[_ORIGIN] = origin
    return Connection(address, timeout_s, given, profile)


def resolve(
    bootstrap_server: str | None, source: ParameterSource | None, ctx: click.Context
) -> tuple[str, dict[str, str], str]:
    """The address, the settings of a profile, and in words where the address comes from."""
    from moldau.cli import profiles

    named, named_source = ctx.meta.get(_PROFILE, (None, None))
    try:
        profile = profiles.read(named) if named else {}
        if bootstrap_server and (
            source == ParameterSource.COMMANDLINE or not (named and named_source == ParameterSource.COMMANDLINE)
        ):
            origin = "" if source == ParameterSource.COMMANDLINE else f"The address comes from {ADDRESS_VARIABLE}."
            return bootstrap_server, profile, origin
        used = named or profiles.current()
        if used is None:
            return DEFAULT_BOOTSTRAP_SERVER, {}, ""
        profile = profiles.read(used)
    except profiles.ProfileError as error:
        hint = "" if named else " It is in use; `moldau profile use --none` ends that."
        raise click.ClickException(f"{error}{hint}") from None
    address = profile.get(profiles.BOOTSTRAP_SERVERS, DEFAULT_BOOTSTRAP_SERVER)
    return address, profile, f"The address comes from profile {used}."


def address_origin() -> str:
    """A sentence about where the broker's address was taken from, if that was not the command line."""
    ctx = click.get_current_context(silent=True)
    return "" if ctx is None else str(ctx.find_root().meta.get(_ORIGIN, ""))


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of a connection and hands the command a Connection as its first argument."""

    @functools.wraps(command)
    def run(
        *args: object, bootstrap_server: str | None, timeout_s: float, settings: tuple[str, ...], **more: object
    ) -> None:
        command(connection_of(bootstrap_server, timeout_s, settings), *args, **more)

    return connection_options(run)


def format_option(command: Command) -> Command:
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="Output for people or for programs.",
    )(command)


def watch_options(command: Command) -> Command:
    """Adds --watch and --interval; the command passes both to watch.repeat()."""
    command = click.option(
        "--interval",
        "interval_s",
        type=click.FloatRange(min=0.1),
        default=2.0,
        show_default=True,
        metavar="SECONDS",
        help="How often --watch looks again.",
    )(command)
    return click.option("-w", "--watch", is_flag=True, help="Look again and again, until Ctrl-C.")(command)


def parse_pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """KEY=VALUE texts as a dictionary."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{option} wants KEY=VALUE, not {text!r}.")
        pairs[key.strip()] = value
    return pairs


def debug_wanted() -> bool:
    return bool(os.environ.get("MOLDAU_DEBUG"))
