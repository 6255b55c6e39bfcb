"""Each page in a real browser, against a real broker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin, Consumer, Producer, TopicPartition
from moldau.client.admin import NewTopic, QuotaEntity
from tests.console.processes import ConsoleProcess
from tests.interop.nodes import MoldauNode
from tests.pace import wait_until

NASTY = (
    b"<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    b"\x1b[31mred\x00\x07\xe2\x80\xaeturned &amp; <b>bold</b>"
)


@pytest.fixture(scope="module", autouse=True)
def things(node: MoldauNode) -> Iterator[None]:
    """Topics with records, a group with lag, and a record full of markup."""
    with Admin(node.bootstrap) as admin:
        admin.create_topics([NewTopic("orders", 3, 1), NewTopic("empty", 1, 1), NewTopic("nasty", 1, 1)])
        with Producer(node.bootstrap) as producer:
            for number in range(120):
                value = json.dumps({"number": number, "who": f"customer {number % 7}"}).encode()
                producer.send("orders", value, f"k{number % 7}".encode(), headers=[("source", b"shop")])
            producer.send("nasty", NASTY, b"<i>key</i>", headers=[("<u>name</u>", b"<script>1</script>")])
            producer.flush()
        offsets = {TopicPartition("orders", number): 5 for number in range(3)}
        admin.alter_consumer_group_offsets("billing", offsets)
        admin.alter_client_quotas({QuotaEntity.of({"user": "anna"}): {"producer_byte_rate": 1_000_000.0}})
    yield


def texts(page: Any, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def test_the_overview_says_how_the_cluster_is(page: Any, console: ConsoleProcess) -> None:
    page.goto(console.url)
    page.get_by_text("Everything is as it should be").wait_for()
    page.get_by_role("region", name="Brokers").get_by_text("active").wait_for()
    assert page.title() == "Overview · Moldau console"


def test_plots_move_while_records_arrive(page: Any, console: ConsoleProcess, node: MoldauNode) -> None:
    page.goto(console.url)
    with Producer(node.bootstrap) as producer:

        def busy() -> bool:
            producer.send_many("orders", [b"x"] * 50)
            return bool(page.locator("svg.plot").count()) and page.get_by_label("Busiest topics").count() > 0

        wait_until(busy, 40, "no plot was drawn", pause_s=0.2)
    page.get_by_label("Busiest topics").get_by_text("orders").wait_for()


def test_topics_are_searched_and_lead_on(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics")
    page.get_by_role("link", name="orders", exact=True).wait_for()
    page.keyboard.press("/")
    page.keyboard.type("emp")
    page.get_by_role("link", name="orders", exact=True).wait_for(state="detached")
    assert "search=emp" in page.url
    page.get_by_role("link", name="empty").click()
    page.get_by_role("heading", name="empty", exact=True).wait_for()
    page.get_by_role("img", name=re.compile("^Replicas of partitions")).wait_for()
    assert page.url.endswith("/topics/empty")


def test_a_topic_that_is_not_there_is_said_in_words(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/nothing")
    page.get_by_text("There is no topic nothing").wait_for()


def test_messages_newest_first_and_older_ones(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/orders/messages?limit=20")
    page.locator(".record-table tbody tr").first.wait_for()
    assert page.locator(".opener").count() == 20
    page.get_by_role("button", name="Older").click()
    wait_until(lambda: page.locator(".opener").count() == 40, what="no older records came")


def test_messages_from_an_offset_of_a_partition(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/orders/messages?from=offset&at=3&partitions=0&limit=20")
    page.locator(".opener").first.wait_for()
    rows = page.locator(".record-table tbody tr:not(.details)")
    assert rows.first.locator("td").nth(2).inner_text() == "3"
    assert {rows.nth(number).locator("td").nth(1).inner_text() for number in range(rows.count())} == {"0"}


def test_a_record_is_shown_whole(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/orders/messages?limit=20&from=oldest")
    page.locator(".opener").first.click()
    page.locator(".whole pre").first.wait_for()
    assert '"number"' in page.locator(".whole pre").nth(1).inner_text()
    assert "shop" in page.locator(".headers").inner_text()


def test_markup_and_control_characters_in_records_are_shown_and_never_run(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/nasty/messages")
    page.locator(".opener").first.click()
    page.locator(".whole pre").first.wait_for()
    text = page.locator(".whole pre").nth(1).inner_text()
    assert "<script>document.title='owned'</script>" in text
    assert "\\x1b[31mred\\x00\\x07\\u202eturned &amp;" in text
    assert "<u>name</u>" in page.locator(".headers").inner_text()
    assert page.locator("main script, main img, main b, main i, main u").count() == 0
    assert "owned" not in page.title()


def test_the_live_tail_shows_records_as_they_arrive(page: Any, console: ConsoleProcess, node: MoldauNode) -> None:
    page.goto(f"{console.url}/topics/orders/messages?live=true")
    page.locator(".status .badge", has_text="live").wait_for()
    with Producer(node.bootstrap) as producer:
        producer.send("orders", b"just now", b"tail")
        producer.flush()
        page.get_by_text("just now").first.wait_for()
        # A flood: the page shows some of it, says so, and stays small.
        producer.send_many("orders", [b"flood"] * 20_000)
        producer.flush()
    page.get_by_text("came faster than they can be read").wait_for()
    assert page.locator(".opener").count() <= 500
    page.get_by_role("button", name="Stop").click()


def test_a_search_finds_and_tells_its_progress(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/orders/messages")
    page.get_by_label("JSON field").fill("number=77")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_text("1 found in").wait_for()
    page.get_by_text("That is all.").wait_for()
    assert "customer 0" in page.locator(".value-cell").first.inner_text()


def test_groups_with_lag_in_records_and_time(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/groups?search=bill")
    page.get_by_role("link", name="billing").wait_for()
    row = page.locator("tbody tr").first
    wait_until(lambda: row.locator("td").last.inner_text() not in ("–", "0 s"), what="no lag in seconds came")
    page.get_by_role("link", name="billing").click()
    page.get_by_role("img", name=re.compile("partitions, 3 of which nobody reads")).wait_for()


def test_offsets_are_reset_after_a_preview(page: Any, console: ConsoleProcess, node: MoldauNode) -> None:
    page.goto(f"{console.url}/groups/billing")
    page.get_by_role("button", name="Reset offsets").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Where to").select_option("offset")
    dialog.get_by_label("Offset", exact=True).fill("2")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("Nothing is written yet").wait_for()
    assert texts(page, "dialog tbody tr:first-child td") == ["0", "5", "2", "−3"]
    with Admin(node.bootstrap) as admin:
        where = TopicPartition("orders", 0)
        before = admin.list_consumer_group_offsets({"billing": None})["billing"].get()[where].get()
        assert before is not None and before.offset == 5
        dialog.get_by_role("button", name="Set these offsets").click()
        page.get_by_text("The offsets of 3 partitions are set.").wait_for()
        after = admin.list_consumer_group_offsets({"billing": None})["billing"].get()[where].get()
        assert after is not None and after.offset == 2
    assert '"action": "reset offsets"' in console.audit()


def test_a_group_with_members_is_not_reset(page: Any, console: ConsoleProcess, node: MoldauNode) -> None:
    with Consumer(node.bootstrap, group_id="busy", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        wait_until(lambda: consumer.poll(100) and consumer.assignment(), what="nothing was read")
        consumer.commit()
        page.goto(f"{console.url}/groups/busy")
        page.get_by_role("region", name="Members").wait_for()
        page.get_by_role("button", name="Reset offsets").click()
        page.get_by_role("dialog").get_by_role("button", name="Preview").click()
        page.get_by_text("The group has 1 member now: offsets can be set once none is left.").wait_for()
        assert page.get_by_role("button", name="It has members").is_disabled()


def test_a_topic_is_created_changed_and_deleted(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics")
    page.get_by_role("button", name="Create topic").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("made-here")
    dialog.get_by_label("Partitions").fill("2")
    dialog.get_by_label("Configs").fill("retention.ms=60000")
    dialog.get_by_role("button", name="Check without creating").click()
    dialog.get_by_text("The broker would create made-here").wait_for()
    dialog.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("heading", name="made-here").wait_for()
    page.get_by_role("link", name="Configs").click()
    page.get_by_role("button", name="Edit retention.ms", exact=True).click()
    dialog.get_by_label("New value").fill("120000")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("The broker accepts this change").wait_for()
    dialog.get_by_role("button", name="Change it").click()
    page.get_by_text("retention.ms is changed.").wait_for()
    page.get_by_role("button", name="Delete topic").click()
    delete = dialog.get_by_role("button", name="Delete topic")
    dialog.get_by_label("Type its name to confirm").fill("made-her")
    assert delete.is_disabled()
    dialog.get_by_label("Type its name to confirm").fill("made-here")
    delete.click()
    page.get_by_text("Topic made-here is deleted.").wait_for()
    actions = [json.loads(line)["action"] for line in console.audit().splitlines()]
    assert [name for name in actions if "topic" in name or "configs" in name] == [
        "create topic",
        "alter configs",
        "delete topic",
    ]


def test_a_record_is_sent_from_the_page(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/empty/messages")
    page.get_by_text("There are no records.").wait_for()
    page.get_by_role("button", name="Produce").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Key", exact=True).fill("k")
    dialog.get_by_label("Value", exact=True).fill('{"sent": true}')
    dialog.get_by_label("Value is").select_option("json")
    dialog.get_by_label("Headers").fill("from=page")
    dialog.get_by_role("button", name="Send").click()
    page.get_by_text("Sent to partition 0, offset 0.").wait_for()
    page.locator(".opener").first.click()
    assert "page" in page.locator(".headers").inner_text()


def test_records_are_downloaded_as_json_lines(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/nasty/messages")
    page.locator(".opener").first.wait_for()
    with page.expect_download() as started:
        page.get_by_role("button", name="Download").click()
    rows = [json.loads(line) for line in started.value.path().read_text().splitlines()]
    assert rows[0]["key"] == "<i>key</i>"


def test_internal_topics_are_decoded(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/topics/__consumer_offsets/messages?limit=20")
    page.locator(".opener").first.click()
    page.locator(".whole pre").first.wait_for()
    assert '"group"' in page.locator(".whole pre").first.inner_text()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/brokers", "Partitions led"),
        ("/brokers/1", "Log directories"),
        ("/quorum", "High watermark"),
        ("/transactions", "There are no transactions yet."),
        ("/transactions?search=nobody", "No transaction is like that."),
        ("/transactions?hanging=orders", "No transaction hangs in 3 partitions."),
        ("/quotas", "user anna"),
        ("/users", "The cluster keeps no users of SCRAM."),
        ("/topics/orders/groups", "billing"),
        ("/topics/orders/producers", "Producer id"),
        ("/nowhere", "Nothing is here"),
    ],
)
def test_every_other_page_can_be_linked_to(page: Any, console: ConsoleProcess, path: str, words: str) -> None:
    page.goto(f"{console.url}{path}")
    page.get_by_text(words).first.wait_for()


def test_what_a_broker_does_not_have_is_said_on_its_page(page: Any, console: ConsoleProcess) -> None:
    """A broker without an authorizer has no ACLs to show."""
    page.goto(f"{console.url}/acls")
    page.get_by_role("alert").wait_for()


def test_keys_lead_to_pages_and_help(page: Any, console: ConsoleProcess) -> None:
    page.goto(console.url)
    page.get_by_text("Everything is as it should be").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.get_by_role("heading", name="Topics").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="orders", exact=True).wait_for()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.tagName") == "A"
    page.go_back()
    page.get_by_role("heading", name="Overview").wait_for()


def test_colours_are_switched_and_kept(page: Any, console: ConsoleProcess) -> None:
    page.goto(console.url)
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    page.get_by_role("button", name="Light").wait_for()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_narrow_screen_does_not_scroll_sideways(page: Any, console: ConsoleProcess) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    for path in ("/", "/topics", "/topics/orders", "/topics/orders/messages", "/groups/billing"):
        page.goto(f"{console.url}{path}")
        page.locator("main h1").wait_for()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380, path
    page.goto(f"{console.url}/users")
    place = page.get_by_role("link", name="Users", exact=True).bounding_box()
    assert place is not None and place["x"] >= 0 and place["x"] + place["width"] <= 380
