"""What this broker fetches from other leaders, under the names of Kafka's replica fetchers."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.node.fetcher import Fetcher
from moldau.node.fetchers import Fetchers
from moldau.replication.follower import FAILED
from moldau.server.metrics.hosted import BLOCK_SIZE
from moldau.server.metrics.metric import GAUGE, Labels, Metric, meter
from moldau.server.metrics.rates import Rates

MANAGER = "kafka_server_replicafetchermanager"
LAG = "kafka_server_fetcherlagmetrics_consumerlag"
STATS = "kafka_server_fetcherstats"
REPLICA: Labels = (("clientId", "Replica"),)


def following_metrics(fetchers: Fetchers, rows_max: int, rates: Rates, now_s: float) -> Iterator[Metric | None]:
    lag = Metric(LAG, GAUGE, "Records that this broker's copy of a partition is behind its leader's high watermark")
    behind = failed = rows = 0
    slowest: float | None = None
    of_all_bytes = meter(f"{STATS}_bytes", "Bytes of records fetched, by connection to a leader")
    of_all_requests = meter(f"{STATS}_requests", "Fetch requests sent, by connection to a leader")
    for fetcher in fetchers.all():
        client = client_id(fetcher)
        labels: Labels = (("clientId", client), ("brokerHost", fetcher.host), ("brokerPort", str(fetcher.port)))
        of_all_bytes.values[labels] = fetcher.bytes_total
        of_all_requests.values[labels] = fetcher.request_number
        rate = rates.rate(STATS, labels, fetcher.request_number, now_s)
        slowest = rate if slowest is None else min(slowest, rate)
        followers = list(fetcher.members.values())
        for start in range(0, len(followers), BLOCK_SIZE):
            block = followers[start : start + BLOCK_SIZE]
            behind = max(behind, max(one.lag for one in block))
            failed += sum(1 for one in block if one.state == FAILED)
            shown = [one for one in block[: max(0, rows_max - rows)] if one.lag >= 0]
            rows += len(shown)
            lag.add_block(
                [f'topic="{one.partition.topic}",partition="{one.index}"' for one in shown],
                [one.lag for one in shown],
                (("clientId", client),),
            )
            yield None
    for stem, about, value in (
        ("maxlag", "The most records that a followed partition is behind", behind),
        ("minfetchrate", "Requests a second of the fetcher that sends the fewest", slowest or 0.0),
        ("failedpartitionscount", "Followed partitions that are not fetched until their leader changes", failed),
        ("deadthreadcount", "Fetchers that have ended; Moldau's have no threads to lose", 0),
    ):
        metric = Metric(f"{MANAGER}_{stem}", GAUGE, about)
        metric.values[REPLICA] = value
        yield metric
    yield lag
    yield of_all_bytes
    yield of_all_requests


def client_id(fetcher: Fetcher) -> str:
    """As Kafka names the thread that does the same."""
    return f"ReplicaFetcherThread-{fetcher.number}-{fetcher.leader}"
