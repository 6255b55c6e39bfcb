"""`moldau token create|renew|expire|describe`: delegation tokens, logins that end by themselves.

A token's HMAC is a password. It is shown when the token is made, and never again.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from moldau.cli.acl_words import parse_principal
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import Styled, print_fields, print_json, print_note, print_table, print_title, print_warning, say
from moldau.cli.positions import parse_duration
from moldau.protocol.integers import LONG_MAX

if TYPE_CHECKING:
    from moldau.client.admin import Admin, DelegationToken, Principal

MECHANISM = "SCRAM-SHA-256"
BY_DEFAULT = -1


def read_span(ctx: click.Context, param: click.Parameter, value: str | None) -> int:
    """A span of time with its unit, in milliseconds: 90s, 12h, 7d. Without one the broker decides."""
    if value is None:
        return BY_DEFAULT
    span_ms = parse_duration(value)
    if span_ms is None:
        raise click.BadParameter(f"{value!r} is not a duration such as 90s, 1h30m or 7d.", ctx, param)
    if span_ms > LONG_MAX:
        raise click.BadParameter(f"{value!r} is longer than can be counted.", ctx, param)
    return span_ms


def parse_principals(texts: tuple[str, ...]) -> list[Principal]:
    from moldau.client.admin import Principal

    pairs = (parse_principal(text).partition(":") for text in texts)
    return [Principal(name, kind) for kind, _, name in pairs]


def read_hmac(text: str) -> bytes:
    from base64 import b64decode
    from binascii import Error

    if text == "-":
        text = sys.stdin.readline()
    else:
        print_warning(
            "An HMAC on the command line can be seen by others (`ps`) and stays in the shell's history: say `-`."
        )
    try:
        found = b64decode(text.strip(), validate=True)
    except (Error, ValueError):
        found = b""
    if not found:
        raise click.UsageError(
            "That is no HMAC of a token: it is written in base64, as `moldau token create` shows it."
        )
    return found


def moment_text(moment_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment_ms / 1000))


def token_json(token: DelegationToken) -> dict[str, object]:
    """All but the secret."""
    return {
        "token_id": token.token_id,
        "owner": str(token.owner),
        "requester": str(token.requester),
        "renewers": [str(renewer) for renewer in token.renewers],
        "issue_timestamp": token.issue_timestamp,
        "expiry_timestamp": token.expiry_timestamp,
        "max_timestamp": token.max_timestamp,
    }


@click.command()
@click.option("--owner", metavar="TYPE:NAME", help="For this user instead of yourself, if you may.")
@click.option("--renewer", "renewers", multiple=True, metavar="TYPE:NAME", help="Who may renew it; may be repeated.")
@click.option(
    "--max-life", "max_life_ms", callback=read_span, metavar="SPAN", help="The longest it may live, as in 12h or 7d."
)
@format_option
@connected
def create(
    connection: Connection,
    owner: str | None,
    renewers: tuple[str, ...],
    max_life_ms: int,
    output_format: str,
) -> None:
    """Create a token. Its HMAC is a password and is shown this once.

    \b
    Examples:
      moldau token create
      moldau token create --max-life 7d --renewer User:scheduler
      moldau token create --owner User:etl --format json
    """
    whose = None if owner is None else parse_principals((owner,))[0]
    with open_admin(connection) as admin:
        token = admin.create_delegation_token(parse_principals(renewers), whose, max_life_ms)
    secret = _hmac_text(token.hmac)
    if output_format == "json":
        print_json({**token_json(token), "hmac": secret})
        return
    print_title(f"Token {token.token_id}")
    print_fields(
        [
            ("HMAC", Styled(secret, bold=True)),
            ("Owner", token.owner),
            *([("Made by", token.requester)] if token.requester != token.owner else []),
            ("Renewers", ", ".join(map(str, token.renewers)) or "the owner alone"),
            ("Ends", f"{moment_text(token.expiry_timestamp)}, unless renewed"),
            ("At the latest", moment_text(token.max_timestamp)),
        ]
    )
    click.echo()
    click.echo("Keep the HMAC now: it is not shown again. To log in with it:")
    click.echo()
    config = connection.config()
    for line in login_lines(config.get("security.protocol"), config.get("sasl.mechanism"), token.token_id, secret):
        click.echo(f"  {line}")


def login_lines(protocol: object, mechanism: object, token_id: str, secret: str) -> list[str]:
    """The settings of a client, Java's or ours, that logs in with a token: by SCRAM, however its maker got in."""
    from moldau.security.scram import HASHES

    name = str(protocol or "SASL_SSL").upper()
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    return [
        f"security.protocol={name if name.startswith('SASL_') else f'SASL_{name}'}",
        f"sasl.mechanism={mechanism if mechanism in HASHES else MECHANISM}",
        f'sasl.jaas.config={module} username="{token_id}" password="{secret}" tokenauth="true";',
    ]


