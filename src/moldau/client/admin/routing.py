"""The parts of routing: deadline, targets, questions about many items, and which errors pass by waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from moldau.client.connection.cluster import Broker
from moldau.client.connection.transport import Network
from moldau.client.errors import ClientError, error_for
from moldau.client.results import Outcome
from moldau.protocol import errors as codes
from moldau.protocol.primitives import Message

Response = TypeVar("Response", bound=Message)
Key = TypeVar("Key")
Value = TypeVar("Value")
T = TypeVar("T")

GROUP_COORDINATOR = 0
TRANSACTION_COORDINATOR = 1

CLIENT_SIDE = frozenset({codes.NETWORK_EXCEPTION, codes.REQUEST_TIMED_OUT})
RETRY_CONTROLLER = CLIENT_SIDE | {codes.NOT_CONTROLLER, codes.THROTTLING_QUOTA_EXCEEDED}
RETRY_COORDINATOR = CLIENT_SIDE | {
    codes.COORDINATOR_LOAD_IN_PROGRESS,
    codes.COORDINATOR_NOT_AVAILABLE,
    codes.NOT_COORDINATOR,
}
# A coordinator learns of a new topic a little later than the controller responds that it was created.
RETRY_NEW_TOPIC = RETRY_COORDINATOR | {codes.UNKNOWN_TOPIC_OR_PARTITION}
RETRY_LEADER = CLIENT_SIDE | {
    codes.UNKNOWN_TOPIC_OR_PARTITION,
    codes.LEADER_NOT_AVAILABLE,
    codes.NOT_LEADER_OR_FOLLOWER,
    codes.REPLICA_NOT_AVAILABLE,
    codes.FENCED_LEADER_EPOCH,
    codes.UNKNOWN_LEADER_EPOCH,
    codes.KAFKA_STORAGE_ERROR,
    codes.OFFSET_NOT_AVAILABLE,
}


class Deadline:
    """When a call must have ended."""

    def __init__(self, network: Network, timeout_ms: int) -> None:
        self._network = network
        self._at_ms = network.now_ms() + timeout_ms

    @property
    def remaining_ms(self) -> int:
        """At least 1, so that a last try is made."""
        return max(1, self._at_ms - self._network.now_ms())

    def allows(self, delay_ms: int) -> bool:
        """True when there is time left after such a pause."""
        return self._network.now_ms() + delay_ms < self._at_ms


class Target(Generic[Key]):
    """One broker and the items it is asked for."""

    def __init__(self, broker: Broker, items: list[Key]) -> None:
        self.broker = broker
        self.items = items

    def all(self, outcome: Outcome[T]) -> dict[Key, Outcome[T]]:
        """The same outcome for each item."""
        return dict.fromkeys(self.items, outcome)


class Routes(Generic[Key]):
    """Whom to ask for which items, and which items nobody can be asked for."""

    def __init__(self) -> None:
        self.targets: dict[int, Target[Key]] = {}
        self.refused: dict[Key, ClientError] = {}

    def add(self, broker: Broker, item: Key) -> None:
        self.targets.setdefault(broker.id, Target(broker, [])).items.append(item)


class Question(NamedTuple, Generic[Key, Response, Value]):
    """A request about many items: how it is made, and how its response is read."""

    request: Callable[[list[Key]], Message]
    response_class: type[Response]
    read: Callable[[Response, Target[Key]], dict[Key, Outcome[Value]]]
    retry: frozenset[int]
    highest_version: int | None = None
    one_by_one: bool = False


Route = Callable[[list[Key], Deadline], Routes[Key]]


class Listing(Generic[T]):
    """What all brokers together know of, and the errors of those that could not say (by broker id)."""

    def __init__(self, found: list[T], errors: dict[int, ClientError]) -> None:
        self.found = found
        self.errors = errors

    def get(self) -> list[T]:
        """All that was found; raises when a broker is missing from it."""
        for error in self.errors.values():
            raise error
        return self.found

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())

    def __repr__(self) -> str:
        return f"Listing({self.found!r}, errors={self.errors!r})"


def outcome(code: int, message: str | None, value: T) -> Outcome[T]:
    """The outcome of an item whose response has an error code."""
    return Outcome(value) if code == codes.NONE else Outcome(error=error_for(code, message))


def check(code: int, message: str | None = None) -> None:
    """Raises what a broker says against a request as a whole."""
    if code != codes.NONE:
        raise error_for(code, message)
