import json

import pytest
from billing import Billing
from confluent_kafka import Producer


@pytest.fixture
def invoices(kafka_broker):
    with kafka_broker.topic() as topic:
        yield topic


@pytest.fixture
def billing(kafka_bootstrap_servers, kafka_topic, invoices):
    application = Billing(kafka_bootstrap_servers, kafka_topic, invoices)
    yield application
    application.close()


def test_an_order_becomes_an_invoice(kafka_broker, kafka_topic, invoices, billing):
    kafka_topic.produce(json.dumps({"id": 7, "price": 5, "count": 3}))
    kafka_broker.wait_for(billing.step, timeout_ms=30_000)
    (record,) = invoices.records()
    assert json.loads(record.value) == {"order": 7, "total": 15}


def test_an_invoice_survives_a_leader_that_moves(kafka_broker, kafka_topic, invoices, billing):
    moved = kafka_broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=2, client_id="billing")
    kafka_topic.produce(json.dumps({"id": 8, "price": 1, "count": 1}))
    kafka_broker.wait_for(billing.step, timeout_ms=30_000)
    assert moved.hits == 2
    assert len(invoices.records()) == 1


def test_a_lost_response_makes_no_second_invoice(kafka_broker, kafka_topic, invoices):
    # librdkafka sends again; with idempotence the broker recognises the record.
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "enable.idempotence": True})
    lost = kafka_broker.lose_next_response("Produce")
    producer.produce(invoices, b"paid")
    assert producer.flush(30) == 0
    assert lost.hits == 1
    assert len(invoices.records()) == 1


def test_what_was_done_is_committed(kafka_broker, kafka_topic, billing):
    kafka_topic.produce(json.dumps({"id": 9, "price": 1, "count": 1}))
    kafka_broker.wait_for(billing.step, timeout_ms=30_000)
    (committed,) = kafka_broker.committed(f"billing-{kafka_topic}").values()
    assert committed == 1
