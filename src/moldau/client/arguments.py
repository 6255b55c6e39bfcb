"""What users hand to a client, and the sentences for what they may not.

A compiled function refuses a wrong type before its first line, in the compiler's words, which name neither the argument
nor what to give instead. So the types below are any object for the compiler, and what is wrong is said here; whoever
checks the types of a program sees the real ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn, TypeAlias

from moldau.client.results import OffsetAndMetadata, TopicPartition
from moldau.protocol.integers import LONG_MAX

HeaderValue = bytes | str | None
# Names and values, as a dict or as pairs; text is encoded as UTF-8.
GivenHeaders: TypeAlias = Mapping[str, HeaderValue] | Iterable[tuple[str, HeaderValue]]

# setup.py tells the compiler that this is true.
FOR_COMPILER = False

if not FOR_COMPILER:
    GivenTopic: TypeAlias = str
    GivenNumber: TypeAlias = int | None
    GivenMilliseconds: TypeAlias = int | None
else:
    GivenTopic: TypeAlias = object  # type: ignore[misc, no-redef, unused-ignore]
    GivenNumber: TypeAlias = object  # type: ignore[misc, no-redef, unused-ignore]
    GivenMilliseconds: TypeAlias = object  # type: ignore[misc, no-redef, unused-ignore]


def kind_of(given: object) -> str:
    """What it is, for a sentence: 'a str', 'an int', None."""
    if given is None:
        return "None"
    name = type(given).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def wrong_topic(given: object) -> NoReturn:
    shown = "" if given is None else f", {_shown(given)}"
    raise TypeError(f"The topic is {kind_of(given)}{shown}: give its name as text.")


def checked_topic(given: object) -> str:
    if not isinstance(given, str):
        wrong_topic(given)
    return given


def checked_number(what: str, given: object, highest: int = LONG_MAX) -> int:
    """A whole number; bool is none, though Python has it so."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"The {what} is {kind_of(given)}, {_shown(given)}: give a whole number.")
    if not -highest - 1 <= given <= highest:
        raise ValueError(f"The {what} {given} is too large a number.")
    return given


def checked_milliseconds(given: object) -> int:
    """A timeout as a number, of whole milliseconds or not."""
    if not isinstance(given, (int, float)) or isinstance(given, bool):
        raise TypeError(f"The timeout is {kind_of(given)}, {_shown(given)}: give milliseconds as a number.")
    return int(given)


def seconds_of(given_ms: object) -> float | None:
    """A timeout for what waits in seconds, as Python's own locks do; None is for ever."""
    return None if given_ms is None else checked_milliseconds(given_ms) / 1000


def checked_callable(what: str, given: object) -> None:
    if given is not None and not callable(given):
        raise TypeError(f"The {what} is {kind_of(given)}, {_shown(given)}: give a function.")


def checked_methods(what: str, given: object, wanted: type) -> None:
    """Whatever has the public methods of the class will do."""
    methods = [name for name in vars(wanted) if not name.startswith("_")]
    if given is not None and not all(callable(getattr(given, name, None)) for name in methods):
        raise TypeError(f"The {what} is {kind_of(given)}: derive its class from {wanted.__name__}.")


def checked_items(what: str, given: Iterable[object]) -> Iterable[object]:
    """Something to go through; text and bytes would be taken letter by letter."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"The {what} are {kind_of(given)}: give a list of them.")
    return given


def checked_partition(given: object, method: str) -> TopicPartition:
    """A pair of a topic and a number will do."""
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], int):
        return given if isinstance(given, TopicPartition) else TopicPartition(*given)
    raise TypeError(f"{method}() wants TopicPartition(topic, partition), not {_shown(given)}.")


def checked_partitions(given: Iterable[object], method: str) -> list[TopicPartition]:
    """A list of them; a single one is refused, for taken as a list it would be its topic and its number."""
    if isinstance(given, (str, bytes, TopicPartition)) or not isinstance(given, Iterable):
        raise TypeError(f"{method}() wants a list of TopicPartition(topic, partition), not {_shown(given)}.")
    return [checked_partition(item, method) for item in given]


def checked_times(given: object, method: str) -> dict[TopicPartition, int]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{method}() wants {{TopicPartition(topic, partition): milliseconds}}, not {_shown(given)}.")
    return {checked_partition(item, method): checked_number("time", time) for item, time in given.items()}


def checked_offsets(given: object) -> dict[TopicPartition, OffsetAndMetadata]:
    if not isinstance(given, Mapping):
        raise TypeError(f"commit() wants {{TopicPartition(topic, partition): offset}}, not {_shown(given)}.")
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, offset in given.items():
        where = checked_partition(partition, "commit")
        if not isinstance(offset, OffsetAndMetadata):
            offset = OffsetAndMetadata(checked_number(f"offset of {where}", offset))
        checked[where] = offset
    return checked


def checked_names(given: object, method: str) -> list[str]:
    """Names of topics without repeats; a single one will do."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"{method}() wants the names of topics, not {_shown(given)}.")
    names = list(given)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{method}() wants the names of topics as text, not {_shown(name)}.")
    return list(dict.fromkeys(names))


def _shown(given: object) -> str:
    """Shortened: values of users can be large."""
    text = repr(given)
    return text if len(text) <= 80 else f"{text[:77]}..."
