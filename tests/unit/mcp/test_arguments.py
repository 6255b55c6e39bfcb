"""Arguments: schemas for agents, values with defaults, and a sentence for each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.actions.refusals import Refused
from moldau.mcp.arguments import FLAG, NUMBER, NUMBERS, OBJECT, TEXT, TIME, Argument, checked, schema_of
from moldau.mcp.tool_runner import TOOLS

ARGUMENTS = (
    Argument("topic", TEXT, "The topic.", required=True),
    Argument("limit", NUMBER, "How many.", default=20, lowest=1, highest=100),
    Argument("start", TEXT, "Where.", choices=("newest", "oldest")),
    Argument("partitions", NUMBERS, "Which."),
    Argument("exact", FLAG, "Whether.", default=False),
    Argument("time", TIME, "When."),
    Argument("cursor", OBJECT, "Where it ended."),
)


def test_defaults_stand_for_what_is_left_out() -> None:
    assert checked(ARGUMENTS, {"topic": "t", "start": None}) == {"topic": "t", "limit": 20, "exact": False}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "The argument topic is missing: The topic."),
        ({"topic": 3}, "topic must be a text, not 3."),
        ({"topic": "t", "limit": "9"}, "limit must be a whole number, not '9'."),
        ({"topic": "t", "limit": True}, "limit must be a whole number, not True."),
        ({"topic": "t", "limit": 0}, "limit must be at least 1 and at most 100, not 0."),
        ({"topic": "t", "limit": 101}, "limit must be at least 1 and at most 100, not 101."),
        ({"topic": "t", "start": "middle"}, "start must be one of newest, oldest, not 'middle'."),
        ({"topic": "t", "partitions": [1, "2"]}, "partitions must be a list of whole numbers"),
        ({"topic": "t", "partitions": 3}, "partitions must be a list of whole numbers, not 3."),
        ({"topic": "t", "exact": "yes"}, "exact must be true or false, not 'yes'."),
        ({"topic": "t", "cursor": [1]}, "cursor must be an object"),
        ({"topic": "t", "time": "yesterday"}, "time must be a time such as 2026-01-31T12:00:00Z"),
        ({"topic": "t", "time": -1}, "time must be a time such as"),
        ({"topic": "t", "limt": 3}, "There is no argument 'limt'. Did you mean limit?"),
        ({"topic": "t", "zzz": 3}, "There is no argument 'zzz'. There are topic, limit"),
        ({"topic": "x" * 500, "start": "y" * 500}, "…."),
    ],
)
def test_a_mistake_is_answered_with_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as failed:
        checked(ARGUMENTS, given)
    assert said in failed.value.message and len(failed.value.message) < 200


@pytest.mark.parametrize(
    ("given", "milliseconds"),
    [
        (1_769_860_800_000, 1_769_860_800_000),
        ("2026-01-31T12:00:00Z", 1_769_860_800_000),
        ("2026-01-31T13:00:00+01:00", 1_769_860_800_000),
        ("2026-01-31T12:00:00", 1_769_860_800_000),
        ("2026-01-31", 1_769_817_600_000),
    ],
)
def test_times(given: object, milliseconds: int) -> None:
    assert checked(ARGUMENTS, {"topic": "t", "time": given})["time"] == milliseconds


def test_the_schema_says_what_is_checked() -> None:
    schema = schema_of(ARGUMENTS)
    assert schema["required"] == ["topic"] and schema["additionalProperties"] is False
    assert schema["properties"]["limit"] == {
        "type": "integer",
        "description": "How many.",
        "default": 20,
        "minimum": 1,
        "maximum": 100,
    }
    assert schema["properties"]["start"]["enum"] == ["newest", "oldest"]


def test_every_tool_has_words_for_agents() -> None:
    assert len({tool.name for tool in TOOLS}) == len(TOOLS)
    for tool in TOOLS:
        assert tool.about.endswith(".") and tool.title, tool.name
        assert all(argument.about.endswith(".") for argument in tool.arguments), tool.name
        assert len({argument.name for argument in tool.arguments}) == len(tool.arguments), tool.name
        assert tool.writes or not tool.destructive, tool.name
