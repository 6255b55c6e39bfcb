"""A broker in a test: what it offers, what it survives, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from moldau.client import Consumer, Producer
from moldau.client.errors import RequestTimeoutError
from moldau.testing import AsyncBroker, Broker, BrokerNotStarted, Cluster, NotRunning
from tests.pace import patience_ms


def test_topics_and_records(broker: Broker) -> None:
    with broker.topic(partitions=3, config={"retention.ms": "-1"}) as topic:
        assert topic in broker.topics()
        topic.produce("one", key="k", partition=2, headers={"trace": b"1"})
        broker.produce_many(topic, ["two", b"three"])
        found = topic.wait_for_records(3, patience_ms(10_000))
        assert sorted(record.value for record in found) == [b"one", b"three", b"two"]
        (first,) = topic.records(partition=2)[:1]
        assert (first.key, first.headers) == (b"k", [("trace", b"1")])
    assert topic not in broker.topics()
    assert broker.records(topic) == [], "a topic that is not there has no records"


def test_aborted_records_are_left_out_unless_asked_for(broker: Broker) -> None:
    topic = broker.topic()
    with Producer(broker.bootstrap_servers, transactional_id=f"aborts-{topic}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, "never")
        producer.flush()
        producer.abort_transaction()
    topic.produce("stays")
    assert [record.value for record in topic.records()] == [b"stays"]
    assert [record.value for record in broker.records(topic, committed=False)] == [b"never", b"stays"]


def test_groups(broker: Broker) -> None:
    topic = broker.topic()
    topic.produce("x")
    with Consumer(broker.bootstrap_servers, group_id=f"g-{topic}", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        broker.wait_for(lambda: consumer.poll(100), timeout_ms=patience_ms(60_000))
        broker.wait_for_group(f"g-{topic}", timeout_ms=patience_ms(10_000))
        consumer.commit()
    assert list(broker.committed(f"g-{topic}").values()) == [1]


def test_a_restart_keeps_port_and_records(broker: Broker) -> None:
    topic = broker.topic()
    topic.produce("before")
    servers, pid = broker.bootstrap_servers, broker.pid
    broker.restart()
    assert broker.bootstrap_servers == servers and broker.pid != pid
    broker.restart(hard=True)
    topic.produce("after")
    assert [record.value for record in topic.records()] == [b"before", b"after"]


def test_a_killed_broker_refuses_connections_until_it_is_back(broker: Broker) -> None:
    broker.kill()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((broker.host, broker.port))
    with pytest.raises(NotRunning, match="no broker runs"):
        broker.topics()
    broker.heal()
    socket.create_connection((broker.host, broker.port)).close()


def test_a_paused_broker_accepts_and_does_not_answer(broker: Broker) -> None:
    topic = broker.topic()
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, "first").result(patience_ms(60_000))
        broker.pause()
        waiting = producer.send(topic, "second")
        with pytest.raises(RequestTimeoutError):
            waiting.result(300)
        broker.resume()
        waiting.result(patience_ms(60_000))


def test_what_the_environment_says_to_applications_is_not_for_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "elsewhere:9092")
    monkeypatch.setenv("KAFKA_LISTENERS", "nonsense")
    with Broker() as broker:
        assert "bootstrap" not in broker.log


def test_a_broker_that_does_not_start_shows_why() -> None:
    with pytest.raises(BrokerNotStarted) as caught:
        Broker(config={"log.retention.ms": "soon"}).start()
    text = str(caught.value)
    assert "broker 1 ended with exit code 1 before it was ready. Its last lines:" in text
    assert "Invalid value soon for configuration log.retention.ms" in text


def test_one_that_was_not_started_says_so() -> None:
    with pytest.raises(NotRunning, match="use it in a `with`"):
        Broker().bootstrap_servers  # noqa: B018


def test_nothing_is_left() -> None:
    with Broker() as broker:
        broker.topic()
        folder, pid = broker.data_dir, broker.pid
        assert folder.is_dir() and pid is not None
        status = (folder / "broker-1").stat()
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()
    assert not list(Path("/dev/shm").glob(f"moldau-run-*-{status.st_dev:x}-{status.st_ino:x}*"))


def test_data_that_is_to_be_kept_is_kept(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "kept") as broker:
        broker.produce(broker.topic("orders"), "one")
    with Broker(data_dir=tmp_path / "kept") as broker:
        assert [record.value for record in broker.records("orders")] == [b"one"]


def test_in_an_event_loop() -> None:
    async def run() -> list[bytes]:
        async with AsyncBroker() as broker:
            topic = await broker.topic()
            await broker.produce(topic, "x")
            await broker.restart(hard=True)
            return [record.value for record in await broker.wait_for_records(topic, timeout_ms=patience_ms(10_000))]

    assert asyncio.run(run()) == [b"x"]


def test_a_cluster_goes_on_without_one_of_its_brokers() -> None:
    with Cluster(brokers=3) as cluster:
        assert len(cluster) == 3 and len(set(cluster.bootstrap_servers.split(","))) == 3
        topic = cluster.topic(partitions=1)
        cluster.produce(topic, "one")
        gone = cluster.leader(topic)
        gone.kill()
        cluster.wait_for(lambda: cluster.leader(topic) is not gone, timeout_ms=patience_ms(60_000))
        cluster.produce(topic, "two")
        assert [record.value for record in cluster.records(topic)] == [b"one", b"two"]
        cluster.heal()
        assert cluster.is_healthy


def test_ports_are_held_between_two_runs(broker: Broker) -> None:
    """Nobody who asks for a free port gets that of a broker that is away for a moment."""
    broker.stop()
    taken = []
    try:
        for _ in range(200):
            other = socket.socket()
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind((broker.host, 0))
            taken.append(other)
        if os.uname().sysname == "Linux":
            assert broker.port not in [other.getsockname()[1] for other in taken]
        broker.restart()
    finally:
        for other in taken:
            other.close()
