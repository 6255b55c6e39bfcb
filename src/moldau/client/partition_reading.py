"""The parts that read partitions, made together from a consumer's settings: for Consumer, and for a task of Spark.

Each of them needs some of the others; whoever reads partitions in a way of their own takes them from here, by name.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.client.config import ClientConfig
from moldau.client.connection.cluster import Cluster
from moldau.client.fetch.fetcher import Fetcher
from moldau.client.fetch.positions import Positions
from moldau.client.fetch.requests import FetchRequests, FetchSettings
from moldau.client.metrics.reading import ReadMeter
from moldau.client.offsets import READ_COMMITTED, READ_UNCOMMITTED


class PartitionReading(NamedTuple):
    """What is kept of partitions, where reading stands in them, and the requests that bring more."""

    # isolation.level, as requests have it.
    isolation: int
    fetcher: Fetcher
    positions: Positions
    fetches: FetchRequests

    @staticmethod
    def from_settings(
        cluster: Cluster,
        settings: ClientConfig,
        *,
        reset_policy: str | None = None,
        fetch_bytes_max: int | None = None,
        partition_bytes_max: int | None = None,
    ) -> PartitionReading:
        """settings: a consumer's. The keywords stand for auto.offset.reset, fetch.max.bytes and
        max.partition.fetch.bytes where they are given."""
        committed = settings.get_text("isolation.level") == "read_committed"
        isolation = READ_COMMITTED if committed else READ_UNCOMMITTED
        policy = settings.get_text("auto.offset.reset") if reset_policy is None else reset_policy
        partition_max = settings.get_int("max.partition.fetch.bytes")
        if partition_bytes_max is not None:
            partition_max = partition_bytes_max
        fetcher = Fetcher(
            isolation,
            settings.get_int("fetch.max.bytes") if fetch_bytes_max is None else fetch_bytes_max,
            partition_max,
            settings.get_bool("check.crcs"),
            ReadMeter(cluster.window),
        )
        timeout_ms = settings.get_int("request.timeout.ms")
        positions = Positions(cluster, fetcher, policy, isolation, timeout_ms)
        fetch_settings = FetchSettings(
            isolation=isolation,
            max_wait_ms=settings.get_int("fetch.max.wait.ms"),
            min_bytes=settings.get_int("fetch.min.bytes"),
            partition_max_bytes=partition_max,
            rack=settings.get_text("client.rack"),
            request_timeout_ms=timeout_ms,
            metadata_age_max_ms=settings.get_int("metadata.max.age.ms"),
            reset_policy=policy,
        )
        fetches = FetchRequests(cluster, fetcher, positions, fetch_settings)
        return PartitionReading(isolation, fetcher, positions, fetches)
