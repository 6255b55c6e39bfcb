"""Decides who may do what, as Kafka's StandardAuthorizer does; a pure function of the ACLs in the metadata log.

In this order: a super user may do everything; a DENY that applies forbids; an ALLOW that applies permits; where no ACL
at all is about the resource, `allow.everyone.if.no.acl.found` decides; everything else is forbidden. An ACL is about a
resource if its pattern matches the name (literal, prefixed, or the literal `*`), and applies if principal, host and
operation fit as well.

Entries are found by whom they are for: principal and host of an entry are one key, and whoever asks has four of them
(each of the two may be `*`). So a decision costs what the entries of the one who asks cost, however many others there
are. ACLs come and go one by one, each at the cost of its own place; `generation` tells whether what was found before
still holds.
"""

from __future__ import annotations

from bisect import bisect_left
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


class Decision:
    """Yes or no, and the rule that decided."""

    def __init__(self, is_allowed: bool, rule: str) -> None:
        self.is_allowed = is_allowed
        self.rule = rule

    def reason(self) -> str:
        return self.rule


SUPER_USER: Final = Decision(True, "SuperUser")
DEFAULT_ALLOW: Final = Decision(True, "DefaultAllow")
DEFAULT_DENY: Final = Decision(False, "DefaultDeny")


class Acl(Decision):
    """One access control entry, which is the decision that it makes where it applies."""

    def __init__(self, record: AccessControlEntryRecord) -> None:
        super().__init__(record.permission_type == ALLOW, "")
        self.resource_type = record.resource_type
        self.name = record.resource_name
        self.pattern = record.pattern_type
        self.principal = record.principal
        self.host = record.host
        self.operation = record.operation
        self.bit = 1 << record.operation if 0 <= record.operation < len(OPERATION_NAMES) else 0
        self.permission = record.permission_type

    def is_wildcard(self) -> bool:
        return self.pattern == LITERAL and self.name == WILDCARD

    def reason(self) -> str:
        """As the audit log shows it."""
        return (
            f"MatchingAcl(acl=StandardAcl[resourceType={word(RESOURCE_NAMES, self.resource_type)}, "
            f"resourceName={self.name}, patternType={word(PATTERN_NAMES, self.pattern)}, "
            f"principal={self.principal}, host={self.host}, operation={word(OPERATION_NAMES, self.operation)}, "
            f"permissionType={word(PERMISSION_NAMES, self.permission)}])"
        )


