"""Findings about rights: who may do what once connected, and listeners that let in who is nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.security.authorizer import super_users_of
from moldau.security.exposure.findings import NOTE, SEVERE, WARNING, Facts, Finding
from moldau.security.exposure.listeners import (
    BROKERS,
    CLIENT_AUTH_KEY,
    CONTROLLERS,
    PROTOCOL_MAP_KEY,
    THIS_MACHINE,
    ListenerView,
    key_in_use,
)
from moldau.security.sasl_settings import OwnCredentials, controller_credentials, inter_broker_credentials
from moldau.security.tls_settings import NONE

AUTHORIZER_KEY: Final = "authorizer.class.name"
SUPER_USERS_KEY: Final = "super.users"
ALLOW_EVERYONE_KEY: Final = "allow.everyone.if.no.acl.found"
ANONYMOUS: Final = "User:ANONYMOUS"


class Rights:
    """Who decides, and who need not ask."""

    def __init__(self, config: BrokerConfig) -> None:
        self.authorizer = config.get_str(AUTHORIZER_KEY)
        self.super_users = sorted(super_users_of(config.values.get(SUPER_USERS_KEY, "")))
        self.allows_everyone = config.values.get(ALLOW_EVERYONE_KEY, "").strip().lower() == "true"

    def why_anonymous_may_everything(self) -> tuple[str, str] | None:
        """The key behind it and a clause; None where ACLs decide."""
        if not self.authorizer:
            return AUTHORIZER_KEY, "there is no authorizer"
        if ANONYMOUS in self.super_users:
            return SUPER_USERS_KEY, f"{ANONYMOUS} is a super user"
        if self.allows_everyone:
            return ALLOW_EVERYONE_KEY, "whatever has no ACL is everybody's"
        return None


def check_rights(config: BrokerConfig, listeners: list[ListenerView], facts: Facts) -> Iterator[Finding]:
    rights = Rights(config)
    for view in listeners:
        if view.is_anonymous:
            yield _anonymous(config, view, rights)
    yield from _without_authorizer(listeners, rights)
    yield from _authorizer_settings(rights)
    if rights.authorizer:
        yield from _nodes_without_rights(config, rights)
        yield from _certificates_without_rights(config, listeners, rights, facts)


def _anonymous(config: BrokerConfig, view: ListenerView, rights: Rights) -> Finding:
    """A listener that takes everybody; how bad that is depends on what everybody may do."""
    is_for_controllers = CONTROLLERS in view.used_by
    code = "open-controller" if is_for_controllers else "open-listener"
    why = rights.why_anonymous_may_everything()
    door = f"Whoever reaches {view.place} is let in without a login"
    if view.reach == THIS_MACHINE:
        door = f"Everybody on this machine is let in without a login at {view.address}"
    key = _door_key(config, view)
    if why is None:
        text = f"{door}, as {ANONYMOUS}, and may do what ACLs allow {ANONYMOUS} and User:*."
        return Finding(view.scaled(WARNING), "anonymous-clients", key, text, view.name)
    what = (
        "change the cluster's metadata, users and ACLs"
        if is_for_controllers
        else "read, write and administer everything"
    )
    return Finding(view.scaled(SEVERE), code, key, f"{door} and may {what}, for {why[1]} ({why[0]}).", view.name)


def _door_key(config: BrokerConfig, view: ListenerView) -> str:
    return key_in_use(config, view.name, CLIENT_AUTH_KEY) if view.is_encrypted else PROTOCOL_MAP_KEY


def _without_authorizer(listeners: list[ListenerView], rights: Rights) -> Iterator[Finding]:
    guarded = [view for view in listeners if not view.is_anonymous and view.reach != THIS_MACHINE]
    if not rights.authorizer and guarded:
        names = " and ".join(view.name for view in guarded)
        text = f"There is no authorizer: whoever gets in at {names} may read, write and administer everything."
        yield Finding(WARNING, "no-authorizer", AUTHORIZER_KEY, text)


def _authorizer_settings(rights: Rights) -> Iterator[Finding]:
    if not rights.authorizer:
        if rights.super_users or rights.allows_everyone:
            text = "Super users and ACLs mean nothing without an authorizer: everybody may do everything."
            yield Finding(WARNING, "rights-without-authorizer", AUTHORIZER_KEY, text)
        return
    if rights.allows_everyone:
        text = "Whoever is connected may do everything to what has no ACL yet, also create and delete it."
        yield Finding(WARNING, "allow-everyone", ALLOW_EVERYONE_KEY, text)
    if "User:*" in rights.super_users:
        text = "User:* is no pattern among super users: it is a user of the name *, and nobody else."
        yield Finding(NOTE, "super-user-star", SUPER_USERS_KEY, text)
    untyped = [name for name in rights.super_users if not name.partition(":")[1]]
    if untyped:
        text = f"{', '.join(untyped)} cannot be anybody: write User:{untyped[0]}."
        yield Finding(WARNING, "super-user-without-type", SUPER_USERS_KEY, text)
    if not rights.super_users:
        text = "There is no super user: where the first ACL is missing or wrong nobody can mend it."
        yield Finding(WARNING, "no-super-user", SUPER_USERS_KEY, text)


def _nodes_without_rights(config: BrokerConfig, rights: Rights) -> Iterator[Finding]:
    """Nodes need ClusterAction of each other; by ACLs they could not have it before ACLs are loaded."""
    for whose, find in ((BROKERS, inter_broker_credentials), (CONTROLLERS, controller_credentials)):
        try:
            own: OwnCredentials | None = find(config)
        except ConfigError:
            continue  # told as what keeps a node from starting
        user = None if own is None else own.options.get("username")
        if user and f"User:{user}" not in rights.super_users:
            yield _no_super_user(f"logs in at {whose} as User:{user}")


def _certificates_without_rights(
    config: BrokerConfig, listeners: list[ListenerView], rights: Rights, facts: Facts
) -> Iterator[Finding]:
    """The same where nodes know each other by certificates. Other nodes' listeners are taken to ask for one."""
    asks = {view.name: view.client_auth != NONE for view in listeners}
    brokers = [config.inter_broker_listener_name] if config.is_broker else []
    for whose, names in ((BROKERS, brokers), (CONTROLLERS, config.controller_listener_names[:1])):
        for name in names:
            principal = facts.stores[name].principal if name in facts.stores else ""
            if principal and asks.get(name, True) and principal not in rights.super_users:
                yield _no_super_user(f"is known at {whose} by its certificate as {principal}")


def _no_super_user(how: str) -> Finding:
    text = f"This node {how}, which is no super user: it needs ClusterAction there."
    return Finding(WARNING, "node-is-no-super-user", SUPER_USERS_KEY, text)
