"""A share group with members: who they are, what is left, and its start offsets reset after a preview."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin, Producer, ShareConsumer, TopicPartition
from moldau.client.admin import GROUP, ConfigChange, ConfigResource, NewTopic
from tests.console.axe import overflow, violations_in_both_colours
from tests.console.processes import ConsoleProcess
from tests.interop.nodes import MoldauNode
from tests.pace import wait_until

QUICK = {
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}
RECORDS = 40
JOBS = TopicPartition("jobs", 0)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoldauNode]:
    made = MoldauNode(tmp_path_factory.mktemp("share"), QUICK)
    made.format()
    made.start()
    group = ConfigResource(GROUP, "workers")
    with Admin(made.bootstrap) as admin:
        admin.create_topics([NewTopic("jobs", 1, 1)])["jobs"].get()
        changes = {group: [ConfigChange("share.auto.offset.reset", "earliest")]}
        admin.incremental_alter_configs(changes)[group].get()
    with Producer(made.bootstrap) as producer:
        for number in range(RECORDS):
            producer.send("jobs", b"%d" % number)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def console(node: MoldauNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    made = ConsoleProcess(tmp_path_factory.mktemp("console"), node.bootstrap)
    yield made
    made.stop()


class Workers:
    """Members of the group that go on polling, each in a thread of its own, until they are stopped."""

    def __init__(self, bootstrap: str, names: list[str]) -> None:
        self._stopped = threading.Event()
        self.taken: list[int] = []
        self._threads = [threading.Thread(target=self._work, args=(bootstrap, name)) for name in names]
        for thread in self._threads:
            thread.start()

    def _work(self, bootstrap: str, name: str) -> None:
        with ShareConsumer(bootstrap, group_id="workers", client_id=name) as consumer:
            consumer.subscribe(["jobs"])
            while not self._stopped.is_set():
                self.taken += [record.offset for record in consumer.poll(200)]

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def workers(node: MoldauNode) -> Iterator[Workers]:
    made = Workers(node.bootstrap, ["worker-a", "worker-b"])
    yield made
    made.stop()


def start_offset(node: MoldauNode) -> int:
    with Admin(node.bootstrap) as admin:
        found = admin.list_share_group_offsets({"workers": None})["workers"].get()[JOBS].get()
    assert found is not None
    return found.start_offset


def test_members_lag_and_a_reset_that_waits_for_them(
    page: Any, console: ConsoleProcess, node: MoldauNode, workers: Workers
) -> None:
    wait_until(lambda: len(set(workers.taken)) == RECORDS, 40, lambda: f"{len(workers.taken)} records came")
    page.goto(f"{console.url}/groups/workers")
    members = page.get_by_role("region", name="Members")
    members.get_by_text("worker-a").wait_for()
    members.get_by_text("worker-b").wait_for()
    row = page.get_by_role("region", name="Offsets").locator("tbody tr").first
    # The start may stay behind what was accepted: what is left is for the coordinator to count.
    wait_until(lambda: row.locator("td").nth(3).inner_text() == "0", 40, lambda: row.inner_text(), pause_s=0.2)
    assert row.locator("td").nth(2).inner_text() == str(RECORDS)
    page.get_by_role("region", name="Configs").get_by_text("share.auto.offset.reset").wait_for()
    assert violations_in_both_colours(page) == [] and overflow(page) == 0
    page.get_by_role("button", name="Reset offsets").click()
    page.get_by_role("dialog").get_by_role("button", name="Preview").click()
    page.get_by_text("The group has 2 members now").wait_for()
    assert page.get_by_role("button", name="It has members").is_disabled()
    page.keyboard.press("Escape")
    workers.stop()
    page.get_by_text("It has no members now.").wait_for()
    page.get_by_role("button", name="Reset offsets").click()
    dialog = page.get_by_role("dialog")
    before = start_offset(node)
    dialog.get_by_label("Where to").select_option("offset")
    dialog.get_by_label("Offset", exact=True).fill("15")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("Nothing is written yet").wait_for()
    cells = [text.strip() for text in page.locator("dialog tbody td").all_inner_texts()]
    assert cells == ["0", str(before), "15", f"{'+' if before < 15 else '−'}{abs(15 - before)}"]
    assert start_offset(node) == before
    assert violations_in_both_colours(page) == [] and overflow(page) == 0
    dialog.get_by_role("button", name="Set these offsets").click()
    page.get_by_text("The offsets of 1 partition are set.").wait_for()
    assert start_offset(node) == 15
    audited = json.loads(console.audit().splitlines()[-1])
    assert (audited["action"], audited["target"], audited["details"]) == ("reset offsets", "workers", {"jobs-0": 15})
    for path in ("/groups?type=share", "/topics/jobs/groups"):
        page.goto(f"{console.url}{path}")
        line = page.locator("tbody tr", has_text="workers")
        line.get_by_text("25", exact=True).wait_for()
        assert violations_in_both_colours(page) == [] and overflow(page) == 0
