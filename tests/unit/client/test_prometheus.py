"""Clients in a registry of Prometheus, under the names that the JMX exporter makes of Java's clients."""

from __future__ import annotations

import pytest

pytest.importorskip("prometheus_client")

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from moldau.client.prometheus import register, unregister
from tests.unit.client import test_metrics


def samples(registry: CollectorRegistry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = generate_latest(registry).decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def test_names_labels_and_types_are_those_of_the_jmx_exporter() -> None:
    producer, _, _ = test_metrics.produce(10, client_id="shop")
    consumer, _, _ = test_metrics.consume([b"a"], client_id="audit")
    registry = CollectorRegistry()
    with producer, consumer:
        while not consumer.poll(100):
            pass
        register(producer, registry=registry)
        register(consumer, registry=registry)
        found = samples(registry)
        shop, audit = ("client_id", "shop"), ("client_id", "audit")
        assert found["kafka_producer_producer_metrics_record_send_total", (shop,)] == 10
        assert found["kafka_producer_producer_topic_metrics_record_send_total", (shop, ("topic", "t"))] == 10
        lag = "kafka_consumer_consumer_fetch_manager_metrics_records_lag"
        assert found[lag, (audit, ("partition", "0"), ("topic", "t"))] == 0
        assert any(name == "kafka_producer_producer_node_metrics_request_total" for name, _ in found)
        assert found["kafka_consumer_app_info_start_time_ms", (audit,)] > 0
        text = generate_latest(registry).decode()
        assert "# TYPE kafka_producer_producer_metrics_record_send_total counter" in text
        assert "# TYPE kafka_producer_producer_metrics_record_send_rate gauge" in text
        assert 'kafka_producer_app_info{client_id="shop",' in text and "NaN" not in text


def test_a_client_that_is_unregistered_is_shown_no_more() -> None:
    producer, _, _ = test_metrics.produce(1)
    registry = CollectorRegistry()
    with producer:
        register(producer, registry=registry)
        register(producer, registry=registry)
        assert samples(registry)
        unregister(producer, registry)
        assert not samples(registry)


def test_two_clients_of_one_kind_have_different_ids() -> None:
    one, _, _ = test_metrics.produce(1)
    two, _, _ = test_metrics.produce(1)
    registry = CollectorRegistry()
    with one, two:
        register(one, registry=registry)
        with pytest.raises(ValueError, match="Another client has the client_id moldau"):
            register(two, registry=registry)
        register(two, client_id="second", registry=registry)
        ids = {dict(labels)["client_id"] for _, labels in samples(registry)}
        assert ids == {"moldau", "second"}
