"""Faults between clients and a broker: they hit what they are meant to, end when they should, and break no order."""

from __future__ import annotations

import time

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.client.errors import ClientError, RequestTimeoutError
from moldau.testing import Broker, Topic, WaitTimedOut
from tests.pace import moment_ms, patience_ms


def values(topic: Topic) -> list[bytes]:
    return [record.value for record in topic.records()]


def test_the_next_requests_fail_and_no_more(broker: Broker) -> None:
    topic = broker.topic()
    with Producer(broker.bootstrap_servers, retry_backoff_ms=1) as producer:
        fault = broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=3)
        producer.send(topic, "in the end").result(patience_ms(60_000))
        assert fault.hits == 3 and fault.is_over
        producer.send(topic, "at once").result(patience_ms(60_000))
        assert fault.hits == 3
    assert values(topic) == [b"in the end", b"at once"]


def test_an_error_that_is_final_reaches_the_application(broker: Broker) -> None:
    topic = broker.topic()
    broker.fail_next("Produce", "TOPIC_AUTHORIZATION_FAILED", times=None)
    with Producer(broker.bootstrap_servers) as producer, pytest.raises(ClientError) as caught:
        producer.send(topic, "no").result(patience_ms(60_000))
    assert caught.value.name == "TOPIC_AUTHORIZATION_FAILED"
    assert values(topic) == []


def test_only_the_clients_that_are_named(broker: Broker) -> None:
    topic = broker.topic()
    fault = broker.fail_next("Produce", "TOPIC_AUTHORIZATION_FAILED", times=None, client_id="bill*")
    with Producer(broker.bootstrap_servers, client_id="audit") as producer:
        producer.send(topic, "audit").result(patience_ms(60_000))
    with Producer(broker.bootstrap_servers, client_id="billing") as producer, pytest.raises(ClientError):
        producer.send(topic, "billing").result(patience_ms(60_000))
    assert fault.hits == 1


def test_own_helpers_are_past_all_faults(broker: Broker) -> None:
    topic = broker.topic()
    with broker.fail_next("Produce", "KAFKA_STORAGE_ERROR", times=None), broker.cut():
        topic.produce("x")
        assert values(topic) == [b"x"]


def test_a_fetch_that_fails_is_tried_again(broker: Broker) -> None:
    topic = broker.topic()
    with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest", retry_backoff_ms=1) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        consumer.poll(200)  # a session is there
        fault = broker.fail_next("Fetch", "NOT_LEADER_OR_FOLLOWER", times=2)
        broker.wait_for(lambda: consumer.poll(50) or fault.is_over, timeout_ms=patience_ms(60_000))
        topic.produce("x")
        found = broker.wait_for(lambda: consumer.poll(100), timeout_ms=patience_ms(60_000))
        assert [record.value for record in found] == [b"x"]
        assert fault.hits == 2


@pytest.mark.parametrize(
    "api, error",
    [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("SyncGroup", "REBALANCE_IN_PROGRESS"),
        ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("ListOffsets", "LEADER_NOT_AVAILABLE"),
        ("Metadata", "LEADER_NOT_AVAILABLE"),
    ],
)
def test_a_group_works_in_the_end(broker: Broker, api: str, error: str) -> None:
    topic = broker.topic()
    topic.produce("x")
    fault = broker.fail_next(api, error, times=2)
    group = f"{api}-{topic}"
    with Consumer(
        broker.bootstrap_servers, group_id=group, auto_offset_reset="earliest", retry_backoff_ms=5
    ) as consumer:
        consumer.subscribe([topic])
        broker.wait_for(lambda: consumer.poll(100), timeout_ms=patience_ms(60_000))
        consumer.commit()
    assert fault.hits == 2
    assert list(broker.committed(group).values()) == [1]


def test_an_administrator_is_refused_and_nothing_happens(broker: Broker) -> None:
    broker.fail_next("CreateTopics", "POLICY_VIOLATION")
    with Admin(broker.bootstrap_servers) as admin, pytest.raises(ClientError) as caught:
        admin.create_topics([NewTopic("never", 1, 1)])["never"].get()
    assert caught.value.name == "POLICY_VIOLATION"
    assert "never" not in broker.topics()


def test_a_lost_response_is_not_a_lost_request(broker: Broker) -> None:
    topic = broker.topic()
    fault = broker.lose_next_response("Produce")
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, "once").result(patience_ms(60_000))
    assert fault.hits == 1
    assert values(topic) == [b"once"], "idempotence recognises what comes again"


