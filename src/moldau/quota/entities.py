"""Which quota holds for a user and a client id: eight levels, the first that has a value for the key wins.

A level also says who shares a budget: the pair of tags (user, client id), where an empty part means that all share it.
Kafka: DefaultQuotaCallback.
"""

from __future__ import annotations

from typing import Final

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CLIENT_KEYS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
"""Those that entities of users and client ids may have."""

USER: Final = "user"
CLIENT_ID: Final = "client-id"

UNLIMITED: Final = float(2**63 - 1)

NO_LEVEL: Final = 0
USER_AND_CLIENT: Final = 1
USER_AND_DEFAULT_CLIENT: Final = 2
USER_ALONE: Final = 3
DEFAULT_USER_AND_CLIENT: Final = 4
DEFAULT_USER_AND_DEFAULT_CLIENT: Final = 5
DEFAULT_USER: Final = 6
CLIENT_ALONE: Final = 7
DEFAULT_CLIENT: Final = 8

LEVELS: Final = {
    USER_AND_CLIENT: "the user with the client id",
    USER_AND_DEFAULT_CLIENT: "the user with the default client id",
    USER_ALONE: "the user",
    DEFAULT_USER_AND_CLIENT: "the default user with the client id",
    DEFAULT_USER_AND_DEFAULT_CLIENT: "the default user with the default client id",
    DEFAULT_USER: "the default user",
    CLIENT_ALONE: "the client id",
    DEFAULT_CLIENT: "the default client id",
}
"""In the order in which they are asked."""

Entity = tuple[tuple[str, str | None], ...]
"""As the metadata image has it: pairs of type and name, sorted; no name is the default entity."""
Tags = tuple[str, str]
"""User and client id; an empty one is not part of the key of the budget."""


class Match:
    """What was found: the level and its entity, who shares the budget, and the limit."""

    def __init__(self, level: int, tags: Tags, bound: float, entity: Entity) -> None:
        self.level = level
        self.tags = tags
        self.bound = bound
        self.entity = entity

    @property
    def is_limited(self) -> bool:
        return self.level != NO_LEVEL


class KeyTable:
    """The values of one quota key, by user and client id; None is the default."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[str | None, str | None], float] = {}
        self.users: dict[str | None, float] = {}
        self.clients: dict[str | None, float] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.pairs or self.users or self.clients)

    def change(self, entity: Entity, value: float | None) -> None:
        """Sets or removes the value of an entity; one of other types is left alone."""
        has_user = has_client = False
        user: str | None = None
        client_id: str | None = None
        for kind, name in entity:
            if kind == USER:
                has_user, user = True, name
            elif kind == CLIENT_ID:
                has_client, client_id = True, name
            else:
                return
        if has_user and has_client:
            self.pairs.pop((user, client_id), None)
            if value is not None:
                self.pairs[user, client_id] = value
        elif has_user:
            self.users.pop(user, None)
            if value is not None:
                self.users[user] = value
        elif has_client:
            self.clients.pop(client_id, None)
            if value is not None:
                self.clients[client_id] = value

    def resolve(self, user: str, client_id: str) -> Match:
        tags = self.tags_of(user, client_id)
        return self.match(tags)

    def tags_of(self, user: str, client_id: str) -> Tags:
        """Who shares a budget with whom. Where entities of one group exist alone, it is that group's for everybody."""
        pairs, users, clients = self.pairs, self.users, self.clients
        groups = (1 if pairs else 0) + (1 if users else 0) + (1 if clients else 0)
        if groups <= 1:
            if pairs:
                return (user, client_id)
            return (user, "") if users else ("", client_id)
        if (user, client_id) in pairs or (user, None) in pairs:
            return (user, client_id)
        if user in users:
            return (user, "")
        if (None, client_id) in pairs or (None, None) in pairs:
            return (user, client_id)
        if None in users:
            return (user, "")
        return ("", client_id)

    def match(self, tags: Tags) -> Match:
        """The limit of a budget. An empty client id is not part of a key, so only users' levels can limit it."""
        user, client_id = tags
        if user and client_id:
            return self._match_pair(user, client_id, tags)
        if user:
            bound = self.users.get(user)
            if bound is not None:
                return Match(USER_ALONE, tags, bound, ((USER, user),))
            bound = self.users.get(None)
            if bound is not None:
                return Match(DEFAULT_USER, tags, bound, ((USER, None),))
        elif client_id:
            bound = self.clients.get(client_id)
            if bound is not None:
                return Match(CLIENT_ALONE, tags, bound, ((CLIENT_ID, client_id),))
            bound = self.clients.get(None)
            if bound is not None:
                return Match(DEFAULT_CLIENT, tags, bound, ((CLIENT_ID, None),))
        return Match(NO_LEVEL, tags, UNLIMITED, ())

    def _match_pair(self, user: str, client_id: str, tags: Tags) -> Match:
        pairs = self.pairs
        bound = pairs.get((user, client_id))
        if bound is not None:
            return Match(USER_AND_CLIENT, tags, bound, ((CLIENT_ID, client_id), (USER, user)))
        bound = pairs.get((user, None))
        if bound is not None:
            return Match(USER_AND_DEFAULT_CLIENT, tags, bound, ((CLIENT_ID, None), (USER, user)))
        bound = pairs.get((None, client_id))
        if bound is not None:
            return Match(DEFAULT_USER_AND_CLIENT, tags, bound, ((CLIENT_ID, client_id), (USER, None)))
        bound = pairs.get((None, None))
        if bound is not None:
            return Match(DEFAULT_USER_AND_DEFAULT_CLIENT, tags, bound, ((CLIENT_ID, None), (USER, None)))
        return Match(NO_LEVEL, tags, UNLIMITED, ())


class QuotaTable:
    """The quotas of all users and client ids, by key. Each change makes a new generation."""

    def __init__(self, quotas: dict[Entity, dict[str, float]] | None = None) -> None:
        self.generation = 0
        self.keys: dict[str, KeyTable] = {key: KeyTable() for key in CLIENT_KEYS}
        if quotas is not None:
            self.replace(quotas)

    def replace(self, quotas: dict[Entity, dict[str, float]]) -> None:
        self.generation += 1
        for key in CLIENT_KEYS:
            table = self.keys[key] = KeyTable()
            for entity, values in quotas.items():
                if key in values:
                    table.change(entity, values[key])

    def change(self, entity: Entity, values: dict[str, float] | None) -> None:
        """An entity has these values now; None: it is gone."""
        self.generation += 1
        for key in CLIENT_KEYS:
            self.keys[key].change(entity, None if values is None else values.get(key))

    def resolve(self, key: str, user: str, client_id: str | None) -> Match:
        """What holds for a client; no client id counts as an empty one."""
        return self.keys[key].resolve(user, client_id or "")
