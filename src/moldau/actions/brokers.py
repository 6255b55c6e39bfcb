"""Brokers: the list with what each leads and has, and one broker with its log directories."""

from __future__ import annotations

from moldau.actions.calls import Call, reading
from moldau.actions.overview import broker_rows
from moldau.actions.refusals import Refused, error_row
from moldau.actions.scope import Scope
from moldau.client.admin import LogDirectory
from moldau.client.errors import ClientError

LARGEST_MAX = 20


async def list_brokers(call: Call) -> object:
    described = await call.viewer.cluster.get()
    return {"rows": broker_rows(described, await call.viewer.topics.get()), "cluster_id": described.cluster.cluster_id}


async def show_broker(call: Call) -> object:
    """A broker with its directories: how full they are, and what takes the room."""
    broker_id = call.number("id")
    described = await call.viewer.cluster.get()
    rows = broker_rows(described, await call.viewer.topics.get())
    row = next((row for row in rows if row["id"] == broker_id), None)
    if row is None:
        raise Refused(f"There is no broker {broker_id} in the cluster.", 404, "NOT_FOUND")
    row["gone_since_ms"] = call.viewer.broker_absences.since(broker_id)
    try:
        outcomes = await call.viewer.clients.ask(lambda admin: admin.describe_log_dirs([broker_id]))
        row["directories"] = [_directory_row(each, call.viewer.scope) for each in outcomes[broker_id].get()]
    except ClientError as error:
        row["directories_error"] = error_row(error)
    return row


def _directory_row(directory: LogDirectory, scope: Scope) -> dict[str, object]:
    named = [replica for replica in directory.replicas if scope.has_topic(replica.partition.topic)]
    largest = sorted(named, key=lambda replica: -replica.size)[:LARGEST_MAX]
    return {
        "path": directory.path,
        "error": None if directory.error is None else directory.error.message,
        "total_bytes": directory.total_bytes,
        "usable_bytes": directory.usable_bytes,
        "replicas": len(directory.replicas),
        "size": sum(replica.size for replica in directory.replicas),
        "largest": [
            {
                "topic": replica.partition.topic,
                "partition": replica.partition.partition,
                "size": replica.size,
                "offset_lag": replica.offset_lag,
                "is_future": replica.is_future,
            }
            for replica in largest
        ],
    }


ROUTES = [
    reading("/api/brokers", list_brokers),
    reading("/api/broker", show_broker),
]
