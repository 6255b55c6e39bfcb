"""Transactions: who has one open, since when, and in which partitions; ending one that hangs."""

from __future__ import annotations

import time

from moldau.actions.calls import Call, changing, reading
from moldau.actions.refusals import Refused, error_row
from moldau.client.admin import Admin, TransactionDescription, TransactionListing
from moldau.client.results import TopicPartition

HANGING_MS = 15 * 60 * 1000


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
    """Open transactions of a topic that their coordinator knows nothing of."""
    topic = call.text("topic")
    known = await call.viewer.topics.get()
    partitions = known.led_partitions([topic] if topic in known.topics else [])
    now_ms = time.time_ns() // 1_000_000
    older_ms = call.number("older_ms", HANGING_MS)
    found = await call.viewer.clients.ask(
        lambda admin: admin.find_hanging_transactions(partitions, older_ms, now_ms) if partitions else []
    )
    return [
        {
            "topic": row.partition.topic,
            "partition": row.partition.partition,
            "producer_id": row.producer.producer_id,
            "epoch": row.producer.producer_epoch,
            "open_since_offset": row.producer.current_transaction_start_offset,
            "last_ms": row.producer.last_timestamp,
        }
        for row in found
    ]


async def end_transaction(call: Call) -> object:
    """Aborts whatever a transactional id has open; its producer is fenced and has to begin anew."""
    name = call.target = call.text("id")
    if call.text("confirmed") != name:
        raise Refused("The name that was typed is not the transactional id's.")
    await call.viewer.clients.ask(lambda admin: admin.force_terminate_transaction(name))
    return {}


ROUTES = [
    reading("/api/transactions", list_transactions),
    reading("/api/transaction", show_transaction),
    reading("/api/transactions/hanging", find_hanging),
    reading("/api/topic/producers", list_producers),
    changing("/api/transactions/terminate", "terminate transaction", end_transaction),
]
