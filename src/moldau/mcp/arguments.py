"""Arguments of tools: their JSON Schema for agents, and checks that refuse a mistake with a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, NamedTuple

from moldau.actions.refusals import Refused

TEXT = "text"
NUMBER = "number"
FLAG = "flag"
# Milliseconds since 1970, or 2026-01-31T12:00:00Z.
TIME = "time"
NUMBERS = "numbers"
OBJECT = "object"

_SCHEMAS: dict[str, dict[str, Any]] = {
    TEXT: {"type": "string"},
    NUMBER: {"type": "integer"},
    FLAG: {"type": "boolean"},
    TIME: {"type": ["string", "integer"]},
    NUMBERS: {"type": "array", "items": {"type": "integer"}},
    OBJECT: {"type": "object"},
}
_NOUNS = {
    TEXT: "a text",
    NUMBER: "a whole number",
    FLAG: "true or false",
    TIME: "a time such as 2026-01-31T12:00:00Z, or milliseconds since 1970",
    NUMBERS: "a list of whole numbers",
    OBJECT: "an object",
}


class Argument(NamedTuple):
    """One argument; without a default and not required it may be left out."""

    name: str
    kind: str
    about: str
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    lowest: int | None = None
    highest: int | None = None


def schema_of(arguments: Sequence[Argument]) -> dict[str, Any]:
    """The JSON Schema of all of them."""
    properties = {}
    for each in arguments:
        found: dict[str, Any] = {**_SCHEMAS[each.kind], "description": each.about}
        if each.choices:
            found["enum"] = list(each.choices)
        if each.default is not None:
            found["default"] = each.default
        if each.lowest is not None:
            found["minimum"] = each.lowest
        if each.highest is not None:
            found["maximum"] = each.highest
        properties[each.name] = found
    return {
        "type": "object",
        "properties": properties,
        "required": [each.name for each in arguments if each.required],
        "additionalProperties": False,
    }


def checked(arguments: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values with defaults for what was left out; times in milliseconds. Raises Refused."""
    known = [each.name for each in arguments]
    for name in given:
        if name not in known:
            nearest = get_close_matches(name, known, 1)
            hint = f"Did you mean {nearest[0]}?" if nearest else f"There are {', '.join(known) or 'none'}."
            raise Refused(f"There is no argument {name!r}. {hint}")
    found: dict[str, Any] = {}
    for each in arguments:
        value = given.get(each.name)
        if value is None:
            if each.required:
                raise Refused(f"The argument {each.name} is missing: {each.about}")
            value = each.default
        if value is not None:
            found[each.name] = _checked(each, value)
    return found


def _checked(argument: Argument, value: Any) -> Any:
    if argument.kind == TIME:
        return _moment_ms(argument.name, value)
    if not _is_of(argument.kind, value):
        raise Refused(f"{argument.name} must be {_NOUNS[argument.kind]}, not {_shown(value)}.")
    if argument.choices and value not in argument.choices:
        raise Refused(f"{argument.name} must be one of {', '.join(argument.choices)}, not {_shown(value)}.")
    too_low = argument.lowest is not None and argument.kind == NUMBER and value < argument.lowest
    too_high = argument.highest is not None and argument.kind == NUMBER and value > argument.highest
    if too_low or too_high:
        upper = "" if argument.highest is None else f" and at most {argument.highest:,}"
        raise Refused(f"{argument.name} must be at least {argument.lowest or 0:,}{upper}, not {value:,}.")
    return value


def _is_of(kind: str, value: Any) -> bool:
    if kind == TEXT:
        return isinstance(value, str)
    if kind == NUMBER:
        return type(value) is int
    if kind == FLAG:
        return isinstance(value, bool)
    if kind == NUMBERS:
        return isinstance(value, list) and all(type(each) is int for each in value)
    return isinstance(value, dict)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _moment_ms(name: str, value: Any) -> int:
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            pass
        else:
            # A time that does not say where it is meant is UTC, as all times in results are.
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            return int(moment.timestamp() * 1000)
    raise Refused(f"{name} must be {_NOUNS[TIME]}, not {_shown(value)}.")
