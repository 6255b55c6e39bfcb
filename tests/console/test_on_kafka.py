"""The main pages against a real Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Producer, TopicPartition
from moldau.client.admin import NewTopic
from tests.console.processes import ConsoleProcess
from tests.interop.kafka_oracle import KafkaNode, missing
from tests.pace import wait_until

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    folder: Path = tmp_path_factory.mktemp("kafka")
    node = KafkaNode(folder / "broker")
    node.format()
    node.start()
    with Admin(node.bootstrap) as admin:
        for created in admin.create_topics([NewTopic("orders", 3, 1), NewTopic("trimmed", 4, 1)]).values():
            created.get()
        with Producer(node.bootstrap) as producer:
            for number in range(60):
                producer.send("orders", f'{{"number": {number}}}'.encode(), b"k%d" % (number % 5))
            producer.flush()
        offsets = {TopicPartition("orders", number): 1 for number in range(3)}
        for outcome in admin.alter_consumer_group_offsets("billing", offsets).values():
            outcome.get()
    made = ConsoleProcess(folder / "console", node.bootstrap)
    yield made
    made.stop()
    node.stop()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/", "Everything is as it should be"),
        ("/topics", "orders"),
        ("/topics/orders", "Leaders by broker"),
        ("/topics/orders/messages", "number"),
        ("/topics/orders/configs", "retention.ms"),
        ("/topics/orders/groups", "billing"),
        ("/topics/__consumer_offsets/messages", "billing"),
        ("/groups", "billing"),
        ("/groups/billing", "Assignment"),
        ("/brokers/1", "Log directories"),
        ("/quorum", "High watermark"),
        ("/transactions", "There are no transactions"),
        ("/transactions?hanging=orders", "No transaction hangs in 3 partitions."),
        ("/topics/orders/producers", "Last sequence"),
        ("/quotas", "No quotas are set"),
        ("/users", "The cluster keeps no users"),
    ],
)
def test_a_page_shows_what_kafka_says(page: Any, console: ConsoleProcess, path: str, words: str) -> None:
    page.goto(f"{console.url}{path}")
    page.get_by_text(words).first.wait_for()


def test_live_tail_produce_and_reset(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/orders/messages?live=true")
    page.locator(".status .badge", has_text="live").wait_for()
    page.get_by_role("button", name="Produce").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Value", exact=True).fill("hello kafka")
    dialog.get_by_role("button", name="Send").click()
    page.get_by_text("hello kafka").first.wait_for()
    page.goto(f"{console.url}/groups/billing")
    page.get_by_role("button", name="Reset offsets").click()
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_role("button", name="Set these offsets").click()
    page.get_by_text("The offsets of 3 partitions are set.").wait_for()
    wait_until(lambda: "61" in page.locator(".facts").first.inner_text(), what="the lag did not grow")


def test_records_are_deleted_and_keys_are_where_kafka_puts_them(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/trimmed/messages")
    page.get_by_role("button", name="Produce").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Key", exact=True).fill("anna")
    dialog.get_by_text("by default").wait_for()
    expected = dialog.get_by_text("by default").inner_text().split()[3]
    dialog.get_by_label("Value", exact=True).fill("one")
    dialog.get_by_role("button", name="Send").click()
    page.get_by_text(f"Sent to partition {expected}, offset 0.").wait_for()
    page.get_by_role("button", name="Delete records").click()
    dialog.get_by_label("Which").select_option("end")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("1 offset would go").wait_for()
    dialog.get_by_label("Type the topic's name to confirm").fill("trimmed")
    dialog.get_by_role("button", name="Delete these records").click()
    page.get_by_text("Records of 1 partition are deleted.").wait_for()
    page.get_by_text("There are no records.").wait_for()
