"""What is found in settings: how bad it is, what it means, and which setting changes it; and the facts it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from moldau.security.der import Certificate

SEVERE: Final = "severe"
WARNING: Final = "warning"
NOTE: Final = "note"
SEVERITIES: Final = (SEVERE, WARNING, NOTE)


class Finding(NamedTuple):
    """One thing to know. `code` is for programs and does not change; `key` is the setting to change."""

    severity: str
    code: str
    key: str
    message: str
    listener: str = ""


class StoreFacts(NamedTuple):
    """A listener's key store, as its file was found."""

    mode: int | None = None
    """The file's permissions; None where the settings hold the key themselves, or where there is no file."""
    problem: str = ""
    """Why stores cannot be used; empty where they can."""
    certificate: Certificate | None = None
    trust_mode: int | None = None
    """The permissions of the trust store's file; None where there is none."""
    principal: str = ""
    """Who this node is to others that see its certificate; empty where that cannot be told."""


class Facts(NamedTuple):
    """What settings alone do not tell."""

    file: str = "server.properties"
    file_mode: int | None = None
    stores: Mapping[str, StoreFacts] = {}
    """By listener; that of the controllers is among them where this node only connects to it."""
    log_dirs: Mapping[str, int] = {}
    """The permissions of log directories that are there, the metadata log's too; none for others behind closed ones."""


def worse(severity: str, other: str) -> str:
    return severity if SEVERITIES.index(severity) <= SEVERITIES.index(other) else other
