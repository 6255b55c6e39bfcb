"""Options that several commands share: where the brokers are, client settings, output format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])

DEFAULT_BOOTSTRAP_SERVER = "localhost:9092"


class Connection:
    """How a command reaches the brokers."""

    def __init__(self, bootstrap_server: str, timeout_s: float, settings: dict[str, str]) -> None:
        self.bootstrap_server = bootstrap_server
        self.timeout_ms = int(timeout_s * 1000)
        self.settings = settings

    def config(self, **more: object) -> dict[str, object]:
        """The client's settings, those of -X last."""
        return {
            "bootstrap.servers": self.bootstrap_server,
            "client.id": "moldau-cli",
            "request.timeout.ms": self.timeout_ms,
            "socket.connection.setup.timeout.ms": min(self.timeout_ms, 10_000),
            **{name.replace("_", "."): value for name, value in more.items()},
            **self.settings,
        }


def connection_options(command: Command) -> Command:
    """Adds --bootstrap-server, --timeout and -X; the command reads them with connection_of()."""
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
            help="How long to wait for answers.",
        ),
        click.option(
            "-b",
            "--bootstrap-server",
            envvar="MOLDAU_BOOTSTRAP_SERVER",
            default=DEFAULT_BOOTSTRAP_SERVER,
            metavar="HOST:PORT[,...]",
            help=f"Where to find a broker. Default: MOLDAU_BOOTSTRAP_SERVER, else {DEFAULT_BOOTSTRAP_SERVER}.",
        ),
    ):
        command = option(command)
    return command


def connection_of(bootstrap_server: str, timeout_s: float, settings: Iterable[str]) -> Connection:
    return Connection(bootstrap_server, timeout_s, parse_pairs("-X", settings))


def format_option(command: Command) -> Command:
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="Output for people or for programs.",
    )(command)


def parse_pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """KEY=VALUE texts as a dictionary."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{option} wants KEY=VALUE, not {text!r}.")
        pairs[key.strip()] = value
    return pairs