def word(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else names[0]


# Entries and where they are found


class Lengths:
    """How long the names of prefixed patterns are: a name is looked for at these lengths alone."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.ascending: list[int] = []

    def add(self, length: int) -> None:
        count = self._counts.get(length, 0)
        self._counts[length] = count + 1
        if count == 0:
            self.ascending.insert(bisect_left(self.ascending, length), length)

    def remove(self, length: int) -> None:
        count = self._counts[length]
        if count > 1:
            self._counts[length] = count - 1
        else:
            del self._counts[length]
            del self.ascending[bisect_left(self.ascending, length)]


class Entries:
    """ACLs by their patterns: those for one principal at one host, about one type of resource, of one permission."""

    def __init__(self) -> None:
        self.literal: dict[str, list[Acl]] = {}
        self.prefixed: dict[str, list[Acl]] = {}
        self.lengths: Lengths | None = None

    def add(self, acl: Acl) -> None:
        by_name = self.prefixed if acl.pattern == PREFIXED else self.literal
        acls = by_name.get(acl.name)
        if acls is not None:
            acls.append(acl)
            return
        by_name[acl.name] = [acl]
        if acl.pattern == PREFIXED:
            if self.lengths is None:
                self.lengths = Lengths()
            self.lengths.add(len(acl.name))

    def remove(self, acl: Acl) -> None:
        by_name = self.prefixed if acl.pattern == PREFIXED else self.literal
        acls = by_name[acl.name]
        acls.remove(acl)
        if acls:
            return
        del by_name[acl.name]
        lengths = self.lengths
        if acl.pattern == PREFIXED and lengths is not None:
            lengths.remove(len(acl.name))
            if not self.prefixed:
                self.lengths = None

    def is_empty(self) -> bool:
        return not self.literal and not self.prefixed

    def find(self, name: str, bits: int) -> Acl | None:
        """One that is about a name and of one of the operations: of the name itself, of a prefix, or of all names."""
        found = with_bit(self.literal.get(name), bits)
        if found is None and self.lengths is not None:
            found = self.find_prefixed(name, bits)
        if found is None:
            found = with_bit(self.literal.get(WILDCARD), bits)
        return found

    def find_prefixed(self, name: str, bits: int) -> Acl | None:
        lengths = self.lengths
        if lengths is None:
            return None
        size = len(name)
        for length in lengths.ascending:
            if length > size:
                break
            found = with_bit(self.prefixed.get(name[:length]), bits)
            if found is not None:
                return found
        return None

    def covers(self, allow: Acl, bits: int) -> bool:
        """Whether these, being DENYs, forbid everything that an ALLOW permits."""
        if allow.pattern == LITERAL and with_bit(self.literal.get(allow.name), bits) is not None:
            return True
        return self.find_prefixed(allow.name, bits) is not None


def with_bit(acls: list[Acl] | None, bits: int) -> Acl | None:
    if acls is not None:
        for acl in acls:
            if acl.bit & bits:
                return acl
    return None


def key_of(principal: str, host: str) -> str:
    """Whom an entry is for, as one text; no two pairs have the same."""
    return f"{len(host)} {host} {principal}"


def keys_of(principal: str, host: str) -> list[str]:
    """Those of the entries that are for somebody."""
    principals = [principal] if principal == EVERYBODY else [principal, EVERYBODY]
    hosts = [host] if host == ANY_HOST else [host, ANY_HOST]
    return [key_of(one, at) for one in principals for at in hosts]


class Patterns:
    """Which patterns there are at all, whoever their entries are for."""

    def __init__(self) -> None:
        self._literal: dict[str, int] = {}
        self._prefixed: dict[str, int] = {}
        self._lengths = Lengths()

    def add(self, acl: Acl) -> None:
        counts = self._prefixed if acl.pattern == PREFIXED else self._literal
        count = counts.get(acl.name, 0)
        counts[acl.name] = count + 1
        if count == 0 and acl.pattern == PREFIXED:
            self._lengths.add(len(acl.name))

    def remove(self, acl: Acl) -> None:
        counts = self._prefixed if acl.pattern == PREFIXED else self._literal
        count = counts[acl.name]
        if count > 1:
            counts[acl.name] = count - 1
            return
        del counts[acl.name]
        if acl.pattern == PREFIXED:
            self._lengths.remove(len(acl.name))

    def has_any_about(self, name: str) -> bool:
        if name in self._literal or WILDCARD in self._literal:
            return True
        size = len(name)
        for length in self._lengths.ascending:
            if length > size:
                break
            if name[:length] in self._prefixed:
                return True
        return False


class AclsOfType:
    """The ACLs about one type of resource, by whom they are for."""

    def __init__(self, patterns: Patterns | None) -> None:
        self.allows: dict[str, Entries] = {}
        self.denies: dict[str, Entries] = {}
        self.patterns = patterns
        """Asked only where everyone may do what no ACL is about."""

    def add(self, acl: Acl) -> None:
        if self.patterns is not None:
            self.patterns.add(acl)
        by_key = self._of_permission(acl.permission)
        if by_key is None:
            return
        key = key_of(acl.principal, acl.host)
        entries = by_key.get(key)
        if entries is None:
            entries = by_key[key] = Entries()
        entries.add(acl)

    def remove(self, acl: Acl) -> None:
        if self.patterns is not None:
            self.patterns.remove(acl)
        by_key = self._of_permission(acl.permission)
        if by_key is None:
            return
        key = key_of(acl.principal, acl.host)
        entries = by_key[key]
        entries.remove(acl)
        if entries.is_empty():
            del by_key[key]

    def _of_permission(self, permission: int) -> dict[str, Entries] | None:
        if permission == ALLOW:
            return self.allows
        return self.denies if permission == DENY else None


class Authorizer:
    """`apply` is the only way its ACLs change."""

    def __init__(self, super_users: frozenset[str], allows_without_acls: bool) -> None:
        self.super_users = super_users
        self._by_id: dict[bytes, Acl] = {}
        self.types = [AclsOfType(Patterns() if allows_without_acls else None) for _ in range(USER + 1)]
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
                self.types[old.resource_type].remove(old)
            if record is not None and 0 <= record.resource_type <= USER:
                acl = Acl(record)
                self._by_id[acl_id] = acl
                self.types[acl.resource_type].add(acl)
        self.generation += 1

    def complete_load(self) -> None:
        if not self.is_loaded:
            self.is_loaded = True
            self.generation += 1

    def check_loaded(self) -> None:
        if not self.is_loaded:
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR, "The authorizer has not loaded the ACLs yet.")


def super_users_of(text: str) -> frozenset[str]:
    """`super.users`: `User:a;User:b`, blanks around each."""
    return frozenset([user.strip() for user in text.split(";") if user.strip()])


# Who asks


class Found:
    """The entries about a type of resource that are for the one who asks."""

    def __init__(self, acls: AclsOfType, keys: list[str]) -> None:
        self.allows: list[Entries] = []
        self.denies: list[Entries] = []
        for key in keys:
            allows = acls.allows.get(key)
            if allows is not None:
                self.allows.append(allows)
            denies = acls.denies.get(key)
            if denies is not None:
                self.denies.append(denies)
        self.patterns = acls.patterns

    def decide_for_any(self, operation: int) -> Decision:
        """Whether an ALLOW is left that no DENY covers; implied operations do not count here, as in Kafka."""
        bits = DENYING[operation]
        for denies in self.denies:
            of_all = with_bit(denies.literal.get(WILDCARD), bits)
            if of_all is not None:
                return of_all
        for allows in self.allows:
            for by_name in (allows.literal, allows.prefixed):
                for acls in by_name.values():
                    acl = with_bit(acls, bits)
                    if acl is not None and (acl.is_wildcard() or not self._is_covered(acl, bits)):
                        return acl
        return DEFAULT_DENY

    def _is_covered(self, allow: Acl, bits: int) -> bool:
        return any(denies.covers(allow, bits) for denies in self.denies)


class SessionRights:
    """What one principal may do from one host. It keeps where the entries are, and what was decided for any resource,
    until an ACL changes; names are not kept, since finding them again costs as much as looking up what was kept."""

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self._authorizer = authorizer
        self.principal = principal
        self.host = host
        self._is_super_user = principal in authorizer.super_users
        self._keys = keys_of(principal, host)
        self._generation = -1
        self._found: list[Found | None] = []
        self._for_any: dict[int, Decision] = {}

    def decide(self, operation: int, resource_type: int, name: str) -> Decision:
        if self._is_super_user:
            return SUPER_USER
        found = self._entries_about(resource_type)
        for denies in found.denies:
            deny = denies.find(name, DENYING[operation])
            if deny is not None:
                return deny
        for allows in found.allows:
            allow = allows.find(name, ALLOWING[operation])
            if allow is not None:
                return allow
        patterns = found.patterns
        if patterns is not None and not patterns.has_any_about(name):
            return DEFAULT_ALLOW
        return DEFAULT_DENY

    def decide_for_any(self, operation: int, resource_type: int) -> Decision:
        """Whether there may be a resource of the type, existing or not, that this operation is allowed on."""
        if self._is_super_user:
            return SUPER_USER
        found = self._entries_about(resource_type)
        asked = operation << 4 | resource_type
        known = self._for_any.get(asked)
        if known is None:
            probe = self.decide(operation, resource_type, PROBE)
            known = self._for_any[asked] = probe if probe.is_allowed else found.decide_for_any(operation)
        return known

    def _entries_about(self, resource_type: int) -> Found:
        authorizer = self._authorizer
        if self._generation != authorizer.generation:
            authorizer.check_loaded()
            self._found = [None] * len(authorizer.types)
            self._for_any = {}
            self._generation = authorizer.generation
        found = self._found[resource_type]
        if found is None:
            found = self._found[resource_type] = Found(authorizer.types[resource_type], self._keys)
        return found
