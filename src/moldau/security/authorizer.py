"""Decides who may do what, as Kafka's StandardAuthorizer does; a pure function of the ACLs in the metadata log.

In this order: a super user may do everything; a DENY that applies forbids; an ALLOW that applies permits; where no ACL
at all is about the resource, `allow.everyone.if.no.acl.found` decides; everything else is forbidden. An ACL is about a
resource if its pattern matches the name (literal, prefixed, or the literal `*`), and applies if principal, host and
operation fit as well. ACLs come and go one by one; `generation` tells whether what was decided before still holds.
"""

from __future__ import annotations

from typing import Final

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.stored.metadata_records import AccessControlEntryRecord
from moldau.security.rights import (
    ALLOW,
    ALLOWING,
    DENY,
    DENYING,
    LITERAL,
    OPERATION_NAMES,
    PATTERN_NAMES,
    PERMISSION_NAMES,
    PREFIXED,
    RESOURCE_NAMES,
    USER,
    WILDCARD,
)

EVERYBODY: Final = "User:*"
ANY_HOST: Final = "*"
PROBE: Final = "hardcode"
"""The name that stands for any resource of a type: whoever may use it needs no ACL of its own name."""


class Acl:
    """One access control entry."""

    def __init__(
        self,
        resource_type: int,
        name: str,
        pattern: int,
        principal: str,
        host: str,
        operation: int,
        permission: int,
    ) -> None:
        self.resource_type = resource_type
        self.name = name
        self.pattern = pattern
        self.principal = principal
        self.host = host
        self.operation = operation
        self.bit = 1 << operation if 0 <= operation < len(OPERATION_NAMES) else 0
        self.permission = permission

    def fits(self, principal: str, host: str) -> bool:
        return (self.principal == principal or self.principal == EVERYBODY) and (
            self.host == host or self.host == ANY_HOST
        )

    def text(self) -> str:
        """As the audit log shows it."""
        return (
            f"StandardAcl[resourceType={word(RESOURCE_NAMES, self.resource_type)}, resourceName={self.name}, "
            f"patternType={word(PATTERN_NAMES, self.pattern)}, principal={self.principal}, host={self.host}, "
            f"operation={word(OPERATION_NAMES, self.operation)}, "
            f"permissionType={word(PERMISSION_NAMES, self.permission)}]"
        )


class Decision:
    """Yes or no, and the rule or entry that decided."""

    def __init__(self, is_allowed: bool, rule: str, acl: Acl | None = None) -> None:
        self.is_allowed = is_allowed
        self.rule = rule
        self.acl = acl

    def reason(self) -> str:
        return self.rule if self.acl is None else f"MatchingAcl(acl={self.acl.text()})"


SUPER_USER: Final = Decision(True, "SuperUser")
DEFAULT_ALLOW: Final = Decision(True, "DefaultAllow")
DEFAULT_DENY: Final = Decision(False, "DefaultDeny")


