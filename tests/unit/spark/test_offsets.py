"""Offsets as JSON: Spark's own format, canonical, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client.results import TopicPartition
from moldau.spark.offsets import (
    OffsetsError,
    StreamOffsets,
    offsets_from_object,
    offsets_to_json,
    parse_offsets,
    parse_partitions,
)

A0, A1, A10, B0 = (TopicPartition(topic, number) for topic, number in [("a", 0), ("a", 1), ("a", 10), ("b", 0)])


def test_the_text_is_the_same_in_whatever_order_the_partitions_came() -> None:
    """Spark compares offsets as text; partitions are ordered as numbers, so that 10 comes after 1."""
    expected = '{"a":{"0":1,"1":2,"10":3},"b":{"0":4}}'
    assert offsets_to_json({A0: 1, A1: 2, A10: 3, B0: 4}) == expected
    assert offsets_to_json({B0: 4, A10: 3, A0: 1, A1: 2}) == expected


def test_the_options_json_of_sparks_connector_is_read() -> None:
    assert parse_offsets('{"a":{"0":23,"1":-1},"b":{"0":-2}}') == {A0: 23, A1: -1, B0: -2}
    assert parse_offsets('{"a":{"0":"1700000000000"}}', "timestamp", 0) == {A0: 1_700_000_000_000}
    assert parse_partitions('{"b":[0],"a":[1,0,1]}') == [A0, A1, B0]


@pytest.mark.parametrize(
    "text",
    ["", "earliestt", "[]", "7", '{"a":1}', '{"a":{"x":1}}', '{"a":{"0":"y"}}', '{"a":{"0":-3}}', '{"a":{"-1":0}}',
     '{"a":{"0":true}}', '{"a":{"0":1.5}}', '{"a":{"0":9223372036854775808}}', '{"a":[0]}'],
)  # fmt: skip
def test_what_is_not_offsets_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(OffsetsError) as caught:
        parse_offsets(text)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("text", ["", "{}", "[0]", '{"a":0}', '{"a":["x"]}', '{"a":[-1]}', '{"a":[]}'])
def test_what_is_not_partitions_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(OffsetsError):
        parse_partitions(text)


def test_topic_ids_travel_in_a_form_that_sparks_connector_reads_over() -> None:
    """It takes the JSON for topics with partitions with numbers, and finds no partition at the ids."""
    stream = StreamOffsets({A0: 5, B0: 7}, {"a": "8XtTtTDNR2CgsPGrTNVtyg", "gone": "x"})
    data = json.loads(stream.to_json())
    assert data == {"a": {"0": 5}, "b": {"0": 7}, "a@8XtTtTDNR2CgsPGrTNVtyg": {}}
    assert offsets_from_object(data) == {A0: 5, B0: 7}
    assert StreamOffsets.from_object(data) == StreamOffsets({A0: 5, B0: 7}, {"a": "8XtTtTDNR2CgsPGrTNVtyg"})


def test_the_checkpoint_of_sparks_connector_is_read() -> None:
    assert StreamOffsets.from_object({"a": {"1": 2, "0": 1}}) == StreamOffsets({A0: 1, A1: 2}, {})


names = st.text("abz.-_", min_size=1, max_size=5)
partitions = st.builds(TopicPartition, names, st.integers(0, 300))


@given(st.dictionaries(partitions, st.integers(0, 2**63 - 1), max_size=20), st.booleans())
def test_what_is_written_is_read_back(offsets: dict[TopicPartition, int], with_ids: bool) -> None:
    ids = {item.topic: f"id{len(item.topic)}" for item in offsets} if with_ids else {}
    written = StreamOffsets(offsets, ids)
    read = StreamOffsets.from_object(json.loads(written.to_json()))
    assert read == written
    assert read.to_json() == written.to_json()
