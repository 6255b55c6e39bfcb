"""`moldau user list|create|alter|delete`: users that log in with SCRAM, and their passwords.

The salted password is computed here, as AlterUserScramCredentials wants it: the password itself is never sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import finish, print_error, print_json, print_note, print_table, say
from moldau.cli.passwords import Password, PasswordSource, password_options
from moldau.client.errors import ClientError
from moldau.protocol.errors import RESOURCE_NOT_FOUND

if TYPE_CHECKING:
    from moldau.client.admin import Admin, ScramCredential, ScramDeletion, ScramMechanism, ScramUpsertion

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_MECHANISM = "SCRAM-SHA-512"
ITERATIONS_DEFAULT, ITERATIONS_MIN, ITERATIONS_MAX = 4096, 4096, 16384

Credentials = dict[str, int]
"""Iterations by mechanism."""

mechanisms_option = click.option(
    "-m",
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(MECHANISMS, case_sensitive=False),
    help="The mechanism; repeat it for both.",
)
iterations_option = click.option(
    "-i",
    "--iterations",
    type=click.IntRange(ITERATIONS_MIN, ITERATIONS_MAX),
    metavar="N",
    help=f"How often the password is hashed, {ITERATIONS_MIN} to {ITERATIONS_MAX}.",
)


def find_users(admin: Admin, names: Sequence[str] | None = None) -> dict[str, Credentials | ClientError]:
    """Mechanisms and iterations of each user, or why they are not known; of all users without names."""
    found: dict[str, Credentials | ClientError] = {}
    for name, outcome in admin.describe_user_scram_credentials(names).items():
        found[name] = _by_mechanism(outcome.get()) if outcome.error is None else outcome.error
    return dict(sorted(found.items()))


def _by_mechanism(credentials: list[ScramCredential]) -> Credentials:
    named = {item.mechanism.name.replace("_", "-"): item.iterations for item in credentials}
    return dict(sorted(named.items()))


def credentials_json(credentials: Credentials) -> list[dict[str, object]]:
    return [{"mechanism": name, "iterations": iterations} for name, iterations in credentials.items()]


def tell(error: ClientError) -> None:
    print_error(explain(error) or error.message)


def refused(name: str, error: ClientError) -> dict[str, object]:
    return {"user": name, "error": error.name, "message": error.message}


@click.command("list")
@mechanisms_option
@format_option
@connected
def list_users(connection: Connection, mechanisms: tuple[str, ...], output_format: str) -> None:
    """List the users that have SCRAM credentials, or only those of a mechanism.

    Users of PLAIN, of certificates and of tokens are not kept by the cluster and are not listed.
    """
    with open_admin(connection) as admin:
        found = find_users(admin)
    users = {name: item for name, item in found.items() if not isinstance(item, ClientError)}
    if mechanisms:
        kept = {name: {key: item[key] for key in mechanisms if key in item} for name, item in users.items()}
        users = {name: item for name, item in kept.items() if item}
    if output_format == "json":
        print_json([{"user": name, "credentials": credentials_json(item)} for name, item in users.items()])
    elif not users:
        print_note("There are no such users." if mechanisms else "There are no users yet: `moldau user create NAME`.")
    else:
        print_table(
            ("USER", "MECHANISM", "ITERATIONS"),
            [[name, mechanism, item[mechanism]] for name, item in users.items() for mechanism in item],
            right=("ITERATIONS",),
        )


@click.command()
@click.argument("name")
@mechanisms_option
@iterations_option
@password_options
@click.option("--if-not-exists", is_flag=True, help="Accept that there is such a user, whatever the password.")
@format_option
@connected
def create(
    connection: Connection,
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int | None,
    source: PasswordSource,
    if_not_exists: bool,
    output_format: str,
) -> None:
    """Create a user, who may log in at once; without --mechanism by SCRAM-SHA-512. The password is asked for.

    \b
    Examples:
      moldau user create anna
      moldau user create etl --generate
      moldau user create app -m SCRAM-SHA-256 -m SCRAM-SHA-512 --password-stdin < secret.txt
    """
    with open_admin(connection) as admin:
        known = _known(admin, name)
        if known is not None and if_not_exists:
            say(output_format, f"User {name} exists already.")
            finish(output_format, [{"user": name, "created": False}], False)
            return
        if known is not None:
            print_error(f"User {name} exists already ({' and '.join(known)}); `moldau user alter {name}` changes it.")
            finish(output_format, [{"user": name, "error": "ALREADY_EXISTS"}], True)
        password = source.read(name)
        wanted = dict.fromkeys(mechanisms or (DEFAULT_MECHANISM,), iterations or ITERATIONS_DEFAULT)
        error = _set(admin, name, password, wanted)
    _report(name, "Created", password, wanted, error, output_format)


@click.command()
@click.argument("name")
@mechanisms_option
@iterations_option
@password_options
@format_option
@connected
def alter(
    connection: Connection,
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int | None,
    source: PasswordSource,
    output_format: str,
) -> None:
    """Give a user another password, for all mechanisms the user has or only for those named.

    A mechanism that the user does not have yet is added. Connections that are open stay open.

    \b
    Examples:
      moldau user alter anna
      moldau user alter anna --iterations 16384 --password-file anna.txt
      moldau user alter anna -m SCRAM-SHA-256 --generate
    """
    with open_admin(connection) as admin:
        known = _known(admin, name)
        if known is None:
            print_error(f"There is no user {name}; `moldau user create {name}` makes one.")
            finish(output_format, [{"user": name, "error": "RESOURCE_NOT_FOUND"}], True)
            return
        chosen = mechanisms or tuple(known)
        wanted = {each: iterations or known.get(each, ITERATIONS_DEFAULT) for each in chosen}
        password = source.read(name)
        error = _set(admin, name, password, wanted)
    _report(name, "Altered", password, wanted, error, output_format)
    left = [mechanism for mechanism in known if mechanism not in wanted]
    if left:
        print_note(f"The old password still works with {' and '.join(left)}.")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@mechanisms_option
@click.option("--if-exists", is_flag=True, help="Accept that there is no such user.")
@format_option
@connected
def delete(
    connection: Connection, names: tuple[str, ...], mechanisms: tuple[str, ...], if_exists: bool, output_format: str
) -> None:
    """Delete users, or only their credentials of a mechanism.

    They cannot log in any more; connections that are open stay open, and ACLs and quotas of the name stay too.
    """
    from moldau.client.admin import ScramDeletion

    rows: list[dict[str, object]] = []
    failed = False
    with open_admin(connection) as admin:
        deletions: list[ScramDeletion] = []
        for name, known in find_users(admin, list(dict.fromkeys(names))).items():
            present = {} if isinstance(known, ClientError) else known
            gone = [each for each in mechanisms or present if each in present]
            if gone:
                deletions += [ScramDeletion(name, _mechanism(each)) for each in gone]
            elif if_exists and (not isinstance(known, ClientError) or known.code == RESOURCE_NOT_FOUND):
                say(output_format, f"There is no {_whose(name, mechanisms)}.")
                rows.append({"user": name, "deleted": False})
            else:
                failed = True
                rows.append(_absent(name, known, mechanisms))
        if deletions:
            outcomes = admin.alter_user_scram_credentials(deletions)
            for name, outcome in outcomes.items():
                if outcome.error is not None:
                    failed = True
                    tell(outcome.error)
                    rows.append(refused(name, outcome.error))
                else:
                    say(output_format, f"Deleted {_whose(name, mechanisms)}.")
                    rows.append({"user": name, "deleted": True})
    finish(output_format, rows, failed)


def _whose(name: str, mechanisms: Sequence[str]) -> str:
    return f"{' and '.join(mechanisms)} of user {name}" if mechanisms else f"user {name}"


def _absent(name: str, known: Credentials | ClientError, mechanisms: Sequence[str]) -> dict[str, object]:
    if isinstance(known, ClientError) and known.code != RESOURCE_NOT_FOUND:
        tell(known)
        return refused(name, known)
    print_error(f"There is no {_whose(name, mechanisms)}. `moldau user list` shows which users there are.")
    return {"user": name, "error": "RESOURCE_NOT_FOUND"}


def _known(admin: Admin, name: str) -> Credentials | None:
    """What the user has; None where there is no such user."""
    found = find_users(admin, [name])[name]
    if not isinstance(found, ClientError):
        return found
    if found.code == RESOURCE_NOT_FOUND:
        return None
    raise found


def _mechanism(name: str) -> ScramMechanism:
    from moldau.client.admin import ScramMechanism

    return ScramMechanism[name.replace("-", "_")]


def _set(admin: Admin, name: str, password: Password, wanted: Credentials) -> ClientError | None:
    from moldau.client.admin import ScramUpsertion

    changes: list[ScramUpsertion | ScramDeletion] = [
        ScramUpsertion(name, password.text, _mechanism(each), iterations) for each, iterations in wanted.items()
    ]
    return admin.alter_user_scram_credentials(changes)[name].error


def _report(
    name: str, verb: str, password: Password, wanted: Credentials, error: ClientError | None, output_format: str
) -> None:
    if error is not None:
        tell(error)
        finish(output_format, [refused(name, error)], True)
        return
    row: dict[str, object] = {"user": name, verb.lower(): True, "credentials": credentials_json(wanted)}
    say(output_format, f"{verb} user {name} ({' and '.join(wanted)}).")
    if password.is_generated:
        row["password"] = password.text
        say(output_format, f"Password: {password.text}")
    finish(output_format, [row], False)