def word(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else names[0]


class AclsOfType:
    """The ACLs about one type of resource, by name."""

    def __init__(self) -> None:
        self.literal: dict[str, list[Acl]] = {}
        self.prefixed: dict[str, list[Acl]] = {}
        # How many names there are of each length, and the lengths, longest first: the closest pattern is asked first.
        self._length_counts: dict[int, int] = {}
        self.lengths: list[int] = []

    def add(self, acl: Acl) -> None:
        by_name = self.prefixed if acl.pattern == PREFIXED else self.literal
        acls = by_name.get(acl.name)
        if acls is not None:
            acls.append(acl)
            return
        by_name[acl.name] = [acl]
        if acl.pattern == PREFIXED:
            self._count(len(acl.name), 1)

    def remove(self, acl: Acl) -> None:
        by_name = self.prefixed if acl.pattern == PREFIXED else self.literal
        left = [other for other in by_name[acl.name] if other is not acl]
        if left:
            by_name[acl.name] = left
            return
        del by_name[acl.name]
        if acl.pattern == PREFIXED:
            self._count(len(acl.name), -1)

    def _count(self, length: int, change: int) -> None:
        count = self._length_counts.get(length, 0) + change
        if count > 0:
            self._length_counts[length] = count
        else:
            del self._length_counts[length]
        if count == 0 or (count == 1 and change == 1):
            self.lengths = sorted(self._length_counts, reverse=True)

    def about(self, name: str) -> list[list[Acl]]:
        """All that match a name: its own, those of its prefixes, those of all names."""
        found: list[list[Acl]] = []
        own = self.literal.get(name)
        if own is not None:
            found.append(own)
        for length in self.lengths:
            if length <= len(name):
                prefixed = self.prefixed.get(name[:length])
                if prefixed is not None:
                    found.append(prefixed)
        if name != WILDCARD:
            of_all = self.literal.get(WILDCARD)
            if of_all is not None:
                found.append(of_all)
        return found

    def all(self) -> list[Acl]:
        return [acl for by_name in (self.literal, self.prefixed) for acls in by_name.values() for acl in acls]


class Authorizer:
    """`apply` is the only way its ACLs change."""

    def __init__(self, super_users: frozenset[str], allows_without_acls: bool) -> None:
        self.super_users = super_users
        self._default = DEFAULT_ALLOW if allows_without_acls else DEFAULT_DENY
        self._by_id: dict[bytes, Acl] = {}
        self._types = [AclsOfType() for _ in range(USER + 1)]
        self.generation = 0
        self.is_loaded = False
        """Until the ACLs of the log are here, only super users are served."""

    @property
    def acl_count(self) -> int:
        return len(self._by_id)

    def apply(self, changes: dict[bytes, AccessControlEntryRecord | None]) -> None:
        """Takes entries by their id; None where one is gone."""
        if not changes:
            return
        for acl_id, record in changes.items():
            old = self._by_id.pop(acl_id, None)
            if old is not None:
                self._types[old.resource_type].remove(old)
            if record is not None and 0 <= record.resource_type <= USER:
                acl = Acl(
                    record.resource_type,
                    record.resource_name,
                    record.pattern_type,
                    record.principal,
                    record.host,
                    record.operation,
                    record.permission_type,
                )
                self._by_id[acl_id] = acl
                self._types[record.resource_type].add(acl)
        self.generation += 1

    def complete_load(self) -> None:
        if not self.is_loaded:
            self.is_loaded = True
            self.generation += 1

    def _check_loaded(self) -> None:
        if not self.is_loaded:
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR, "The authorizer has not loaded the ACLs yet.")

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Decision:
        if principal in self.super_users:
            return SUPER_USER
        self._check_loaded()
        patterns = self._types[resource_type].about(name)
        if not patterns:
            return self._default
        denying, allowing = DENYING[operation], ALLOWING[operation]
        allowed: Acl | None = None
        for acls in patterns:
            for acl in acls:
                if acl.permission == DENY:
                    if acl.bit & denying and acl.fits(principal, host):
                        return Decision(False, "", acl)
                elif acl.permission == ALLOW and allowed is None and acl.bit & allowing and acl.fits(principal, host):
                    allowed = acl
        return DEFAULT_DENY if allowed is None else Decision(True, "", allowed)

    def decide_for_any(self, principal: str, host: str, operation: int, resource_type: int) -> Decision:
        """Whether there may be a resource of the type, existing or not, that this operation is allowed on."""
        probe = self.decide(principal, host, operation, resource_type, PROBE)
        if probe.is_allowed:
            return probe
        bits = DENYING[operation]
        fitting = [acl for acl in self._types[resource_type].all() if acl.bit & bits and acl.fits(principal, host)]
        denies = [acl for acl in fitting if acl.permission == DENY]
        allows = [acl for acl in fitting if acl.permission == ALLOW]
        for acl in denies:
            if is_wildcard(acl):
                return Decision(False, "", acl)
        literal = {acl.name for acl in denies if acl.pattern == LITERAL}
        prefixes = {acl.name for acl in denies if acl.pattern == PREFIXED}
        for acl in allows:
            if is_wildcard(acl) or not is_dominated(acl, literal, prefixes):
                return Decision(True, "", acl)
        return DEFAULT_DENY


def is_wildcard(acl: Acl) -> bool:
    return acl.pattern == LITERAL and acl.name == WILDCARD


def is_dominated(acl: Acl, literal: set[str], prefixes: set[str]) -> bool:
    """Whether everything that an ALLOW permits is forbidden by a DENY of its name or of a prefix of it."""
    name = acl.name
    if acl.pattern == LITERAL and name in literal:
        return True
    return any(name.startswith(prefix) for prefix in prefixes)


def super_users_of(text: str) -> frozenset[str]:
    """`super.users`: `User:a;User:b`, blanks around each."""
    return frozenset([user.strip() for user in text.split(";") if user.strip()])


# What one connection may do

KEPT_MAX: Final = 1000
KEPT_NAME_MAX: Final = 250


class SessionRights:
    """What a connection was allowed, kept until an ACL changes. Refusals are not kept: there is no end of names that do
    not exist."""

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self._authorizer = authorizer
        self.principal = principal
        self.host = host
        self._generation = authorizer.generation
        self._allowed: dict[int, dict[str, Decision]] = {}
        self._count = 0

    def decide(self, operation: int, resource_type: int, name: str) -> Decision:
        authorizer = self._authorizer
        if self._generation != authorizer.generation:
            self._forget()
        by_name = self._allowed.get(operation << 4 | resource_type)
        if by_name is not None:
            known = by_name.get(name)
            if known is not None:
                return known
        decision = authorizer.decide(self.principal, self.host, operation, resource_type, name)
        if decision.is_allowed and len(name) <= KEPT_NAME_MAX:
            self._keep(operation << 4 | resource_type, name, decision)
        return decision

    def decide_for_any(self, operation: int, resource_type: int) -> Decision:
        return self._authorizer.decide_for_any(self.principal, self.host, operation, resource_type)

    def _forget(self) -> None:
        self._allowed = {}
        self._count = 0
        self._generation = self._authorizer.generation

    def _keep(self, right: int, name: str, decision: Decision) -> None:
        if self._count >= KEPT_MAX:
            self._forget()
        self._count += 1
        by_name = self._allowed.get(right)
        if by_name is None:
            by_name = self._allowed[right] = {}
        by_name[name] = decision
