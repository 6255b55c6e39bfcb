"""The first part of `make demo`: a broker, a topic, a producer and a consumer, all without traces.

The broker is the `moldau` command as anybody would start it, on its embedded default; the client is confluent-kafka,
which does not know that it talks to anything but Apache Kafka. Works in the directory it is started in.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from moldau.build_info import describe, is_compiled

TOPIC = "vltava"
RECORDS = 200_000
RECORDS_INTERPRETED = 20_000
RECORD_BYTES = 200
MOLDAU = [sys.executable, "-m", "moldau"]
CLIENT = {"log_level": 3}  # librdkafka reports its own housekeeping otherwise
POEM = ["two springs in the forest", "a wide stream", "the rapids of Saint John", "Prague"]

console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    directory = Path.cwd()
    compiled = is_compiled()
    records = RECORDS if compiled else RECORDS_INTERPRETED
    broker: subprocess.Popen[str] | None = None
    try:
        broker, bootstrap, seconds = start(directory)
        console.print(f"  ready on {bootstrap}         [bold]{seconds * 1000:.0f} ms[/] after its process began")
        idle = memory_mb(broker.pid)
        say("Create a topic", f"{TOPIC}, 3 partitions")
        create(bootstrap)
        say("Produce and consume", "through confluent-kafka, the client of librdkafka")
        few(bootstrap)
        say("Now many", f"{records:,} records of {RECORD_BYTES} bytes, acks=all, idempotent")
        written, read = many(bootstrap, records)
        loaded = memory_mb(broker.pid)
        say("On disk", "as Apache Kafka would have written it")
        show_files(directory)
        code = stop(broker)
        broker = None
        summary(seconds, idle, loaded, written, read, code)
        return 0 if code == 0 else 1
    except (KafkaException, OSError, RuntimeError) as error:
        console.print(f"[red]the demo failed:[/] {error}")
        return 1
    finally:
        if broker is not None:
            broker.kill()
            broker.wait()


def say(what: str, more: str) -> None:
    console.print(f"\n[bold cyan]{what}[/]  [dim]{more}[/]")


def start(directory: Path, quiet: bool = False) -> tuple[subprocess.Popen[str], str, float]:
    """Starts `moldau server` in an empty directory and waits for the line that says it is ready, and where."""
    port = "0" if busy(9092) or busy(9093) else "9092"
    if not quiet:
        console.print(f"[bold cyan]moldau server[/]  [dim]{describe()}, embedded default, in an empty directory[/]")
    began = time.perf_counter()
    # A machine that compiles beside it holds the loop up, which the broker would warn of.
    environment = {**os.environ, "MOLDAU_LOG_LEVEL": "ERROR"}
    command = [*MOLDAU, "server", "--port", port]
    broker = subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True)
    assert broker.stdout is not None
    line = broker.stdout.readline()
    seconds = time.perf_counter() - began
    port_taken = re.search(r":(\d+)", line)
    if "ready" not in line or port_taken is None:
        broker.kill()
        broker.wait()
        raise RuntimeError(f"the broker did not start: {line.strip() or 'it ended without a word'}")
    return broker, f"127.0.0.1:{port_taken[1]}", seconds


def busy(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def memory_mb(pid: int) -> float:
    """The resident memory of the broker."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        rows = [line for line in status.read_text().splitlines() if line.startswith("VmRSS:")]
        return int(rows[0].split()[1]) / 1024
    return int(subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True).stdout) / 1024


def create(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **CLIENT})
    began = time.perf_counter()
    for future in admin.create_topics([NewTopic(TOPIC, 3, 1)]).values():
        future.result(10)
    console.print(f"  created                        {(time.perf_counter() - began) * 1000:.0f} ms")


def few(bootstrap: str) -> None:
    """A handful of records there and back, as a person would try it."""
    producer = Producer({"bootstrap.servers": bootstrap, **CLIENT})
    for line in POEM:
        producer.produce(TOPIC, key=b"river", value=line.encode(), partition=0, headers=[("by", b"Smetana")])
    if producer.flush(10):
        raise RuntimeError("records were not delivered within 10 s")
    consumer = reader(bootstrap)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    seen = 0
    while seen < len(POEM):
        message = consumer.poll(10)
        if message is None or message.error():
            raise RuntimeError(f"reading failed: {message.error() if message else 'nothing came within 10 s'}")
        console.print(f"  {message.topic()}-{message.partition()} @ {message.offset()}   {message.value().decode()}")
        seen += 1
    consumer.close()


def reader(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False, **CLIENT})


def many(bootstrap: str, records: int) -> tuple[float, float]:
    """Records per second written and read."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 10**6,
            **CLIENT,
        }
    )
    failed: list[object] = []
    value = b"." * RECORD_BYTES
    began = time.perf_counter()
    for number in range(records):
        producer.produce(
            TOPIC, value, partition=1 + number % 2, on_delivery=lambda error, _: error and failed.append(error)
        )
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(30) or failed:
        raise RuntimeError(f"records were not delivered: {failed[:1] or 'time is up'}")
    written = records / (time.perf_counter() - began)
    console.print(f"  written                        {written:,.0f} records/s, every one acknowledged")

    consumer = reader(bootstrap)
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in (1, 2)])
    count, began = 0, time.perf_counter()
    while count < records:
        messages = consumer.consume(10_000, 10)
        if not messages:
            raise RuntimeError(f"only {count} of {records} records came back")
        count += sum(1 for message in messages if not message.error())
    read = records / (time.perf_counter() - began)
    consumer.close()
    console.print(f"  read back                      {read:,.0f} records/s, all {count:,} of them")
    return written, read


def show_files(directory: Path) -> None:
    for path in sorted((directory / "moldau-data").rglob(f"{TOPIC}-1/*")):
        console.print(f"  {path.relative_to(directory)}  [dim]{path.stat().st_size:,} bytes[/]")


def stop(broker: subprocess.Popen[str]) -> int:
    broker.send_signal(signal.SIGTERM)
    return broker.wait(20)


def summary(seconds: float, idle: float, loaded: float, written: float, read: float, code: int) -> None:
    table = Table(title="\nWhat happened", title_justify="left", title_style="bold cyan", show_header=False, box=None)
    table.add_row("start to ready", f"{seconds * 1000:.0f} ms")
    table.add_row("memory, idle / after load", f"{idle:.0f} / {loaded:.0f} MB")
    table.add_row("written, one producer", f"{written:,.0f} records/s, {written * RECORD_BYTES / 1e6:.0f} MB/s")
    table.add_row("read, one consumer", f"{read:,.0f} records/s, {read * RECORD_BYTES / 1e6:.0f} MB/s")
    table.add_row("stopped by SIGTERM", "cleanly" if code == 0 else f"with exit code {code}")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
