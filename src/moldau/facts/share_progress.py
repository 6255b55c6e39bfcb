"""How far share groups are: where they start in each partition, what is left to them, what their members hold now.

Kafka's protocol does not tell how many records members hold locks on. A broker of Moldau has that on its page of
metrics, where `moldau.metrics.listener` says so; of all others it is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition
from moldau.config.own_keys import METRICS_LISTENER_KEY, split_address
from moldau.facts.group_lag import fetch_end_offsets

if TYPE_CHECKING:
    from moldau.client.admin import Admin, SharePartitionOffset
    from moldau.client.connection.cluster import Broker
    from moldau.client.results import Outcome

PAGE_SECONDS_MAX = 1.0
ACQUIRED = "moldau_share_partition_acquired_records"
COUNT = "moldau_share_partitions"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("", "0.0.0.0", "::")
_LABELS = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

InFlight = dict[str, dict[TopicPartition, int]]


class ShareRow(NamedTuple):
    """One partition of a share group; None: not known, or (start_offset) that nobody has read from it yet."""

    partition: TopicPartition
    start_offset: int | None
    leader_epoch: int | None
    end_offset: int | None
    lag: int | None
    in_flight: int | None
    error: ClientError | None = None


class Progress(NamedTuple):
    """Of a whole group; None: not known."""

    lag: int | None
    in_flight: int | None


def rows_of_groups(
    admin: Admin, group_ids: Iterable[str], topics: Iterable[str] = ()
) -> dict[str, list[ShareRow] | ClientError]:
    """Every partition that each group has begun with, in order; of these topics, or (none) of all."""
    wanted: dict[str, None] = dict.fromkeys(group_ids)
    of_topics = set(topics)
    found = admin.list_share_group_offsets(wanted) if wanted else {}
    known = {
        (group_id, partition)
        for group_id, outcome in found.items()
        if outcome.error is None
        for partition in outcome.get()
        if not of_topics or partition.topic in of_topics
    }
    ends = fetch_end_offsets(admin, {partition for _, partition in known})
    held = in_flight(admin) if known else None
    rows: dict[str, list[ShareRow] | ClientError] = {}
    for group_id, outcome in found.items():
        if outcome.error is not None:
            rows[group_id] = outcome.error
            continue
        of_group = None if held is None else held.get(group_id, {})
        chosen = [(each, row) for each, row in sorted(outcome.get().items()) if (group_id, each) in known]
        rows[group_id] = [_row(each, row, ends.get(each), of_group) for each, row in chosen]
    return rows


def _row(
    partition: TopicPartition,
    found: Outcome[SharePartitionOffset | None],
    end_offset: int | None,
    held: dict[TopicPartition, int] | None,
) -> ShareRow:
    # A partition that its leader does not even list is one that nobody holds anything of.
    locked = None if held is None else held.get(partition, 0)
    if found.error is not None:
        return ShareRow(partition, None, None, end_offset, None, locked, found.error)
    offset = found.get()
    if offset is None:
        return ShareRow(partition, None, None, end_offset, None, locked)
    return ShareRow(partition, offset.start_offset, offset.leader_epoch, end_offset, offset.lag, locked)


def progress_of(rows: Iterable[ShareRow]) -> Progress:
    """The sums of what is known."""
    chosen = list(rows)
    lags = [row.lag for row in chosen if row.lag is not None]
    held = [row.in_flight for row in chosen if row.in_flight is not None]
    return Progress(sum(lags) if lags else None, sum(held) if held else None)


def progress_of_groups(admin: Admin, group_ids: Iterable[str]) -> dict[str, Progress]:
    rows = rows_of_groups(admin, group_ids)
    return {
        group_id: Progress(None, None) if isinstance(found, ClientError) else progress_of(found)
        for group_id, found in rows.items()
    }


def in_flight(admin: Admin) -> InFlight | None:
    """How many records members hold, by group and partition; None where not every broker tells."""
    from moldau.client.admin import BROKER, ConfigResource

    try:
        brokers = {str(broker.id): broker for broker in admin.describe_cluster().brokers}
        resources = [ConfigResource(BROKER, broker_id) for broker_id in brokers]
        configs = admin.describe_configs(resources, names=[METRICS_LISTENER_KEY])
        pages = []
        for resource, outcome in configs.items():
            value = next((entry.value for entry in outcome.get() if entry.name == METRICS_LISTENER_KEY), None)
            address = page_address(value or "", brokers[resource.name])
            if address is None:
                return None
            pages.append(address)
    except ClientError:
        return None
    found: InFlight = {}
    for address in pages:
        text = fetch_page(*address)
        held = None if text is None else parse_held(text)
        if held is None:
            return None
        for group_id, of_group in held.items():
            known = found.setdefault(group_id, {})
            for partition, count in of_group.items():
                # Two brokers count it while the leader changes: the old one's locks are gone in a moment.
                known[partition] = max(known.get(partition, 0), count)
    return found


def page_address(listener: str, broker: Broker) -> tuple[str, int] | None:
    """Where the page of a broker is to be found from here; None where it has none that can be reached."""
    try:
        host, port = split_address(listener)
    except ValueError:
        return None
    if host in LOOPBACK and broker.host not in LOOPBACK:
        # Whatever listens here is another machine's.
        return None
    return None if port == 0 else (broker.host if host in EVERYWHERE else host, port)


def fetch_page(host: str, port: int, path: str = "/metrics") -> str | None:
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(host, port, timeout=PAGE_SECONDS_MAX)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.read().decode("utf-8", "replace") if response.status == 200 else None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def parse_held(text: str) -> InFlight | None:
    """The numbers of locked records on a page of metrics; None where it does not have them all."""
    found: InFlight = {}
    rows, wanted = 0, None
    for line in text.splitlines():
        if line.startswith(COUNT + " "):
            wanted = int(float(line.rsplit(" ", 1)[1]))
        if not line.startswith(ACQUIRED + "{"):
            continue
        labels = {name: _unescaped(value) for name, value in _LABELS.findall(line)}
        partition = TopicPartition(labels["topic"], int(labels["partition"]))
        found.setdefault(labels["group"], {})[partition] = int(float(line.rsplit(" ", 1)[1]))
        rows += 1
    return found if rows == wanted else None


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)
