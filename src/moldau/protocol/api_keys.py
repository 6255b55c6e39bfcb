"""One row per api: key, name, versions, listeners, and its message classes, imported when first asked for.

The constants (PRODUCE, FETCH, ...) are in api_table.py. What a broker offers differs in three places from what the
schemas say, and only here: Produce is offered from version 0 on, since older librdkafka stops compressing otherwise
(KAFKA-18659), although the lowest that is served is 3; the newest version of InitProducerId is not stable; and the two
telemetry apis are there only when somebody listens to telemetry.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Final

from moldau.protocol.api_table import API_VERSIONS, GET_TELEMETRY_SUBSCRIPTIONS, PRODUCE, PUSH_TELEMETRY, ROWS
from moldau.protocol.primitives import Message

BROKER: Final = "broker"
CONTROLLER: Final = "controller"


class Api:
    """One row of the table."""

    def __init__(self, row: tuple[int, str, int, int, int, int, bool, bool]) -> None:
        self.key: int = row[0]
        self.name: str = row[1]
        # What can be decoded and encoded.
        self.lowest_version: int = row[2]
        self.highest_version: int = row[3]
        self.first_flexible_version: int = row[4]
        self.highest_stable_version: int = row[5]
        self.on_broker: bool = row[6]
        self.on_controller: bool = row[7]
        # What ApiVersions shows.
        self.lowest_advertised: int = 0 if self.key == PRODUCE else self.lowest_version
        self.highest_advertised: int = self.highest_stable_version
        self.advertised_by_default: bool = self.key not in (GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY)

    @property
    def listeners(self) -> tuple[str, ...]:
        return tuple(name for name, on in ((BROKER, self.on_broker), (CONTROLLER, self.on_controller)) if on)

    def serves(self, version: int) -> bool:
        """Whether a request in this version is answered; any other closes the connection (but see ApiVersions)."""
        return self.lowest_version <= version <= self.highest_stable_version

    @property
    def snake_name(self) -> str:
        """ListOffsets: list_offsets, as the modules of its messages are called."""
        return re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.name})"


APIS: Final[tuple[Api, ...]] = tuple(Api(row) for row in ROWS)
BY_KEY: Final[dict[int, Api]] = {api.key: api for api in APIS}
BY_NAME: Final[dict[str, Api]] = {api.name: api for api in APIS}

# Filled by use: importing all messages at once costs more than starting a broker should.
request_classes: Final[dict[int, type[Message]]] = {}
response_classes: Final[dict[int, type[Message]]] = {}


def advertised(listener: str, telemetry: bool = False) -> list[Api]:
    """The rows of an ApiVersions response on that kind of listener, in its order."""
    return [
        api
        for api in APIS
        if (api.on_controller if listener == CONTROLLER else api.on_broker) and (api.advertised_by_default or telemetry)
    ]


def message_class(api: Api, kind: str) -> type[Message]:
    module = import_module(f"moldau.protocol.messages.{api.snake_name}_{kind}")
    found: type[Message] = getattr(module, f"{api.name}{kind.capitalize()}")
    return found


def request_class(key: int) -> type[Message]:
    """The request class of an api; KeyError when there is no such key."""
    found = request_classes.get(key)
    if found is None:
        found = request_classes[key] = message_class(BY_KEY[key], "request")
    return found


def response_class(key: int) -> type[Message]:
    """The response class of an api; KeyError when there is no such key."""
    found = response_classes.get(key)
    if found is None:
        found = response_classes[key] = message_class(BY_KEY[key], "response")
    return found


def request_header_version(key: int, version: int) -> int:
    """2 where the request is flexible, otherwise 1. Version 0, without a client id, is of no api that is left."""
    return 2 if version >= BY_KEY[key].first_flexible_version else 1


def response_header_version(key: int, version: int) -> int:
    """1 where the response is flexible, otherwise 0; always 0 for ApiVersions, whose asker may not know better."""
    return 1 if key != API_VERSIONS and version >= BY_KEY[key].first_flexible_version else 0
