"""Tools that look at the cluster: health, brokers, quorum, configs, transactions, quotas, ACLs, users."""

from __future__ import annotations

from typing import Any

from moldau.actions.acls import list_acls
from moldau.actions.brokers import show_broker
from moldau.actions.configs import show_configs
from moldau.actions.overview import show_overview, show_quorum
from moldau.actions.quotas import list_quotas
from moldau.actions.refusals import Refused
from moldau.actions.transactions import find_hanging, list_transactions, show_transaction
from moldau.actions.users import list_users
from moldau.facts.record_json import iso_time
from moldau.mcp.arguments import FLAG, NUMBER, TEXT, Argument
from moldau.mcp.tool import LIMIT, Asked, Tool, skipping

ALL_CONFIGS = Argument("all", FLAG, "Also those that have their default value.", default=False)


async def cluster_overview(asked: Asked) -> dict[str, Any]:
    found = await asked.result(show_overview)
    found["health"] = [health_sentence(row) for row in found["health"]]
    if not asked.viewer.scope.has_all_named_topics:
        found["note"] = "Health and counts are those of the topics that this server shows; there may be others."
    found["brokers"], part = asked.rest("brokers", "skip", found["brokers"])
    return asked.bounded(found, part)


def health_sentence(row: dict[str, Any]) -> dict[str, Any]:
    """A sentence of the console's, with what a page shows beside it."""
    text = str(row["text"])
    if row["since_ms"] is not None:
        text += f", since {iso_time(row['since_ms'])}"
    if row["partitions"]:
        named = ", ".join(f"{each['topic']}-{each['partition']}" for each in row["partitions"])
        more = row["count"] - len(row["partitions"])
        text += f": {named}" + (f" and {more:,} more" if more else "")
    return {"level": row["level"], "text": text if text.endswith(".") else f"{text}."}


async def describe_broker(asked: Asked) -> dict[str, Any]:
    return asked.bounded(await asked.result(show_broker, id=asked["broker"]))


async def describe_quorum(asked: Asked) -> dict[str, Any]:
    found = await asked.result(show_quorum)
    parts = []
    for name, argument in (("voters", "skip"), ("observers", "skip_observers")):
        found[name], part = asked.rest(name, argument, found[name])
        parts.append(part)
    return asked.bounded(found, *parts)


async def describe_configs(asked: Asked) -> dict[str, Any]:
    rows = await config_rows(asked, asked["kind"], asked["name"], asked["all"])
    rows, part = asked.rest("configs", "skip", rows)
    return asked.bounded({"kind": asked["kind"], "name": asked["name"], "configs": rows}, part)


async def config_rows(asked: Asked, kind: str, name: str, every: bool) -> list[dict[str, Any]]:
    """Names, values and where each comes from; values of sensitive configs are null."""
    found = await show_configs(asked.call(kind=kind, name=name))
    assert isinstance(found, list)
    return [
        {
            "name": row["name"],
            "value": row["value"],
            "source": row["source"],
            **{word: True for word in ("sensitive", "read_only") if row[word]},
        }
        for row in found
        if every or not row["is_default"]
    ]


async def list_all_transactions(asked: Asked) -> dict[str, Any]:
    found, part = await asked.page(list_transactions, state=asked.get("state"))
    return asked.bounded(found, part)


async def describe_transaction(asked: Asked) -> dict[str, Any]:
    found = await asked.result(show_transaction, id=asked["transactional_id"])
    found["partitions"], part = asked.rest("partitions", "skip", found["partitions"])
    return asked.bounded(found, part)


async def find_hanging_transactions(asked: Asked) -> dict[str, Any]:
    older_ms = None if asked.get("older_minutes") is None else asked["older_minutes"] * 60_000
    found = await asked.result(find_hanging, topic=asked.get("topic"), older_ms=older_ms)
    if found["asked"] < found["of_partitions"]:
        found["note"] = f"There are {found['of_partitions']:,} partitions; {found['asked']:,} of them were asked."
    found["rows"], part = asked.rest("rows", "skip", found["rows"])
    return asked.bounded(found, part)


