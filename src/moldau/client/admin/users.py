"""Admin methods for SCRAM users (KIP-554): passwords never leave the client, only what SCRAM derives from them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import checked_int, checked_name, checked_names
from moldau.client.admin.routing import RETRY_CONTROLLER, Question, Target, check, outcome
from moldau.client.results import Outcome
from moldau.protocol import errors as codes

ITERATIONS_DEFAULT = 4096
ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384
SALT_BYTES = 32


class ScramMechanism(IntEnum):
    """How passwords are kept: SCRAM with SHA-256 or with SHA-512."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @classmethod
    def _missing_(cls, value: object) -> ScramMechanism:
        return cls.UNKNOWN


_HASHES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


class ScramCredential(NamedTuple):
    """What a user has of one mechanism."""

    mechanism: ScramMechanism
    iterations: int


class ScramUpsertion(NamedTuple):
    """A user's new password; the salt is made up when none is given."""

    user: str
    password: str | bytes
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256
    iterations: int = ITERATIONS_DEFAULT
    salt: bytes | None = None

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.user!r}, password hidden, {self.mechanism.name}, {self.iterations})"


class ScramDeletion(NamedTuple):
    """One mechanism to take away from a user."""

    user: str
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256


class UserAdmin(AdminCalls):
    """SCRAM users."""

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, timeout_ms: int | None = None
    ) -> dict[str, Outcome[list[ScramCredential]]]:
        """The mechanisms of each user; None: of all users that have any."""
        from moldau.protocol.messages import describe_user_scram_credentials_request as request_messages
        from moldau.protocol.messages.describe_user_scram_credentials_response import (
            DescribeUserScramCredentialsResponse,
        )

        deadline = self._start(timeout_ms)
        rows = None
        if users is not None:
            rows = [request_messages.UserName(name=name) for name in checked_names(users, "users")]
            if not rows:
                return {}
        response = self._call_any(
            request_messages.DescribeUserScramCredentialsRequest(users=rows),
            DescribeUserScramCredentialsResponse,
            deadline,
            lambda reply: [reply.error_code],
        )
        check(response.error_code, response.error_message)
        return {
            row.user: outcome(
                row.error_code,
                row.error_message or _sentence(row.error_code, row.user),
                [ScramCredential(ScramMechanism(item.mechanism), item.iterations) for item in row.credential_infos],
            )
            for row in response.results
        }

    def alter_user_scram_credentials(
        self, alterations: Iterable[ScramUpsertion | ScramDeletion], timeout_ms: int | None = None
    ) -> dict[str, Outcome[None]]:
        """Sets and takes away passwords; the outcome is per user."""
        from moldau.protocol.messages import alter_user_scram_credentials_request as request_messages
        from moldau.protocol.messages.alter_user_scram_credentials_response import (
            AlterUserScramCredentialsResponse,
        )

        deadline = self._start(timeout_ms)
        rows: dict[str, list[request_messages.ScramCredentialUpsertion | request_messages.ScramCredentialDeletion]] = {}
        for item in alterations:
            user, mechanism = checked_name(item.user, "users"), _checked_mechanism(item.mechanism)
            if isinstance(item, ScramDeletion):
                deletion = request_messages.ScramCredentialDeletion(name=user, mechanism=mechanism)
                rows.setdefault(user, []).append(deletion)
                continue
            salt, salted = _salted(item)
            upsertion = request_messages.ScramCredentialUpsertion(
                name=user, mechanism=mechanism, iterations=item.iterations, salt=salt, salted_password=salted
            )
            rows.setdefault(user, []).append(upsertion)

        def request(users: list[str]) -> request_messages.AlterUserScramCredentialsRequest:
            given = [row for user in users for row in rows[user]]
            return request_messages.AlterUserScramCredentialsRequest(
                deletions=[row for row in given if isinstance(row, request_messages.ScramCredentialDeletion)],
                upsertions=[row for row in given if isinstance(row, request_messages.ScramCredentialUpsertion)],
            )

        def read(response: AlterUserScramCredentialsResponse, target: Target[str]) -> dict[str, Outcome[None]]:
            return {row.user: outcome(row.error_code, row.error_message, None) for row in response.results}

        question = Question(request, AlterUserScramCredentialsResponse, read, RETRY_CONTROLLER)
        return self._ask_controller(list(rows), question, deadline)


def _checked_mechanism(mechanism: ScramMechanism) -> ScramMechanism:
    found = ScramMechanism(mechanism)
    if found not in _HASHES:
        # Its value is not shown: with arguments in a wrong order it is the password.
        raise ValueError("The mechanism of a SCRAM credential is ScramMechanism.SCRAM_SHA_256 or SCRAM_SHA_512.")
    return found


def _salted(item: ScramUpsertion) -> tuple[bytes, bytes]:
    """The salt and the salted password of RFC 5802."""
    import hashlib
    import secrets

    checked_int(item.iterations, f"the iterations of {item.user}", ITERATIONS_MIN, ITERATIONS_MAX)
    password = item.password.encode() if isinstance(item.password, str) else item.password
    if not password:
        raise ValueError(f"The password of {item.user} is empty.")
    salt = secrets.token_bytes(SALT_BYTES) if item.salt is None else item.salt
    if not salt:
        raise ValueError(f"The salt of {item.user} is empty.")
    return salt, hashlib.pbkdf2_hmac(_HASHES[_checked_mechanism(item.mechanism)], password, salt, item.iterations)


def _sentence(code: int, user: str) -> str | None:
    return f"User {user} has no SCRAM credentials." if code == codes.RESOURCE_NOT_FOUND else None
