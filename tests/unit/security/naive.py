"""A second opinion about rights: the rules read out one after the other, with nothing kept and nothing looked up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
ALL = 2
IMPLIED = {8: {3, 4, 6, 7}, 10: {11}}
"""Describe by read, write, delete and alter; describe configs by alter configs."""


class Entry(NamedTuple):
    resource_type: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


class Asked(NamedTuple):
    principal: str
    host: str
    operation: int
    resource_type: int
    name: str


def is_about(entry: Entry, asked: Asked) -> bool:
    if entry.resource_type != asked.resource_type:
        return False
    if entry.pattern == PREFIXED:
        return asked.name.startswith(entry.name)
    return entry.name in (asked.name, "*")


def applies(entry: Entry, asked: Asked) -> bool:
    operations = {asked.operation, ALL}
    if entry.permission == ALLOW:
        operations |= IMPLIED.get(asked.operation, set())
    return (
        entry.principal in (asked.principal, "User:*")
        and entry.host in (asked.host, "*")
        and entry.operation in operations
    )


def is_allowed(asked: Asked, entries: Iterable[Entry], super_users: set[str], by_default: bool) -> bool:
    if asked.principal in super_users:
        return True
    about = [entry for entry in entries if is_about(entry, asked)]
    if not about:
        return by_default
    permissions = {entry.permission for entry in about if applies(entry, asked)}
    return DENY not in permissions and ALLOW in permissions


def is_allowed_somewhere(asked: Asked, entries: Iterable[Entry], super_users: set[str], by_default: bool) -> bool:
    """For any resource of the type; what an ALLOW names must not be wholly within a DENY."""
    if is_allowed(asked._replace(name="hardcode"), entries, super_users, by_default):
        return True
    fitting = [
        entry
        for entry in entries
        if entry.resource_type == asked.resource_type
        and entry.principal in (asked.principal, "User:*")
        and entry.host in (asked.host, "*")
        and entry.operation in (asked.operation, ALL)
    ]
    denies = [entry for entry in fitting if entry.permission == DENY]
    if any(entry.pattern == LITERAL and entry.name == "*" for entry in denies):
        return False
    for allow in (entry for entry in fitting if entry.permission == ALLOW):
        if allow.pattern == LITERAL and allow.name == "*":
            return True
        covered = [
            deny
            for deny in denies
            if (deny.pattern == PREFIXED and allow.name.startswith(deny.name))
            or (deny.pattern == LITERAL and allow.pattern == LITERAL and deny.name == allow.name)
        ]
        if not covered:
            return True
    return False
