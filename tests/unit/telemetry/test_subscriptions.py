"""Ids of subscriptions and the order of metrics are those of Kafka's brokers."""

from __future__ import annotations

import pytest

from moldau.telemetry.hash_order import hash_map_order
from moldau.telemetry.subscriptions import Subscriptions, parse_subscription, subscription_id, uuid_hash


def test_metrics_come_in_the_order_of_javas_hash_set() -> None:
    """Of these strings the hashes are 97, 98, 3105 and 96354: buckets 1, 2, 1 and 3 of sixteen."""
    assert hash_map_order(["b", "a"]) == ["a", "b"]
    assert hash_map_order(["abc", "ab", "b", "a"]) == ["ab", "a", "b", "abc"]


def test_a_uuid_hashes_as_in_java() -> None:
    """The two halves folded together, and that number folded again."""
    uuid = bytes.fromhex("0123456789abcdeffedcba9876543210")
    most, least = int.from_bytes(uuid[:8], "big"), int.from_bytes(uuid[8:], "big")
    folded = most ^ least
    assert uuid_hash(uuid) == (folded >> 32) ^ folded & 0xFFFFFFFF


def test_an_id_is_a_signed_number_that_changes_with_what_is_asked_for() -> None:
    uuid = bytes(range(16))
    ids = {subscription_id(metrics, n, uuid) for n in range(100) for metrics in (["a", "b"], ["a"], [])}
    assert len(ids) == 300 and all(-(1 << 31) <= each < 1 << 31 for each in ids)


def test_the_checksum_is_crc32c_of_the_set_and_the_interval() -> None:
    """The well-known check value of CRC-32C is that of the digits 1 to 9; with a zero uuid nothing is mixed in."""
    from moldau.records.crc import crc32c

    assert crc32c(b"123456789") == 0xE3069283
    expected = crc32c(b"[a, b]1000")
    assert subscription_id(["a", "b"], 1000, bytes(16)) & 0xFFFFFFFF == expected


@pytest.mark.parametrize("match", ["client_id=", "x=y", "client_id", "client_id=a=b", "client_id=["])
def test_a_subscription_that_cannot_be_read_is_left_out_and_its_older_form_too(match: str) -> None:
    subscriptions = Subscriptions()
    subscriptions.update("s", {"metrics": "a"})
    assert subscriptions.request_for(bytes(16), {}).metrics == ["a"]
    subscriptions.update("s", {"metrics": "a", "match": match})
    assert len(subscriptions) == 0 and subscriptions.version == 2


def test_patterns_are_javas() -> None:
    subscription = parse_subscription({"match": r"client_id=\p{Alpha}+\d*+"})
    assert subscription.matches({"client_id": "abc12"}) and not subscription.matches({"client_id": "12"})


def test_deleting_what_is_not_there_changes_nothing() -> None:
    subscriptions = Subscriptions()
    subscriptions.update("s", {})
    assert subscriptions.version == 0