async def list_all_quotas(asked: Asked) -> dict[str, Any]:
    found = await asked.result(list_quotas)
    found["rows"], part = asked.rest("rows", "skip", found["rows"])
    return asked.bounded(found, part)


async def list_all_acls(asked: Asked) -> dict[str, Any]:
    if not asked.viewer.scope.has_all_named_topics:
        raise Refused("ACLs name topics that this server does not show, so it does not list them.", 403, "NOT_SHOWN")
    found, part = await asked.page(list_acls)
    for name in ("resource_types", "operations", "permissions", "pattern_types"):
        found.pop(name, None)
    return asked.bounded(found, part)


async def list_all_users(asked: Asked) -> dict[str, Any]:
    found = await asked.result(list_users)
    every = [
        {"user": row["user"], "mechanisms": [each["mechanism"] for each in row["credentials"]]} for row in found["rows"]
    ]
    rows, part = asked.rest("rows", "skip", every)
    return asked.bounded({"rows": rows}, part)


TOOLS = (
    Tool(
        "cluster_overview",
        "Cluster overview",
        "Brokers, controller, counts of topics and partitions, and the cluster's health in sentences, the worst first.",
        cluster_overview,
        (skipping(what="brokers"),),
    ),
    Tool(
        "describe_broker",
        "Describe a broker",
        "One broker: what it leads and has, its log directories, how full they are and what takes the room.",
        describe_broker,
        (Argument("broker", NUMBER, "The broker's id.", required=True, lowest=0),),
    ),
    Tool(
        "describe_quorum",
        "Describe the quorum",
        "The controllers: who leads, in which epoch, who votes, who observes, and how far each is behind.",
        describe_quorum,
        (skipping(what="voters"), skipping("skip_observers", "observers")),
    ),
    Tool(
        "describe_configs",
        "Describe configs",
        "Configs of a topic, a broker or a group with where each value comes from; those that differ from the default,"
        " or all. Sensitive values are null.",
        describe_configs,
        (
            Argument("kind", TEXT, "Of what.", required=True, choices=("topic", "broker", "group")),
            Argument("name", TEXT, "The topic, the broker's id, or the group.", required=True),
            ALL_CONFIGS,
            skipping(),
        ),
    ),
    Tool(
        "list_transactions",
        "List transactions",
        "Transactional ids with their state, producer id and coordinator.",
        list_all_transactions,
        (
            Argument("search", TEXT, "Words that the transactional id contains."),
            Argument("state", TEXT, "Only those in this state, such as Ongoing."),
            LIMIT,
            skipping(),
        ),
    ),
    Tool(
        "describe_transaction",
        "Describe a transaction",
        "One transactional id: state, since when its transaction is open, its timeout, and its partitions.",
        describe_transaction,
        (Argument("transactional_id", TEXT, "Which one.", required=True), skipping(what="partitions")),
    ),
    Tool(
        "find_hanging_transactions",
        "Find hanging transactions",
        "Transactions that are open although their coordinator knows nothing of them: they hold back readers of"
        " committed records. Of a topic, or of all.",
        find_hanging_transactions,
        (
            Argument("topic", TEXT, "Only in this topic."),
            Argument("older_minutes", NUMBER, "Open for so many minutes at least; 15 if not said.", lowest=0),
            skipping(),
        ),
    ),
    Tool(
        "list_quotas",
        "List quotas",
        "Quotas of users, client ids and addresses, and what each key limits.",
        list_all_quotas,
        (skipping(),),
    ),
    Tool(
        "list_acls",
        "List ACLs",
        "Who may do what. Refused where this server shows some topics only.",
        list_all_acls,
        (Argument("search", TEXT, "Words of principal, resource or operation."), LIMIT, skipping()),
    ),
    Tool(
        "list_users",
        "List users",
        "Names of SCRAM users and the mechanisms they have; nothing of their passwords.",
        list_all_users,
        (skipping(),),
    ),
)
