"""Transactions: one that is open, one that is terminated, one that hangs and is aborted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin, Consumer, Producer, TopicPartition
from moldau.client.admin import NewTopic
from moldau.client.errors import ClientError
from moldau.records.builder import BatchBuilder
from tests.console.axe import overflow, violations_in_both_colours
from tests.console.processes import ConsoleProcess
from tests.interop.nodes import MoldauNode
from tests.interop.peers import Peer
from tests.pace import wait_until

# With this broker a producer can write to a partition that its coordinator was never told of, as clients' bugs did.
UNCHECKED = {
    "transaction.partition.verification.enable": "false",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
}
LAST_VERSION_WITHOUT_ADDING = 11
NOBODY = 4_000_000
HANGING = TopicPartition("haunted", 0)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoldauNode]:
    made = MoldauNode(tmp_path_factory.mktemp("transactions"), UNCHECKED)
    made.format()
    made.start()
    with Admin(made.bootstrap) as admin:
        for outcome in admin.create_topics([NewTopic("haunted", 2, 1), NewTopic("paid", 2, 1)]).values():
            outcome.get()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def console(node: MoldauNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    made = ConsoleProcess(tmp_path_factory.mktemp("console"), node.bootstrap)
    yield made
    made.stop()


@pytest.fixture
def opened(node: MoldauNode, request: pytest.FixtureRequest) -> Iterator[Producer]:
    """A producer with a transaction open; its transactional id is the test's name."""
    with Producer(node.bootstrap, transactional_id=request.node.name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("paid", b"open", partition=1).result()
        yield producer


def leave_hanging(node: MoldauNode) -> None:
    """A batch of a transaction that no coordinator knows, twenty minutes old."""
    builder = BatchBuilder()
    builder.append(int(time.time() * 1000) - 20 * 60_000, None, b"never ended", [])
    batch = builder.build(producer_id=NOBODY, producer_epoch=0, base_sequence=0, transactional=True)
    peer = Peer(node)
    answer = peer.produce("haunted", batch, version=LAST_VERSION_WITHOUT_ADDING, transactional_id="ghost")
    peer.close()
    assert answer.error_code == 0


def ask(page: Any, path: str, body: dict[str, object]) -> tuple[int, str]:
    """A change as the page would ask for it."""
    found = page.evaluate(
        """async ([path, body]) => {
            const session = await (await fetch("/api/session")).json();
            const headers = { "content-type": "application/json", "x-csrf-token": session.csrf };
            const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
            return [response.status, (await response.json()).message ?? ""];
        }""",
        [path, body],
    )
    return found[0], found[1]


def last_audited(console: ConsoleProcess) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(console.audit().splitlines()[-1])
    return row


def test_an_open_transaction_is_seen_and_terminated(page: Any, console: ConsoleProcess, opened: Producer) -> None:
    name = "test_an_open_transaction_is_seen_and_terminated"
    page.goto(f"{console.url}/transactions?state=Ongoing")
    page.get_by_role("link", name=name).wait_for()
    assert violations_in_both_colours(page) == [] and overflow(page) == 0
    page.get_by_role("link", name=name).click()
    page.get_by_text("Ongoing").wait_for()
    page.get_by_role("region", name="Partitions").get_by_role("link", name="paid").wait_for()
    assert violations_in_both_colours(page) == [] and overflow(page) == 0
    page.get_by_role("button", name="Terminate").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Type its name to confirm").fill(name)
    dialog.get_by_role("button", name="Terminate").click()
    page.get_by_text(f"What {name} had open is aborted.").wait_for()
    page.get_by_text("Ongoing").wait_for(state="detached")
    with pytest.raises(ClientError):
        opened.commit_transaction()
    row = last_audited(console)
    assert (row["action"], row["target"], row["outcome"]) == ("terminate transaction", name, "done")


def test_an_id_that_nobody_has_is_not_made_by_terminating_it(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/transactions")
    page.get_by_role("heading", name="Transactions", exact=True).wait_for()
    assert ask(page, "/api/transactions/terminate", {"id": "nobody", "confirmed": "nobody"})[0] == 404
    page.goto(f"{console.url}/transactions?search=nobody")
    page.get_by_text("No transaction is like that.").wait_for()


def test_a_hanging_transaction_is_found_and_aborted(
    page: Any, console: ConsoleProcess, node: MoldauNode, opened: Producer
) -> None:
    leave_hanging(node)
    page.goto(f"{console.url}/transactions")
    page.get_by_role("button", name="Look for them").click()
    page.get_by_role("link", name="haunted-0").wait_for()
    found = page.get_by_role("table", name="Hanging transactions")
    assert found.locator("tbody tr").count() == 1
    assert "hanging=" in page.url
    page.reload()
    page.get_by_role("link", name="haunted-0").wait_for()
    assert violations_in_both_colours(page) == [] and overflow(page) == 0
    with Consumer(node.bootstrap, isolation_level="read_committed") as consumer, Producer(node.bootstrap) as producer:
        consumer.assign([HANGING])
        consumer.seek(HANGING, 0)
        producer.send("haunted", b"behind it", partition=0).result()
        assert consumer.poll(500) == []
        page.get_by_role("button", name="Abort the transaction at offset 0 of haunted-0").click()
        dialog = page.get_by_role("dialog")
        assert dialog.get_by_role("button", name="Abort it").is_disabled()
        dialog.get_by_label("Type its name to confirm").fill("haunted-0")
        dialog.get_by_role("button", name="Abort it").click()
        page.get_by_text("The transaction in haunted-0 is aborted.").wait_for()
        page.get_by_text("No transaction hangs in").wait_for()
        read = wait_until(lambda: consumer.poll(200), what="nothing came behind the transaction")
        assert [record.value for record in read] == [b"behind it"]
    row = last_audited(console)
    assert (row["action"], row["target"], row["outcome"]) == ("abort transaction", "haunted-0", "done")
    assert row["details"] == {"open_since_offset": 0}


def test_what_its_coordinator_knows_is_not_aborted(
    page: Any, console: ConsoleProcess, node: MoldauNode, opened: Producer
) -> None:
    page.goto(f"{console.url}/transactions?hanging=paid&minutes=0")
    page.get_by_text("No transaction hangs in 2 partitions.").wait_for()
    with Admin(node.bootstrap) as admin:
        where = TopicPartition("paid", 1)
        states = admin.describe_producers([where])[where].get()
    starts = [state.current_transaction_start_offset for state in states]
    (offset,) = [start for start in starts if start is not None]
    body = {"topic": "paid", "partition": 1, "open_since_offset": offset, "confirmed": "paid-1"}
    status, message = ask(page, "/api/transactions/abort", body)
    assert status == 404 and "No transaction hangs" in message
    opened.commit_transaction()


def test_the_producers_of_a_partition_lead_to_what_hangs(page: Any, console: ConsoleProcess, opened: Producer) -> None:
    page.goto(f"{console.url}/topics/paid/producers?partition=1")
    page.get_by_role("link", name="does it hang?").first.click()
    page.get_by_text("No transaction hangs in 2 partitions.").wait_for()


def test_a_topic_that_is_not_there_is_said(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/transactions?hanging=nothing")
    page.get_by_role("alert").get_by_text("There is no topic nothing").wait_for()