@click.command()
@click.argument("hmac", metavar="HMAC")
@click.option("--for", "period_ms", callback=read_span, metavar="SPAN", help="For so long from now on, as in 12h.")
@format_option
@connected
def renew(connection: Connection, hmac: str, period_ms: int, output_format: str) -> None:
    """Put off the end of a token, at most to the end of its longest life.

    HMAC is what `moldau token create` showed; `-` reads it from standard input, out of the shell's history.
    """
    key = read_hmac(hmac)
    with open_admin(connection) as admin:
        ends_ms = admin.renew_delegation_token(key, period_ms)
    _tell_end(output_format, ends_ms)


@click.command()
@click.argument("hmac", metavar="HMAC")
@click.option(
    "--in", "period_ms", callback=read_span, metavar="SPAN", help="Not at once but so long from now, as in 10m."
)
@format_option
@connected
def expire(connection: Connection, hmac: str, period_ms: int, output_format: str) -> None:
    """End a token, at once or soon.

    HMAC is what `moldau token create` showed; `-` reads it from standard input, out of the shell's history.
    """
    key = read_hmac(hmac)
    with open_admin(connection) as admin:
        ends_ms = admin.expire_delegation_token(key, period_ms)
    if period_ms == BY_DEFAULT:
        say(output_format, "The token has ended.")
        if output_format == "json":
            print_json({"expiry_timestamp": ends_ms})
    else:
        _tell_end(output_format, ends_ms)


def _tell_end(output_format: str, ends_ms: int) -> None:
    say(output_format, f"The token ends at {moment_text(ends_ms)}.")
    if output_format == "json":
        print_json({"expiry_timestamp": ends_ms})


@click.command()
@click.option(
    "--owner", "owners", multiple=True, metavar="TYPE:NAME", help="Only tokens of this user; may be repeated."
)
@format_option
@connected
def describe(connection: Connection, owners: tuple[str, ...], output_format: str) -> None:
    """Show the tokens that you may see: your own, those you may renew, and those an entry lets you describe.

    \b
    Examples:
      moldau token describe
      moldau token describe --owner User:etl
    """
    whose = parse_principals(owners) if owners else None
    with open_admin(connection) as admin:
        tokens = _find(admin, whose)
    if output_format == "json":
        print_json([token_json(token) for token in tokens])
    elif tokens:
        _print(tokens)
    else:
        print_note("There are no tokens that you may see.")


def _find(admin: Admin, whose: list[Principal] | None) -> list[DelegationToken]:
    return sorted(admin.describe_delegation_token(whose), key=lambda token: (token.owner, token.issue_timestamp))


def _print(tokens: list[DelegationToken]) -> None:
    print_table(
        ("TOKEN", "OWNER", "RENEWERS", "MADE", "ENDS", "AT THE LATEST"),
        [
            [
                token.token_id,
                token.owner,
                ", ".join(map(str, token.renewers)) or "-",
                moment_text(token.issue_timestamp),
                moment_text(token.expiry_timestamp),
                moment_text(token.max_timestamp),
            ]
            for token in tokens
        ],
    )


def _hmac_text(hmac: bytes) -> str:
    from base64 import b64encode

    return b64encode(hmac).decode()
