"""What the client may cost: memory while a broker or a reader stalls, and the time to import it."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from moldau.client.consumer import Consumer
from moldau.client.errors import RequestTimeoutError
from moldau.client.producer import Producer
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from tests.pace import patience_ms
from tests.unit.client.fake_network import HOME, SILENCE, TOPIC_ID, FakeNetwork, ScriptedBroker, metadata

MEGABYTE = 1 << 20


def test_a_stalled_broker_holds_no_more_than_the_buffer_memory() -> None:
    """send() blocks when the buffer is full and gives up after max.block.ms; the memory stays near the limit."""
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata({"t": [1, 1]}))
    broker.on(InitProducerIdRequest, lambda request, version: InitProducerIdResponse(producer_id=5, producer_epoch=0))
    broker.on(ProduceRequest, lambda request, version: SILENCE)
    network = FakeNetwork({HOME: broker}, real_time=True)
    producer = Producer(
        "broker:9092", config=wired(network=network), buffer_memory=2 * MEGABYTE, max_block_ms=patience_ms(200)
    )
    producer.partitions_for("t")
    tracemalloc.start()
    try:
        with pytest.raises(RequestTimeoutError, match=r"buffer\.memory"):
            for number in range(100_000):
                producer.send("t", b"%01000d" % number)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        producer.close(0)
    assert 1500 < number < 2200
    # Batches in flight are there twice at most: as records and in the frame that carries them.
    assert held < 5 * MEGABYTE


def test_a_stalled_reader_makes_the_consumer_keep_no_more_than_fetch_max_bytes() -> None:
    builder = BatchBuilder()
    for number in range(100):
        builder.append(1000, None, b"%01000d" % number, [])
    data = builder.build()
    fetched = 0

    def fetch(request: Message, version: int) -> FetchResponse:
        nonlocal fetched
        assert isinstance(request, FetchRequest)
        rows = []
        for row in request.topics[0].partitions:
            batch = row.fetch_offset.to_bytes(8, "big") + data[8:]
            fetched += len(batch)
            rows.append(
                PartitionData(
                    partition_index=row.partition,
                    high_watermark=1 << 40,
                    last_stable_offset=1 << 40,
                    records=MemoryRecords(batch, 0, len(batch)),
                )
            )
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=rows)])

    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata({"t": [1] * 4}))
    broker.on(FetchRequest, fetch)
    network = FakeNetwork({HOME: broker})
    consumer = Consumer("broker:9092", config=wired(network=network), fetch_max_bytes=MEGABYTE)
    consumer.assign([TopicPartition("t", index) for index in range(4)])
    for partition in consumer.assignment():
        consumer.seek(partition, 0)
    for _ in range(200):  # one record at a time: the reader is far slower than the broker
        assert len(consumer.poll(1000, 1)) == 1
    kept = consumer._fetcher.bytes_kept
    assert fetched - kept < 3 * len(data)
    assert kept <= MEGABYTE + 4 * len(data)


YARDSTICK = (
    "argparse, configparser, csv, dataclasses, decimal, email.message, fractions, http.client, json, logging.config,"
    "pickle, random, statistics, tarfile, typing, unittest.mock, urllib.request, xml.dom.minidom, zipfile"
)
"""Modules of the standard library that take about twice as long to import as the producer does."""
OF_THE_YARDSTICK_MAX = 0.8
"""The producer alone was 0.5, with asyncio and pyarrow it would be more than 1."""


def test_importing_the_producer_costs_less_than_a_handful_of_standard_modules(tmp_path: Path) -> None:
    """Processor time with cached bytecode, both in turns, the best of a few runs: the machine's pace does not count."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def seconds(modules: str) -> float:
        code = f"import time; a = time.process_time(); import {modules}; print(time.process_time() - a)"
        command = [sys.executable, "-c", code]
        return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)

    ours, theirs = [], []
    while len(ours) < 4 or (len(ours) < 25 and min(ours) >= OF_THE_YARDSTICK_MAX * min(theirs)):
        ours.append(seconds("moldau.client.producer"))
        theirs.append(seconds(YARDSTICK))
    assert min(ours) < OF_THE_YARDSTICK_MAX * min(theirs), f"{min(ours) * 1000:.0f} ms, not {min(theirs) * 1000:.0f}"


def test_importing_the_producer_does_not_load_what_it_does_not_need() -> None:
    code = (
        "import sys; import moldau.client.producer;"
        "print([name for name in sys.modules if name.split('.')[0] in ('asyncio', 'pyarrow', 'ssl', 'rich', 'click')"
        " or name.startswith('moldau.client.admin')])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"
