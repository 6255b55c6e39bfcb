"""Rights as a node checks them: the authorizer with the ACLs of its metadata, its audit log, and what it counts."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.node.context import ClientContext
from moldau.protocol.api_keys import BY_KEY
from moldau.quota.rates import WindowedRate
from moldau.security.audit import Audit
from moldau.security.authorizer import Authorizer, Decision, SessionRights, super_users_of
from moldau.security.rights import CLUSTER, CLUSTER_NAME, DESCRIBE, OPERATIONS_OF

AUTHORIZER_KEY: Final = "authorizer.class.name"
WINDOW_COUNT: Final = 2
WINDOW_MS: Final = 30_000


class Authorization:
    """Asked by the handlers, once for each thing that a request names."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer
        self.audit = Audit()
        self.allowed = WindowedRate(WINDOW_COUNT, WINDOW_MS)
        self.denied = WindowedRate(WINDOW_COUNT, WINDOW_MS)

    def may(
        self,
        context: ClientContext,
        operation: int,
        resource_type: int,
        name: str,
        *,
        api_key: int,
        count: int,
        is_filter: bool,
        now_ms: int,
    ) -> bool:
        """Whether the client may do it. `count` items of the request hang on it. A filter only leaves something out of
        a response, or is a first try: nobody is told of it."""
        rights = context.rights
        if rights is None or rights.principal != context.principal:
            rights = self.rights_of(context)
        decision = rights.decide(operation, resource_type, name)
        is_allowed = decision.is_allowed
        self._count(is_allowed, now_ms)
        if self.audit.wants(is_allowed, is_filter, now_ms):
            self._tell(
                decision,
                rights,
                operation,
                resource_type,
                name,
                api_key=api_key,
                count=count,
                is_filter=is_filter,
                now_ms=now_ms,
            )
        return is_allowed

    def may_any(self, context: ClientContext, operation: int, resource_type: int, api_key: int, now_ms: int) -> bool:
        """Whether there is a resource of this type that the client may do it to."""
        rights = self.rights_of(context)
        decision = rights.decide_for_any(operation, resource_type)
        self._count(decision.is_allowed, now_ms)
        if self.audit.wants(decision.is_allowed, False, now_ms):
            self._tell(
                decision,
                rights,
                operation,
                resource_type,
                "*",
                api_key=api_key,
                count=1,
                is_filter=False,
                now_ms=now_ms,
            )
        return decision.is_allowed

    def operations(self, context: ClientContext, resource_type: int, name: str) -> int:
        """An authorized-operations field: the bits of all that the client may do."""
        rights = self.rights_of(context)
        bits = 0
        for operation in OPERATIONS_OF[resource_type]:
            if rights.decide(operation, resource_type, name).is_allowed:
                bits |= 1 << operation
        return bits

    def cluster_operations(self, context: ClientContext) -> int:
        """Nothing at all for whoever may not describe the cluster."""
        if not self.rights_of(context).decide(DESCRIBE, CLUSTER, CLUSTER_NAME).is_allowed:
            return 0
        return self.operations(context, CLUSTER, CLUSTER_NAME)

    def rights_of(self, context: ClientContext) -> SessionRights:
        rights = context.rights
        if rights is None or rights.principal != context.principal:
            rights = context.rights = SessionRights(self.authorizer, context.principal, host_text(context.peer))
        return rights

    def _count(self, is_allowed: bool, now_ms: int) -> None:
        if is_allowed:
            self.allowed.record(1, now_ms)
        else:
            self.denied.record(1, now_ms)

    def _tell(
        self,
        decision: Decision,
        rights: SessionRights,
        operation: int,
        resource_type: int,
        name: str,
        *,
        api_key: int,
        count: int,
        is_filter: bool,
        now_ms: int,
    ) -> None:
        api_name: str = BY_KEY[api_key].name
        self.audit.tell(
            decision,
            rights.principal,
            rights.host,
            operation,
            resource_type,
            name,
            api_name=api_name,
            count=count,
            is_filter=is_filter,
            now_ms=now_ms,
        )


def make_authorization(config: BrokerConfig) -> Authorization | None:
    """None where nobody is asked: no `authorizer.class.name`. `config.unserved` has refused every other class."""
    if not config.get_str(AUTHORIZER_KEY):
        return None
    users = super_users_of(config.values.get("super.users", ""))
    allows = config.values.get("allow.everyone.if.no.acl.found", "").strip().lower() == "true"
    return Authorization(Authorizer(users, allows))


def host_text(peer: str) -> str:
    """The address of `address:port` as ACLs name it: IPv6 with all its eight groups, as Java writes it."""
    host = peer.rpartition(":")[0].strip("[]")
    plain, percent, zone = host.partition("%")
    try:
        address = ip_address(plain)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return plain
    mapped = address.ipv4_mapped
    if mapped is not None:
        return str(mapped)
    groups = [f"{int(group, 16):x}" for group in address.exploded.split(":")]
    return ":".join(groups) + percent + zone
