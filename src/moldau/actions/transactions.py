"""Transactions: who has one open, since when, and in which partitions; ending one that hangs."""

from __future__ import annotations

import time
from functools import partial

from moldau.actions.calls import Call, changing, reading
from moldau.actions.refusals import Refused, error_row
from moldau.actions.topics import led_partitions, topic_of
from moldau.client.admin import Admin, TransactionDescription, TransactionListing
from moldau.client.admin.transactions import HangingTransaction
from moldau.client.results import TopicPartition

# transaction.max.timeout.ms where nothing is said: whatever is open longer is nobody's.
HANGING_MS = 15 * 60 * 1000
ANY_AGE_MS = -(2**62)
PARTITIONS_PER_REQUEST = 2_000
PARTITIONS_MAX = 50_000


async def list_transactions(call: Call) -> object:
    state = call.text("state", "")
    listing = await call.viewer.clients.ask(lambda admin: admin.list_transactions([state] if state else ()))
    keys = {"state": lambda row: row.state, "producer_id": lambda row: row.producer_id}
    page = call.page_of(listing.found, name=lambda row: row.transactional_id, key=keys.get(call.text("sort", "id")))
    return page.around([_row(row) for row in page.rows]) | {
        "errors": {str(broker_id): error_row(error) for broker_id, error in listing.errors.items()}
    }


def _row(row: TransactionListing) -> dict[str, object]:
    return {
        "id": row.transactional_id,
        "producer_id": row.producer_id,
        "state": row.state,
        "coordinator": row.coordinator_id,
    }


async def show_transaction(call: Call) -> object:
    name = call.text("id")

    def work(admin: Admin) -> TransactionDescription:
        return admin.describe_transactions([name])[name].get()

    found = await call.viewer.clients.ask(work)
    return {
        "id": name,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "coordinator": found.coordinator_id,
        "timeout_ms": found.transaction_timeout_ms,
        "began_ms": found.transaction_start_time_ms,
        "partitions": [
            {"topic": each.topic, "partition": each.partition}
            for each in found.partitions
            if call.viewer.scope.has_topic(each.topic)
        ],
    }


async def list_producers(call: Call) -> object:
    """Who has written to a partition of late, and who has a transaction open there."""
    where = TopicPartition(call.text("topic"), call.number("partition"))
    call.viewer.scope.check_topic(where.topic)
    outcomes = await call.viewer.clients.ask(lambda admin: admin.describe_producers([where]))
    return [
        {
            "producer_id": row.producer_id,
            "epoch": row.producer_epoch,
            "last_sequence": row.last_sequence,
            "last_ms": row.last_timestamp,
            "open_since_offset": row.current_transaction_start_offset,
        }
        for row in outcomes[where].get()
    ]


async def find_hanging(call: Call) -> object:
    """Open transactions that no coordinator knows of, so that none will end them; in a topic, or (no name) in all."""
    name = call.text("topic", "").strip()
    if name:
        every = led_partitions(await topic_of(call.viewer, name))
    else:
        known = await call.viewer.topics.get()
        every = known.led_partitions(known.topics)
    asked = every[:PARTITIONS_MAX]
    older_ms = call.number("older_ms", HANGING_MS)
    rows: list[HangingTransaction] = []
    for start in range(0, len(asked), PARTITIONS_PER_REQUEST):
        some = asked[start : start + PARTITIONS_PER_REQUEST]
        rows += await call.viewer.clients.ask_of_all(partial(_hanging_in, some, older_ms))
    return {"rows": [_hanging_row(row) for row in rows], "asked": len(asked), "of_partitions": len(every)}


def _hanging_in(partitions: list[TopicPartition], older_ms: int, admin: Admin) -> list[HangingTransaction]:
    return admin.find_hanging_transactions(partitions, older_ms, time.time_ns() // 1_000_000)


def _hanging_row(row: HangingTransaction) -> dict[str, object]:
    return {
        "topic": row.partition.topic,
        "partition": row.partition.partition,
        "producer_id": row.producer.producer_id,
        "epoch": row.producer.producer_epoch,
        "open_since_offset": row.producer.current_transaction_start_offset,
        "last_ms": row.producer.last_timestamp,
    }


async def abort_hanging(call: Call) -> object:
    """Aborts one hanging transaction; one that its coordinator knows (again) is left to that."""
    where = TopicPartition(call.text("topic"), call.number("partition"))
    offset = call.number("open_since_offset")
    call.target, call.details = str(where), {"open_since_offset": offset}
    call.viewer.scope.check_topic(where.topic)
    if call.text("confirmed") != str(where):
        raise Refused("The name that was typed is not the partition's.")

    def work(admin: Admin) -> bool:
        for found in _hanging_in([where], ANY_AGE_MS, admin):
            if found.producer.current_transaction_start_offset == offset:
                admin.abort_transaction(found.aborted_by)
                return True
        return False

    if not await call.viewer.clients.ask(work):
        raise Refused(f"No transaction hangs at offset {offset:,} of {where} any more.", 404, "NOT_FOUND")
    return {}


async def end_transaction(call: Call) -> object:
    """Aborts whatever a transactional id has open; its producer is fenced and has to begin anew."""
    name = call.target = call.text("id")
    if call.text("confirmed") != name:
        raise Refused("The name that was typed is not the transactional id's.")

    def work(admin: Admin) -> None:
        # Fencing an id that does not exist would create it.
        admin.describe_transactions([name])[name].get()
        admin.force_terminate_transaction(name)

    await call.viewer.clients.ask(work)
    return {}


ROUTES = [
    reading("/api/transactions", list_transactions),
    reading("/api/transaction", show_transaction),
    reading("/api/transactions/hanging", find_hanging),
    reading("/api/topic/producers", list_producers),
    changing("/api/transactions/abort", "abort transaction", abort_hanging),
    changing("/api/transactions/terminate", "terminate transaction", end_transaction),
]
