"""What one user sees of the cluster: clients that act for them, and the results of a moment ago.

Without logins all browsers are the same viewer; with logins each session has one of its own, because what a broker
shows depends on who asks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from moldau.actions.broker_absences import BrokerAbsences
from moldau.actions.cached_result import CachedResult
from moldau.actions.clients import Clients
from moldau.actions.rates import Rates
from moldau.actions.scope import EVERYTHING, Scope
from moldau.actions.topic_facts import AllTopics, facts_of_all
from moldau.client.admin import Admin, ClusterDescription, GroupListing, QuorumInfo
from moldau.client.errors import ClientError
from moldau.client.offsets import LATEST, READ_UNCOMMITTED
from moldau.client.results import OffsetAndTimestamp, Outcome, TopicPartition
from moldau.facts.cluster import describe_brokers

STREAMS_MAX = 8
WATCH_S = 5.0
# Who has not asked for anything for so long is not looking.
LOOKING_S = 120.0
OFFSETS_PER_REQUEST = 2_000


@dataclass(frozen=True)
class BrokersAndQuorum:
    """The brokers, and the quorum or why it is not known."""

    cluster: ClusterDescription
    quorum: QuorumInfo | None
    quorum_error: ClientError | None


@dataclass(frozen=True)
class AllGroups:
    """All groups that could be listed, and the errors of brokers that did not list theirs."""

    groups: list[GroupListing]
    errors: dict[int, ClientError]


class Viewer:
    """One user's clients and results."""

    def __init__(
        self,
        settings: Mapping[str, Mapping[str, object]],
        credentials: Mapping[str, object] | None = None,
        scope: Scope = EVERYTHING,
        *,
        client_id: str = "moldau-console",
        looks_again: bool = True,
    ) -> None:
        """scope: the topics and groups that are there for this viewer.

        looks_again: who asks will ask again soon, as pages do, and may be told what was true a moment ago.
        """
        self.clients = Clients(settings, credentials, client_id)
        self.scope = scope
        self.broker_absences = BrokerAbsences()
        waits = not looks_again
        self.cluster: CachedResult[BrokersAndQuorum] = CachedResult(self._load_cluster, 1.0, 5.0, waits)
        self.topics: CachedResult[AllTopics] = CachedResult(self._load_topics, 1.0, 10.0, waits)
        self.groups: CachedResult[AllGroups] = CachedResult(self._load_groups, 1.0, 10.0, waits)
        self.sizes: CachedResult[dict[tuple[str, int, int], int]] = CachedResult(self._load_sizes, 5.0, 30.0, waits)
        self.rates = Rates(self._load_ends)
        # The timestamp of the record at an offset never changes.
        self.record_times: dict[tuple[TopicPartition, int], int] = {}
        self.streams = asyncio.Semaphore(STREAMS_MAX)
        self._looked_at = time.monotonic()
        self._watch: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Somebody asks for something: the brokers are watched for a while, to know since when one is gone."""
        self._looked_at = time.monotonic()
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._watch_brokers())

    async def _watch_brokers(self) -> None:
        try:
            while time.monotonic() - self._looked_at < LOOKING_S:
                try:
                    await self.cluster.get()
                except ClientError:
                    pass  # pages tell it themselves
                await asyncio.sleep(WATCH_S)
        finally:
            self._watch = None

    async def close(self) -> None:
        """Ends everything that acts for this user."""
        if self._watch is not None:
            self._watch.cancel()
        await self.rates.close()
        await self.clients.close()

    async def _load_cluster(self) -> BrokersAndQuorum:
        def work(admin: Admin) -> BrokersAndQuorum:
            cluster = describe_brokers(admin)
            try:
                return BrokersAndQuorum(cluster, admin.describe_metadata_quorum(), None)
            except ClientError as error:
                return BrokersAndQuorum(cluster, None, error)

        found = await self.clients.ask(work)
        active = [broker.id for broker in found.cluster.brokers if broker.id not in found.cluster.fenced]
        self.broker_absences.note(active, time.time_ns() // 1_000_000)
        return found

    async def _load_topics(self) -> AllTopics:
        def work(admin: Admin) -> AllTopics:
            return facts_of_all(topic for topic in admin.list_topics() if self.scope.has_topic(topic.name))

        return await self.clients.ask_of_all(work)

    async def _load_groups(self) -> AllGroups:
        listing = await self.clients.ask(lambda admin: admin.list_groups())
        return AllGroups([group for group in listing.found if self.scope.has_group(group.group_id)], listing.errors)

    async def _load_sizes(self) -> dict[tuple[str, int, int], int]:
        """Bytes by topic, partition and broker, of all that brokers tell."""
        return await self.sizes_of(None)

    async def sizes_of(self, partitions: Iterable[TopicPartition] | None) -> dict[tuple[str, int, int], int]:
        """The same of some partitions alone."""
        cluster = (await self.cluster.get()).cluster
        active = [broker.id for broker in cluster.brokers if broker.id not in cluster.fenced]
        wanted = None if partitions is None else list(partitions)

        def work(admin: Admin) -> dict[tuple[str, int, int], int]:
            found: dict[tuple[str, int, int], int] = {}
            for broker_id, outcome in admin.describe_log_dirs(active, wanted).items():
                if outcome.error is not None:
                    continue
                for directory in outcome.get():
                    for replica in directory.replicas:
                        if not replica.is_future:
                            found[replica.partition.topic, replica.partition.partition, broker_id] = replica.size
            return found

        return await self.clients.ask(work)

    async def _load_ends(self) -> dict[TopicPartition, int]:
        known = await self.topics.get()
        led = known.led_partitions(known.topics)
        found: dict[TopicPartition, int] = {}
        for start in range(0, len(led), OFFSETS_PER_REQUEST):
            wanted = dict.fromkeys(led[start : start + OFFSETS_PER_REQUEST], LATEST)
            outcomes = await self.clients.ask_of_all(partial(_list_offsets, wanted))
            found.update({each: outcome.get().offset for each, outcome in outcomes.items() if outcome.error is None})
        return found

    async def offsets_at(
        self, partitions: Iterable[TopicPartition], when: int, isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, int]:
        """The offsets at a time or special value, of those partitions that tell."""
        wanted = dict.fromkeys(partitions, when)
        if not wanted:
            return {}
        outcomes = await self.clients.ask(lambda admin: admin.list_offsets(wanted, isolation))
        return {each: found.get().offset for each, found in outcomes.items() if found.error is None}


def _list_offsets(
    wanted: Mapping[TopicPartition, int], admin: Admin
) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
    return admin.list_offsets(wanted)
