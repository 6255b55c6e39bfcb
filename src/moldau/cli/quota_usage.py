"""Who uses how much of a quota now, and who is throttled: from the brokers' pages of metrics.

Kafka's protocol does not tell. A broker of Moldau has the rates of every client with a quota on its page, under the
names of Kafka's metrics, where `moldau.metrics.listener` says so; of all others it is not known.
"""

from __future__ import annotations

import re
from math import isnan
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import click

from moldau.cli.output import Styled, print_note, print_table
from moldau.cli.quota_entities import CLIENT_ID, IP, USER, Parts, value_text

if TYPE_CHECKING:
    from moldau.client.admin import Admin

KEYS_BY_KIND = {
    "produce": "producer_byte_rate",
    "fetch": "consumer_byte_rate",
    "request": "request_percentage",
    "controllermutation": "controller_mutation_rate",
}
RATES = ("byte_rate", "request_time", "mutation_rate")
_LINE = re.compile(
    r"(?:kafka_server|moldau_quota)_(produce|fetch|request|controller_?mutation)_"
    r"(byte_rate|request_time|mutation_rate|tokens|throttle_time|limit|wait)(?:_ms|_avg|_percent)*"
    r"\{(?P<labels>.*)\}\s+(?P<value>\S+)(?:\s+\d+)?"
)
_LABEL = re.compile(r'([\w-]+)="((?:[^"\\]|\\.)*)"')


class Usage(NamedTuple):
    """One budget on one broker; an empty user or client id is not part of it. None: not known."""

    broker: int
    user: str
    client_id: str
    key: str
    rate: float | None
    # For how long its clients were throttled on average, of those responses of the last minute that throttled; 0: none.
    throttle_ms: float
    # Of controller mutations: how many may be made at once.
    tokens: float | None = None
    limit: float | None = None
    # For how long a client of it that is throttled now has to wait yet; 0 where none is.
    waits_ms: float = 0.0

    def belongs_to(self, parts: Parts) -> bool:
        """Whether it may be a budget of this entity's; a default stands for everybody."""
        if IP in parts:
            return False
        wanted = ((USER, self.user), (CLIENT_ID, self.client_id))
        return all(parts.get(kind) in (None, name) or not name for kind, name in wanted)


def fetch_usage(admin: Admin) -> list[Usage] | None:
    """What every broker tells; None where not all of them do."""
    from moldau.client.admin import BROKER, ConfigResource
    from moldau.client.errors import ClientError
    from moldau.config.own_keys import METRICS_LISTENER_KEY
    from moldau.facts.share_progress import fetch_page, page_address

    try:
        brokers = {str(broker.id): broker for broker in admin.describe_cluster().brokers}
        resources = [ConfigResource(BROKER, broker_id) for broker_id in brokers]
        configs = admin.describe_configs(resources, names=[METRICS_LISTENER_KEY])
        found: list[Usage] = []
        for resource, outcome in configs.items():
            value = next((entry.value for entry in outcome.get() if entry.name == METRICS_LISTENER_KEY), None)
            address = page_address(value or "", brokers[resource.name])
            text = None if address is None else fetch_page(*address)
            if text is None:
                return None
            found += parse_usage(text, int(resource.name))
    except ClientError:
        return None
    return sorted(
        found, key=lambda row: (-row.waits_ms, -row.throttle_ms, row.user, row.client_id, row.key, row.broker)
    )


def parse_usage(text: str, broker_id: int) -> list[Usage]:
    """The budgets on a page of metrics; lines of other metrics are passed over."""
    values: dict[tuple[str, str, str], dict[str, float]] = {}
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        labels = {name.replace("-", "_"): _unescaped(value) for name, value in _LABEL.findall(found["labels"])}
        if "user" not in labels and "client_id" not in labels:
            continue
        try:
            value = float(found["value"])
        except ValueError:
            continue
        # The names of users are encoded as in Kafka's metrics.
        budget = (unquote(labels.get("user", "")), labels.get("client_id", ""), found[1].replace("_", ""))
        values.setdefault(budget, {})["rate" if found[2] in RATES else found[2]] = value
    return [
        Usage(
            broker_id,
            user,
            client_id,
            KEYS_BY_KIND[kind],
            _known(row.get("rate")),
            _known(row.get("throttle_time")) or 0.0,
            _known(row.get("tokens")),
            _known(row.get("limit")),
            _known(row.get("wait")) or 0.0,
        )
        for (user, client_id, kind), row in sorted(values.items())
    ]


def _known(value: float | None) -> float | None:
    return None if value is None or isnan(value) else value


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)


def usage_json(used: list[Usage] | None) -> list[dict[str, object]] | None:
    return None if used is None else [row._asdict() for row in used]


def print_usage(used: list[Usage] | None) -> None:
    if used is None:
        print_note("What is used is known where every broker has a page of metrics: moldau.metrics.listener.")
        return
    if not used:
        click.echo("Nobody with a quota has sent anything lately.")
        return
    throttled = any(row.waits_ms > 0 or row.throttle_ms > 0 for row in used)
    click.echo("Throttled clients come first." if throttled else "Nobody is throttled.")
    print_table(
        ("BROKER", "USER", "CLIENT ID", "QUOTA", "USES", "LIMIT", "WAITS", "THROTTLED"),
        [
            [
                row.broker,
                row.user or "(all)",
                row.client_id or "(all)",
                row.key,
                "-" if row.rate is None else value_text(row.key, row.rate),
                "-" if row.limit is None else value_text(row.key, row.limit),
                time_cell(row.waits_ms),
                time_cell(row.throttle_ms),
            ]
            for row in used
        ],
        right=("BROKER", "USES", "LIMIT", "WAITS", "THROTTLED"),
    )


def time_cell(duration_ms: float) -> object:
    return Styled(f"{duration_ms:,.0f} ms", fg="red") if duration_ms > 0 else "-"
