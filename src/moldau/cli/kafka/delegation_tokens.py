"""`kafka-delegation-tokens`: creates, renews, expires and describes delegation tokens."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.acls_options import parse_principal
from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, Connect, ask, connect
from moldau.cli.kafka.java_dates import format_moment
from moldau.cli.kafka.java_failures import EXECUTION, ILLEGAL_ARGUMENT, executed, wrapped
from moldau.cli.kafka.options import (
    OPTIONAL_VALUE,
    VALUE,
    Exit,
    JavaFailure,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_invalid,
    check_required,
)

if TYPE_CHECKING:
    from moldau.client.admin import Admin, DelegationToken, Principal

NULL_POINTER = "java.lang.NullPointerException"
NOT_FOUND = "Delegation Token is not found on server."
DATE = "yyyy-MM-dd'T'HH:mm"
COLUMNS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# For each action what it needs, and what it may not stand beside.
NEEDED = {
    "create": ["max-life-time-period"],
    "renew": ["hmac", "renew-time-period"],
    "expire": ["hmac", "expiry-time-period"],
    "describe": [],
}
REFUSED = {
    "create": ["hmac", "renew-time-period", "expiry-time-period"],
    "renew": ["max-life-time-period", "expiry-time-period", "renewer-principal", "owner-principal"],
    "expire": ["max-life-time-period", "renew-time-period", "owner-principal"],
    "describe": ["renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"],
}

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE),
        Option("command-config", "REQUIRED: a file with settings for the admin client, such as its login.", VALUE),
        Option("create", "Create a token."),
        Option("renew", "Put off the end of a token."),
        Option("expire", "Bring the end of a token forward."),
        Option("describe", "Show tokens; with --owner-principal those of owners."),
        Option("owner-principal", "The owner of the token, as User:name.", OPTIONAL_VALUE),
        Option("renewer-principal", "Who may renew the token, as User:name.", OPTIONAL_VALUE),
        Option(
            "max-life-time-period",
            "How long it may live at most, in ms; -1: as long as it can.",
            OPTIONAL_VALUE,
            "Long",
        ),
        Option(
            "renew-time-period", "For how long it is renewed, in ms; -1: the broker's default.", OPTIONAL_VALUE, "Long"
        ),
        Option("expiry-time-period", "In how many ms it ends; -1: at once.", OPTIONAL_VALUE, "Long"),
        Option("hmac", "The HMAC of the token.", OPTIONAL_VALUE),
    ]
)


def main(arguments: list[str], connect: Connect = connect) -> int:
    try:
        options = PARSER.parse(arguments)
        _check(options)
        where, config = options.text("bootstrap-server"), options.text("command-config")
        with ask("", lambda: connect(where, config)) as admin:
            _run(admin, options)
    except JavaFailure as failure:
        sys.stdout.flush()
        sys.stderr.write(f"{failure.message}\n{failure.java_text()}\n\n")
        return 1
    return 0


def _check(options: Options) -> None:
    check_help_or_version(options, "Create, renew, expire and describe delegation tokens.")
    actions = [action for action in NEEDED if options.has(action)]
    if len(actions) != 1:
        names = "--create, --renew, --expire or --describe"
        raise Exit(1, f"Command must include exactly one action: {names}", options.parser)
    check_required(options, "bootstrap-server", "command-config", *NEEDED[actions[0]])
    check_invalid(options, actions[0], *REFUSED[actions[0]])


def _run(admin: Admin, options: Options) -> None:
    if options.has("create"):
        _create(admin, options)
    elif options.has("renew"):
        _renew(admin, options)
    elif options.has("expire"):
        _expire(admin, options)
    else:
        _describe(admin, options)


def _create(admin: Admin, options: Options) -> None:
    renewers = _principals(options, "renewer-principal")
    period_ms = _period(options, "max-life-time-period")
    print(f"Calling create token operation with renewers :{_listed(renewers)} , max-life-time-period :{period_ms}")
    owner = next(iter(_principals(options, "owner-principal")), None)
    token = executed(
        "createDelegationToken", lambda: admin.create_delegation_token(renewers, owner, max(period_ms, -1))
    )
    print(f"Created delegation token with tokenId : {token.token_id}\n")
    _print_tokens([token])


def _renew(admin: Admin, options: Options) -> None:
    hmac, period_ms = options.text("hmac"), _period(options, "renew-time-period")
    print(f"Calling renew token operation with hmac :{_shown(hmac)} , renew-time-period :{period_ms}")
    key = _key(hmac)
    ends_ms = executed("renewDelegationToken", lambda: admin.renew_delegation_token(key, max(period_ms, -1)))
    sys.stdout.write(f"Completed renew operation. New expiry date : {format_moment(ends_ms, DATE)}")


def _expire(admin: Admin, options: Options) -> None:
    hmac, period_ms = options.text("hmac"), _period(options, "expiry-time-period")
    print(f"Calling expire token operation with hmac :{_shown(hmac)} , expire-time-period :{period_ms}")
    key = _key(hmac)
    ends_ms = executed("expireDelegationToken", lambda: admin.expire_delegation_token(key, max(period_ms, -1)))
    sys.stdout.write(f"Completed expire operation. New expiry date : {format_moment(ends_ms, DATE)}")


def _describe(admin: Admin, options: Options) -> None:
    # Without owners the real tool asks for the tokens of none, whatever it says.
    owners = _principals(options, "owner-principal")
    whose = f"owners: {_listed(owners)}" if owners else "current user."
    print(f"Calling describe token operation for {whose}")
    tokens = executed("describeDelegationToken", lambda: admin.describe_delegation_token(owners))
    print(f"Total number of tokens : {len(tokens)}")
    _print_tokens(tokens)


def _print_tokens(tokens: list[DelegationToken]) -> None:
    print(_row(COLUMNS))
    for token in tokens:
        times = (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp)
        print()
        print(
            _row(
                (
                    token.token_id,
                    _hmac_text(token.hmac),
                    str(token.owner),
                    str(token.requester),
                    _listed(token.renewers),
                    *(format_moment(moment, DATE) for moment in times),
                )
            )
        )


def _row(cells: tuple[str, ...]) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))


def _listed(principals: list[Principal]) -> str:
    return f"[{', '.join(map(str, principals))}]"


def _shown(text: str | None) -> str:
    return "null" if text is None else text


def _principals(options: Options, option: str) -> list[Principal]:
    from moldau.client.admin import Principal

    pairs = (parse_principal(text).partition(":") for text in options.values(option))
    return [Principal(name, kind) for kind, _, name in pairs]


def _period(options: Options, option: str) -> int:
    period_ms = options.long(option)
    if period_ms is None:
        raise JavaFailure(
            NULL_POINTER,
            'Cannot invoke "java.lang.Long.longValue()" because the return value of'
            ' "joptsimple.OptionSet.valueOf(joptsimple.OptionSpec)" is null',
        )
    return period_ms


# HMACs


def _hmac_text(hmac: bytes) -> str:
    from base64 import b64encode

    return b64encode(hmac).decode()


def _key(hmac: str | None) -> bytes:
    if hmac is None:
        sentence = 'Cannot invoke "String.getBytes(java.nio.charset.Charset)" because "src" is null'
        raise JavaFailure(NULL_POINTER, sentence)
    key = decode_base64(hmac)
    if not key:
        # Our client does not ask for a token without a name.
        failure = JavaFailure(ERRORS_PACKAGE + "DelegationTokenNotFoundException", NOT_FOUND)
        raise wrapped(EXECUTION, failure)
    return key


def decode_base64(text: str) -> bytes:
    """What Java's strict decoder makes of the text, padded or not; its complaints are Java's too."""
    if len(text) == 1:
        raise JavaFailure(ILLEGAL_ARGUMENT, "Input byte[] should at least have 2 bytes for base64 bytes")
    body = text.partition("=")[0]
    for letter in body:
        if letter not in BASE64:
            raise JavaFailure(ILLEGAL_ARGUMENT, f"Illegal base64 character {_code(letter):x}")
    left, padding = len(body) % 4, text[len(body) :]
    if padding and (left == 0 or (left == 2 and padding[:2] != "==")):
        raise JavaFailure(ILLEGAL_ARGUMENT, "Input byte array has wrong 4-byte ending unit")
    if left == 1:
        raise JavaFailure(ILLEGAL_ARGUMENT, "Last unit does not have enough valid bits")
    end = len(body) + (4 - left if padding else 0)
    if end < len(text):
        raise JavaFailure(ILLEGAL_ARGUMENT, f"Input byte array has incorrect ending byte at {end}")
    from base64 import b64decode

    return b64decode(body + "=" * (-len(body) % 4))


def _code(letter: str) -> int:
    """The byte of the letter in Latin-1, where Java puts a question mark for letters that it does not have."""
    return ord(letter) if ord(letter) < 256 else ord("?")
