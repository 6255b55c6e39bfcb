"""What a reset of offsets is told: partitions, times, durations, plans."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.cli.group_plan import (
    BadTopic,
    parse_duration,
    parse_time,
    parse_topic_partitions,
    read_plan,
    write_plan,
)
from moldau.client.results import TopicPartition

NOON_MS = 1_769_860_800_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T12:00:00.000", NOON_MS),
        ("2026-01-31T12:00:00.000Z", NOON_MS),
        ("2026-01-31T12:00:00.007Z and more", NOON_MS + 7),
        ("2026-01-31T14:00:00.000+02:00", NOON_MS),
        ("2026-01-31T14:30:00.000+0230", NOON_MS),
        ("2026-01-31T07:00:00.000-05", NOON_MS),
        ("2026-1-31T12:0:0.5", NOON_MS + 5),
        ("1969-12-31T23:59:59.999", -1),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_time(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-01-31",
        "2026-01-31T",
        "2026-01-31T12:00:00",
        "2026-02-30T12:00:00.000",
        "2026-01-31T24:00:00.000",
        "2026-01-31T12:00:00.1000",
        "2026-01-31T12:00:00.000+99:00",
        "T12:00:00.000",
    ],
)
def test_texts_that_are_no_times(text: str) -> None:
    with pytest.raises(ValueError, match=r"Unparseable date|It does not contain a 'T'"):
        parse_time(text)


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))
def test_every_time_of_the_calendar_is_read(moment: datetime) -> None:
    text = f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}"
    if moment.year < 1000:
        text = f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}"
    found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=parse_time(text))
    assert found.replace(tzinfo=None) == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P1D", 86_400_000),
        ("PT1H30M", 5_400_000),
        ("p1dt2h3m4.5s", 93_784_500),
        ("-PT1S", -1_000),
        ("PT-1S", -1_000),
        ("PT-0.5S", -500),
        ("P-1DT24H", 0),
        ("PT0,25S", 250),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "P1Y", "P1W", "1D", "PT1", "PT1H2H", "P1.5D", "PT1M1H"])
def test_texts_that_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="Text cannot be parsed to a Duration"):
        parse_duration(text)


def test_partitions_of_a_topic() -> None:
    assert parse_topic_partitions("a:0,12") == [TopicPartition("a", 0), TopicPartition("a", 12)]
    assert parse_topic_partitions(":3,") == [TopicPartition("", 3)]


@pytest.mark.parametrize(
    ("text", "number"), [("a:", None), ("a:b:c", None), ("a:x", "x"), ("a:0,,1", ""), ("a:3000000000", "3000000000")]
)
def test_texts_that_name_no_partitions(text: str, number: str | None) -> None:
    with pytest.raises(BadTopic) as caught:
        parse_topic_partitions(text)
    assert caught.value.number == number


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(st.lists(st.tuples(NAMES, NAMES, st.integers(0, 99), st.integers(0, 2**63 - 1)), min_size=1))
def test_what_is_written_can_be_read_back(rows: list[tuple[str, str, int, int]]) -> None:
    text = write_plan((group_id, topic, str(index), str(offset)) for group_id, topic, index, offset in rows)
    expected: dict[str, dict[TopicPartition, int]] = {}
    for group_id, topic, index, offset in rows:
        expected.setdefault(group_id, {})[TopicPartition(topic, index)] = offset
    assert read_plan(text, ["several", "groups"]) == expected


def test_a_plan_for_one_group_needs_no_names() -> None:
    assert read_plan("a,0,5\nb,1,6\n", ["g"]) == {"g": {TopicPartition("a", 0): 5, TopicPartition("b", 1): 6}}
    assert read_plan("g,a,0,5\n", ["g"]) == {"g": {TopicPartition("a", 0): 5}}


@pytest.mark.parametrize("text", ["a", "a,0", "a,0,x", "a,x,0", "g,a,0,5,6", "a,0,5\n\nb,0,5", "g,a,0,5\na,0,5"])
def test_plans_with_a_mistake_are_refused_as_a_whole(text: str) -> None:
    with pytest.raises(ValueError, match=r"The line .* of the plan has"):
        read_plan(text, ["g"])
