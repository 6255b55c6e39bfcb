"""Records are deleted after a preview; keys tell their partition; fields offer topics; formats that are missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin, Producer, TopicPartition
from moldau.client.admin import NewTopic
from moldau.client.offsets import EARLIEST
from moldau.records.murmur2 import partition_for_key
from tests.console.axe import overflow, violations_in_both_colours
from tests.console.processes import ConsoleProcess
from tests.interop.nodes import MoldauNode

PARTITIONS = 2
RECORDS = 10


@pytest.fixture(scope="module", autouse=True)
def things(node: MoldauNode) -> Iterator[None]:
    """Two partitions of ten records, and a topic that is compacted."""
    with Admin(node.bootstrap) as admin:
        compacted = NewTopic("kept", 1, 1, {"cleanup.policy": "compact"})
        for outcome in admin.create_topics([NewTopic("ledger", PARTITIONS, 1), compacted]).values():
            outcome.get()
    with Producer(node.bootstrap) as producer:
        for number in range(RECORDS):
            for partition in range(PARTITIONS):
                producer.send("ledger", b"%d" % number, b"k", partition=partition)
        producer.send("kept", b"value", b"key")
    yield


def starts(node: MoldauNode) -> list[int]:
    wanted = {TopicPartition("ledger", number): EARLIEST for number in range(PARTITIONS)}
    with Admin(node.bootstrap) as admin:
        found = admin.list_offsets(wanted)
        return [found[each].get().offset for each in wanted]


def open_dialog(page: Any, console: ConsoleProcess, topic: str) -> Any:
    page.goto(f"{console.url}/topics/{topic}")
    page.get_by_role("button", name="Delete records").click()
    return page.get_by_role("dialog")


def cells(page: Any) -> list[str]:
    return [text.strip() for text in page.locator("dialog tbody tr > *").all_inner_texts()]


def test_records_before_an_offset_are_deleted_after_a_preview(
    page: Any, console: ConsoleProcess, node: MoldauNode
) -> None:
    dialog = open_dialog(page, console, "ledger")
    dialog.get_by_label("Offset").fill("4")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("8 offsets would go").wait_for()
    assert cells(page) == ["0", "0", "4", "10", "4", "1", "0", "4", "10", "4"]
    assert starts(node) == [0, 0]
    assert violations_in_both_colours(page) == [] and overflow(page) == 0
    delete = dialog.get_by_role("button", name="Delete these records")
    assert delete.is_disabled()
    dialog.get_by_label("Type the topic's name to confirm").fill("ledge")
    assert delete.is_disabled()
    dialog.get_by_label("Type the topic's name to confirm").fill("ledger")
    delete.click()
    page.get_by_text("Records of 2 partitions are deleted.").wait_for()
    assert starts(node) == [4, 4]
    row = json.loads(console.audit().splitlines()[-1])
    assert (row["action"], row["target"], row["outcome"]) == ("delete records", "ledger", "done")
    assert row["details"] == {"before": {"0": 4, "1": 4}}


def test_another_question_needs_another_preview(page: Any, console: ConsoleProcess, node: MoldauNode) -> None:
    before = starts(node)
    dialog = open_dialog(page, console, "ledger")
    dialog.get_by_label("Which").select_option("end")
    dialog.get_by_label("Partitions").fill("1")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("would go").wait_for()
    assert cells(page)[:1] == ["1"] and len(cells(page)) == 5
    dialog.get_by_label("Which").select_option("offset")
    assert not dialog.get_by_label("Type the topic's name to confirm").is_visible()
    dialog.get_by_label("Offset").fill("99")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("ledger-1 ends at 10: all of it goes.").wait_for()
    dialog.get_by_label("Offset").fill("0")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("Nothing would go").wait_for()
    assert dialog.get_by_role("button", name="Delete these records").is_disabled()
    dialog.get_by_label("Which").select_option("time")
    dialog.get_by_label("Time").fill("yesterday")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("A time is written as").wait_for()
    dialog.get_by_label("Time").fill("-1h")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("Nothing would go").wait_for()
    assert starts(node) == before


def test_a_compacted_topic_keeps_its_records(page: Any, console: ConsoleProcess) -> None:
    dialog = open_dialog(page, console, "kept")
    dialog.get_by_label("Which").select_option("end")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_label("Type the topic's name to confirm").fill("kept")
    dialog.get_by_role("button", name="Delete these records").click()
    dialog.get_by_text("Its cleanup.policy is compact alone").wait_for()
    assert "compact alone" in json.loads(console.audit().splitlines()[-1])["outcome"]


def test_a_dialog_is_used_with_the_keyboard_alone(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/ledger")
    page.get_by_role("button", name="Delete records").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    # A key that leads elsewhere on the page does nothing in a dialog.
    page.keyboard.press("?")
    assert page.get_by_role("dialog").count() == 1
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert page.evaluate("document.activeElement.textContent") == "Delete records"


def test_a_key_tells_its_partition(page: Any, console: ConsoleProcess) -> None:
    expected = partition_for_key(b"customer-7", PARTITIONS)
    page.goto(f"{console.url}/topics/ledger/messages")
    page.get_by_label("Key is", exact=True).fill("customer-7")
    page.get_by_text(f"puts this key in partition {expected}.").wait_for()
    page.get_by_role("button", name="Look only there").click()
    assert page.get_by_label("Partitions").input_value() == str(expected)
    page.get_by_role("button", name="Produce").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Key", exact=True).fill("customer-7")
    dialog.get_by_text(f"goes to partition {expected} by default").wait_for()
    # Four digits of hexadecimal are two bytes; three are none yet.
    dialog.get_by_label("Key is").select_option("hex")
    dialog.get_by_label("Key", exact=True).fill("cafe")
    elsewhere = partition_for_key(b"\xca\xfe", PARTITIONS)
    dialog.get_by_text(f"goes to partition {elsewhere} by default").wait_for()
    dialog.get_by_label("Key", exact=True).fill("caf")
    dialog.get_by_text("by default").wait_for(state="detached")
    dialog.get_by_label("Key is").select_option("text")
    dialog.get_by_label("Key", exact=True).fill("customer-7")
    dialog.get_by_role("button", name="Send").click()
    page.get_by_text(f"Sent to partition {expected},").wait_for()


def test_fields_for_topics_offer_names(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/transactions")
    page.get_by_label("Topic").fill("edge")
    page.locator('datalist option[value="ledger"]').wait_for(state="attached")
    assert page.locator('datalist option[value="kept"]').count() == 0
    page.get_by_label("Topic").fill("")
    page.locator("datalist option").wait_for(state="detached")


def test_formats_without_their_package_are_not_offered(page: Any, console: ConsoleProcess) -> None:
    page.route("**/api/formats", lambda route: route.fulfill(json={"formats": [], "avro": False, "protobuf": True}))
    page.goto(f"{console.url}/topics/ledger/messages?value=hex")
    page.locator('option[value="avro"][disabled]').first.wait_for(state="attached")
    assert page.locator('option[value="avro"][disabled]').count() == 2
    assert page.locator('option[value="protobuf"][disabled]').count() == 0
    assert page.get_by_label("Value as").input_value() == "hex"
