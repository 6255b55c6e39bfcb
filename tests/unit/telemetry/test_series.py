"""What clients push becomes series: bounded in number, named so that nobody can speak for the broker."""

from __future__ import annotations

import random

import pytest

from moldau.telemetry import series as series_module
from moldau.telemetry.instances import Instance, Instances
from moldau.telemetry.otlp_reader import CUMULATIVE, DELTA, GAUGE, Point
from moldau.telemetry.series import Series, label_name, metric_name
from moldau.telemetry.subscriptions import Subscriptions


def instance(word: str = "c") -> Instance:
    uuid = word.encode().rjust(16, b"\1")
    return Instance(uuid, 1, {"client_id": word})


def labels(who: Instance, **more: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({**more, "client_id": who.client_id, "client_instance_id": who.text}.items()))


def test_names_are_what_prometheus_takes() -> None:
    assert metric_name("org.apache.kafka.producer.record-send.total") == "producer_record_send_total"
    assert metric_name("librdkafka.x") == "librdkafka_x"
    names = ("node.id", "__name__", "9a", "", "é")
    assert [label_name(name) for name in names] == ["node_id", "name__", "_9a", "_", "_"]


def test_deltas_add_up_and_totals_replace() -> None:
    found, who = Series(10), instance()
    for value in (3, 4):
        found.add(who, Point("d", DELTA, True, value, ()))
        found.add(who, Point("c", CUMULATIVE, True, value, ()))
        found.add(who, Point("g", GAUGE, False, value, (("node.id", "1"),)))
        found.add(who, Point("u", DELTA, False, value, ()))
    assert found.families["d"].values == {labels(who): 7} and found.families["d"].is_counter
    assert found.families["c"].values == {labels(who): 4} and found.families["c"].is_counter
    assert found.families["g"].values == {labels(who, node_id="1"): 4} and not found.families["g"].is_counter
    assert found.families["u"].values == {labels(who): 7} and not found.families["u"].is_counter


def test_what_is_not_a_number_does_not_spoil_a_sum() -> None:
    found, who = Series(10), instance()
    for value in (3.0, float("nan"), float("inf"), 4.0):
        found.add(who, Point("d", DELTA, True, value, ()))
        found.add(who, Point("c", CUMULATIVE, True, value, ()))
    assert found.families["d"].values == {labels(who): 7} and found.families["c"].values == {labels(who): 4}
    assert found.left_out_total == 4


def test_a_client_cannot_say_that_it_is_another() -> None:
    found, who = Series(10), instance()
    found.add(who, Point("g", GAUGE, False, 1, (("client_id", "x"), ("client.instance.id", "y"))))
    assert found.families["g"].values == {labels(who): 1}


def test_one_name_is_of_one_kind() -> None:
    found = Series(10)
    found.add(instance("a"), Point("n", GAUGE, False, 1, ()))
    found.add(instance("b"), Point("n", DELTA, True, 1, ()))
    assert len(found.families["n"].values) == 1 and found.left_out_total == 1


def test_there_are_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_module, "SERIES_PER_INSTANCE_MAX", 3)
    found = Series(5)
    first, second = instance("a"), instance("b")
    for who in (first, second):
        for index in range(4):
            found.add(who, Point(f"m{index}", GAUGE, False, 1, ()))
    assert (found.count, found.of_instance(first.instance_id), found.of_instance(second.instance_id)) == (5, 3, 2)
    assert found.left_out_total == 3
    found.add(first, Point("m0", GAUGE, False, 2, ()))
    assert found.families["m0"].values[labels(first)] == 2
    found.forget(first.instance_id)
    assert found.count == 2 and set(found.families) == {"m0", "m1"}
    found.forget(second.instance_id)
    assert found.count == 0 and not found.families
    found.forget(second.instance_id)


def test_instances_are_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least recently used go, on a connection and in all; what is kept of connections goes with them."""
    monkeypatch.setattr("moldau.telemetry.instances.INSTANCES_MAX", 40)
    instances = Instances(Subscriptions(), random.Random(1), 1000)
    zero = bytes(16)
    _, kept = instances.get(zero, 1, {}, 0)
    for index in range(30):
        instances.get(zero, 2, {}, index)
    assert len(instances) == 17 and len(instances.on_connection(2)) == 16 and len(instances.take_ended()) == 14
    for connection in range(3, 60):
        instances.get(kept.instance_id, 1, {}, 100)
        instances.get(zero, connection, {}, 100)
    assert len(instances) == 40 and instances.find(kept.instance_id) is kept
    for connection in range(60):
        instances.on_closed(connection)
    assert len(instances) == 0 and not instances._by_connection
