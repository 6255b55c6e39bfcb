"""Offsets and lag on the page of a broker beside what others find out: kafka_exporter (Go), and our admin client."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from tests.interop.conftest import new_node, stop_cleanly
from tests.interop.nodes import HOST, free_ports
from tests.pace import patience, wait_until

MODULE, VERSION = "github.com/danielqsj/kafka_exporter", "v1.9.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moldau-tests"
BUILD_S_MAX = patience(300)
STOP_S_MAX = patience(10)
ORDERS, PARTITIONS = "orders", 3
WITH_A_MEMBER, BY_THE_BROKER, FORGOTTEN = "billing", "shipping", "forgotten"
# What kafka_exporter says of a cluster; whatever else is on either page is another matter.
COMPARED = re.compile(r"kafka_(brokers|topic_partition\w*|consumergroup_(current_offset|lag|members)\w*)")

Labels = tuple[tuple[str, str], ...]
Page = dict[tuple[str, Labels], float]


def read_page(address: str) -> Page:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=patience(10)) as answer:
        text: str = answer.read().decode()
    found: Page = {}
    for line in text.splitlines():
        matched = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if matched and COMPARED.fullmatch(matched[1]):
            labels = tuple(sorted(re.findall(r'(\w+)="([^"]*)"', matched[2] or "")))
            found[matched[1], labels] = float(matched[3])
    return found


class Broker:
    """One node with some records and groups, and a page of metrics."""

    def __init__(self, bootstrap: str, page: str, member: Consumer) -> None:
        self.bootstrap = bootstrap
        self.page = page
        self.member = member


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    page = f"{HOST}:{free_ports(1)[0]}"
    overrides = {"moldau.metrics.listener": page, "group.initial.rebalance.delay.ms": "0"}
    node = new_node(tmp_path_factory.mktemp("exported"), overrides)
    node.start()
    try:
        with Admin(node.bootstrap) as admin:
            for created in admin.create_topics([NewTopic(ORDERS, PARTITIONS, 1), NewTopic("empty", 2, 1)]).values():
                created.get()
            fill(node.bootstrap, admin)
        with Consumer(
            node.bootstrap, group_id=WITH_A_MEMBER, auto_offset_reset="earliest", enable_auto_commit=False
        ) as member:
            member.subscribe([ORDERS])
            wait_until(lambda: len(member.poll(100)) > 0, 30, "the member gets nothing")
            member.commit({TopicPartition(ORDERS, 0): 7, TopicPartition(ORDERS, 1): 20})
            yield Broker(node.bootstrap, page, member)
    finally:
        stop_cleanly(node)


def fill(bootstrap: str, admin: Admin) -> None:
    with Producer(bootstrap) as producer:
        for number in range(PARTITIONS * 20):
            producer.send(ORDERS, b"record", partition=number % PARTITIONS)
    admin.delete_records({TopicPartition(ORDERS, 0): 4})[TopicPartition(ORDERS, 0)].get()
    with Consumer(bootstrap, group_id=FORGOTTEN, enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition(ORDERS, partition) for partition in range(PARTITIONS)])
        consumer.commit({TopicPartition(ORDERS, partition): 10 + partition for partition in range(PARTITIONS)})
    with Consumer(
        bootstrap,
        group_id=BY_THE_BROKER,
        group_protocol="consumer",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        consumer.subscribe([ORDERS])
        wait_until(lambda: len(consumer.poll(100)) > 0, 30, "the member gets nothing")
        consumer.commit({TopicPartition(ORDERS, 2): 13})


def test_the_page_says_what_our_admin_client_finds(broker: Broker) -> None:
    page = read_page(broker.page)
    partitions = [TopicPartition(ORDERS, partition) for partition in range(PARTITIONS)]
    latest = broker.member.end_offsets(partitions)
    oldest = broker.member.beginning_offsets(partitions)
    for place in partitions:
        labels: Labels = (("partition", str(place.partition)), ("topic", place.topic))
        assert page["kafka_topic_partition_current_offset", labels] == latest[place]
        assert page["kafka_topic_partition_oldest_offset", labels] == oldest[place]
    with Admin(broker.bootstrap) as admin:
        for group in (WITH_A_MEMBER, BY_THE_BROKER, FORGOTTEN):
            committed = admin.list_consumer_group_offsets({group: None})[group].get()
            for place in partitions:
                labels = (("consumergroup", group), ("partition", str(place.partition)), ("topic", place.topic))
                found = committed[place].get() if place in committed else None
                offset = -1 if found is None else found.offset
                lag = latest[place] - offset if offset >= 0 else -1
                seen = page["kafka_consumergroup_current_offset", labels], page["kafka_consumergroup_lag", labels]
                assert seen == (offset, lag), labels


@pytest.fixture(scope="module")
def exporter(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a kafka_exporter that looks at the broker."""
    program = exporter_program()
    address = f"{HOST}:{free_ports(1)[0]}"
    log_file = tmp_path_factory.mktemp("exporter") / "output.log"
    command = [str(program), f"--kafka.server={broker.bootstrap}", f"--web.listen-address={address}"]
    with log_file.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: answers(address), 30, lambda: f"no answer:\n{log_file.read_text()[-2000:]}", 0.1)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(address: str) -> bool:
    try:
        return bool(read_page(address))
    except OSError:
        return False


def exporter_program() -> Path:
    """Built once from its module, as anybody would get it, beside the other things that tests keep."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is missing: install it and put it on PATH")
    program = CACHE / f"kafka_exporter-{VERSION}"
    if not program.exists():
        folder = CACHE / f"kafka_exporter-{VERSION}.{os.getpid()}"
        folder.mkdir(parents=True)
        environment = {**os.environ, "GOBIN": str(folder)}
        done = subprocess.run(
            [go, "install", f"{MODULE}@{VERSION}"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=BUILD_S_MAX,
        )
        if done.returncode != 0:
            shutil.rmtree(folder)
            pytest.skip(f"kafka_exporter cannot be built here: {done.stderr[-300:]}")
        os.replace(folder / "kafka_exporter", program)
        shutil.rmtree(folder)
    return program


def test_the_page_says_what_kafka_exporter_says(broker: Broker, exporter: str) -> None:
    """Whatever it knows of, our page has with the same labels and number; groups it does not see are ours alone."""
    theirs = read_page(exporter)
    ours = read_page(broker.page)
    lag = [series for series in theirs if series[0] == "kafka_consumergroup_lag"]
    assert {dict(labels)["consumergroup"] for _, labels in lag} >= {WITH_A_MEMBER, FORGOTTEN}
    differing = {series: (value, ours.get(series)) for series, value in theirs.items() if ours.get(series) != value}
    print(f"\n{len(theirs)} series of kafka_exporter, {len(ours)} of ours")
    assert not differing, f"kafka_exporter (left), ours (right): {differing}"
