"""`moldau cert dev`: an authority and certificates for a laptop, and the lines that use them."""

from __future__ import annotations

import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from moldau.cli.client_lines import (
    Access,
    call_lines,
    java_settings,
    kafka_python_arguments,
    librdkafka_settings,
    plain_lines,
    properties_lines,
)
from moldau.cli.options import format_option
from moldau.cli.output import print_json, print_note, print_table, print_title

if TYPE_CHECKING:
    from moldau.server.dev_certificates import DevCertificates, Made

DEFAULT_DIRECTORY = "./moldau-certs"
BROKER = "broker"
ADDRESS = "localhost:9092"
SERVER_NAMES = ("ca", BROKER)


@click.command()
@click.option(
    "-d",
    "--directory",
    default=DEFAULT_DIRECTORY,
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the files are; made with mode 0700.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name or address of the broker besides localhost, 127.0.0.1 and ::1; repeat it.",
)
@click.option("--client", "clients", multiple=True, metavar="NAME", help="A certificate for a client; repeat it.")
@click.option(
    "--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="How long certificates are valid."
)
@click.option("--force", is_flag=True, help="Make all certificates anew; the authority stays.")
@click.option("--new-authority", is_flag=True, help="Make the authority anew too: who trusts the old one is told so.")
@click.option("--no-lines", is_flag=True, help="Leave out the lines for server.properties and for clients.")
@format_option
def dev(
    directory: Path,
    hosts: tuple[str, ...],
    clients: tuple[str, ...],
    days: int,
    force: bool,
    new_authority: bool,
    no_lines: bool,
    output_format: str,
) -> None:
    """Make an authority, a certificate for brokers and certificates for clients, as PEM and PKCS12.

    Run again it keeps the authority and renews what is about to expire, lacks a name or is not there; a broker that
    runs takes a renewed certificate over within a second. For laptops and tests: the authority's key lies beside the
    certificates. It takes the package cryptography (pip install 'moldau[keystores]') or the command openssl.

    \b
    Examples:
      moldau cert dev
      moldau cert dev --host kafka.test --host 192.168.1.7 --client anna
      moldau cert dev --directory certs --client anna --client ben --format json
    """
    from moldau.server.dev_certificates import LOCAL_HOSTS, DevCertificates, check_names
    from moldau.server.signing import SigningError, find_signer

    try:
        names = check_names(clients, SERVER_NAMES)
        found = DevCertificates(directory.absolute(), find_signer(), days)
        made = [found.ensure_authority(new_authority)]
        made.append(found.ensure(BROKER, BROKER, [*LOCAL_HOSTS, *hosts], force))
        made += [found.ensure(name, name, (), force) for name in names]
    except SigningError as error:
        raise click.ClickException(f"{error}.") from None
    if output_format == "json":
        print_json(_json(found, made, names))
        return
    _print_made(found, made)
    if not no_lines:
        _print_lines(found, names)


def _json(found: DevCertificates, made: list[Made], clients: list[str]) -> dict[str, object]:
    return {
        "directory": str(found.directory),
        "authority": str(found.authority_file),
        "certificates": [
            {"name": one.name, "what": one.what, "why": one.why, "expires": _day(one.expires_s)} for one in made
        ],
        "server_properties": server_settings(found),
        "clients": {
            access.certificate.name if access.certificate else "": {
                "java": java_settings(access),
                "librdkafka": librdkafka_settings(access),
                "kafka_python": kafka_python_arguments(access),
            }
            for access in _accesses(found, clients)
        },
    }


def _day(wall_s: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(wall_s))


def _print_made(found: DevCertificates, made: list[Made]) -> None:
    print_table(
        ("CERTIFICATE", "FILE", "", "EXPIRES", "WHY"),
        [[one.name, found.file(one.name), one.what, _day(one.expires_s), one.why] for one in made],
    )


def server_settings(found: DevCertificates) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(found.file(BROKER)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(found.authority_file),
    }


def _accesses(found: DevCertificates, clients: list[str]) -> list[Access]:
    """One without a certificate of its own where no client is named."""
    if not clients:
        return [Access(ADDRESS, found.authority_file)]
    return [Access(ADDRESS, found.authority_file, found.directory / name) for name in clients]


def _print_lines(found: DevCertificates, clients: list[str]) -> None:
    _section("server.properties, for listeners with SSL or SASL_SSL", properties_lines(server_settings(found)))
    if clients:
        click.echo("ssl.client.auth=required")
    for access in _accesses(found, clients):
        name = f" of {access.certificate.name}" if access.certificate else ""
        profile = access.certificate.name if access.certificate else "dev"
        flags = [f"-X {quote(line)}" for line in plain_lines(java_settings(access))[1:]]
        command = f"moldau profile create {profile} -b {ADDRESS} " + " ".join(flags)
        _section(f"A profile{name}", [command])
        _section(f"Java{name} (client.properties)", properties_lines(java_settings(access)))
        _section(f"librdkafka{name} (confluent-kafka, kcat)", plain_lines(librdkafka_settings(access)))
        _section(f"kafka-python{name}", call_lines("KafkaProducer", kafka_python_arguments(access)))
    click.echo()
    print_note(f"The PKCS12 stores beside the PEM files have the password in {found.directory / 'store.password'}.")


def _section(title: str, lines: list[str]) -> None:
    click.echo()
    print_title(title)
    for line in lines:
        click.echo(line)