def test_a_delay_is_at_least_as_long(broker: Broker) -> None:
    topic = broker.topic()
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, "quick").result(patience_ms(60_000))
        with broker.delay(400, api="Produce") as fault:
            began = time.monotonic()
            producer.send(topic, "slow").result(patience_ms(60_000))
            assert time.monotonic() - began >= 0.4
        assert fault.hits == 1
        producer.send(topic, "quick again").result(patience_ms(60_000))


def test_a_delay_that_ends_lets_go_what_it_held(broker: Broker) -> None:
    topic = broker.topic()
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, "quick").result(patience_ms(60_000))
        fault = broker.delay(3_600_000, api="Produce")
        held = producer.send(topic, "held")
        fault.wait(timeout_ms=patience_ms(60_000))
        fault.end()
        held.result(patience_ms(20_000))


def test_requests_keep_their_order_among_failed_and_delayed_ones(broker: Broker) -> None:
    topic = broker.topic()
    broker.delay(20, times=10)
    broker.fail_next("Produce", "NOT_ENOUGH_REPLICAS", times=4)
    with Producer(broker.bootstrap_servers, linger_ms=0, batch_size=1, retry_backoff_ms=1) as producer:
        for number in range(50):
            producer.send(topic, str(number))
        producer.flush(patience_ms(60_000))
    found = sorted(topic.records(), key=lambda record: record.offset)
    assert [record.value for record in found] == [str(number).encode() for number in range(50)]


def test_a_client_that_is_cut_off_comes_back(broker: Broker) -> None:
    topic = broker.topic()
    with Producer(broker.bootstrap_servers, client_id="cut-me") as producer:
        producer.send(topic, "before").result(patience_ms(60_000))
        with broker.cut("cut-*") as fault:
            waiting = producer.send(topic, "meanwhile")
            with pytest.raises(RequestTimeoutError):
                waiting.result(300)
            fault.wait(1, timeout_ms=patience_ms(60_000))
            with Producer(broker.bootstrap_servers, client_id="other") as other:
                other.send(topic, "not cut").result(patience_ms(60_000))
        waiting.result(patience_ms(60_000))
    assert sorted(values(topic)) == [b"before", b"meanwhile", b"not cut"]


def test_a_network_that_hangs(broker: Broker) -> None:
    topic = broker.topic()
    with Producer(broker.bootstrap_servers, request_timeout_ms=moment_ms(1000), linger_ms=0) as producer:
        producer.send(topic, "before").result(patience_ms(60_000))
        with broker.hang():
            waiting = producer.send(topic, "meanwhile")
            with pytest.raises(RequestTimeoutError):
                waiting.result(500)
        waiting.result(patience_ms(60_000))
    assert sorted(values(topic)) == [b"before", b"meanwhile"]


def test_a_full_disk(broker: Broker) -> None:
    topic = broker.topic()
    with Producer(broker.bootstrap_servers, retry_backoff_ms=10) as producer:
        with broker.fill_disk():
            refused = producer.send(topic, "later")
            with pytest.raises(RequestTimeoutError):
                refused.result(500)
            broker.wait_for(lambda: "bytes free" in broker.log, timeout_ms=patience_ms(60_000))
        refused.result(patience_ms(60_000))
    assert values(topic) == [b"later"]


def test_a_full_transaction_log(broker: Broker) -> None:
    topic = broker.topic()
    with broker.fill_transaction_log():
        with Producer(broker.bootstrap_servers) as producer:
            producer.send(topic, "without").result(patience_ms(60_000))
        waiting = Producer(broker.bootstrap_servers, transactional_id="t", max_block_ms=500)
        with waiting, pytest.raises(ClientError):
            waiting.init_transactions()
    with Producer(broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, "within")
    assert values(topic) == [b"without", b"within"]


def test_faults_of_a_test_end_with_heal(broker: Broker) -> None:
    broker.fail_next("Produce", "REQUEST_TIMED_OUT", times=None)
    broker.fill_transaction_log()
    broker.pause()
    assert not broker.is_healthy
    broker.heal()
    assert broker.is_healthy


def test_a_fault_that_does_not_happen_says_so(broker: Broker) -> None:
    fault = broker.fail_next("Produce", "REQUEST_TIMED_OUT", times=2)
    with pytest.raises(WaitTimedOut, match="Produce fails with REQUEST_TIMED_OUT: befell 0 of 2 requests within 0 ms"):
        fault.wait(timeout_ms=0)
    with pytest.raises(ValueError, match="did you mean one of: NOT_LEADER_OR_FOLLOWER"):
        broker.fail_next("Produce", "NOT_LEADER")
