"""Who fetches what this broker follows: which connection to which leader serves which partition.

Kafka: ReplicaFetcherManager.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.config.broker_config import BrokerConfig
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import EndPoint
from moldau.node.fetcher import Fetcher, FetcherContext, FetcherSettings, fetch_version
from moldau.node.outbox import Outbox
from moldau.records.clocks import NEVER_MS
from moldau.replication.follower import Follower
from moldau.replication.partition import Partition
from moldau.replication.throttle import ReplicationQuota
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager


def fetcher_number(topic: str, index: int, fetchers: int) -> int:
    """Which of the connections to a leader serves a partition; the hash is Java's, as in Kafka."""
    if fetchers == 1:
        return 0
    value = 0
    for char in topic:
        value = (31 * value + ord(char)) & 0xFFFFFFFF
    value = (31 * value + index) & 0x7FFFFFFF
    return value % fetchers


class Fetchers:
    """All fetchers of a broker: which leader serves which followed partition."""

    def __init__(self, config: BrokerConfig, logs: LogManager, outbox: Outbox, broker_epoch: Callable[[], int]) -> None:
        self.settings = FetcherSettings()
        self.settings.read(config)
        self.logs = logs
        self.listener = config.inter_broker_listener_name
        self.quota = ReplicationQuota(
            config.get_int("replication.quota.window.num"),
            config.get_int("replication.quota.window.size.seconds") * 1000,
        )
        self.context = FetcherContext(self.settings, outbox, broker_epoch, self.quota)
        self.fetcher_of = self.context.fetcher_of
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._endpoints: dict[int, EndPoint] = {}

    @property
    def on_deadline(self) -> Callable[[int], None] | None:
        """Told when `poll` must be called earlier than it said."""
        return self.context.wake_at

    @on_deadline.setter
    def on_deadline(self, wake_at: Callable[[int], None] | None) -> None:
        self.context.wake_at = wake_at

    def __len__(self) -> int:
        return len(self.fetcher_of)

    def all(self) -> list[Fetcher]:
        return list(self._fetchers.values())

    def follower(self, topic_id: bytes, index: int) -> Follower | None:
        key = (topic_id, index)
        fetcher = self.fetcher_of.get(key)
        return None if fetcher is None else fetcher.members[key]

    # Following and leaving

    def follow(self, partition: Partition, leader: int, leader_epoch: int) -> None:
        """Fetches the partition from this leader; a higher epoch of the same leader begins anew."""
        key = (partition.topic_id, partition.index)
        fetcher = self._fetcher(leader, fetcher_number(partition.topic, partition.index, self.settings.fetchers))
        current = self.fetcher_of.get(key)
        if current is not None and current is not fetcher:
            self.leave(partition)
        follower = fetcher.members.get(key)
        if follower is None:
            follower = Follower(partition, self.logs)
        elif current is fetcher and follower.partition is partition and follower.leader_epoch == leader_epoch:
            return
        # One that was left a moment ago is still known to the leader's session: it goes on under the same key.
        follower.partition = partition
        if self.fetcher_of.get(key) is not fetcher:
            self.fetcher_of[key] = fetcher
            fetcher.followed += 1
        follower.begin(leader_epoch)
        fetcher.add(follower)

    def update_config(self, config: BrokerConfig) -> None:
        """With another number of fetchers each partition goes to the one that is its own now."""
        before = self.settings.fetchers
        self.settings.read(config)
        if self.settings.fetchers == before:
            return
        for key, fetcher in list(self.fetcher_of.items()):
            follower = fetcher.members[key]
            self.follow(follower.partition, fetcher.leader, follower.leader_epoch)

    def leave(self, partition: Partition) -> None:
        """Does not fetch it any more."""
        key = (partition.topic_id, partition.index)
        fetcher = self.fetcher_of.pop(key, None)
        if fetcher is not None:
            fetcher.followed -= 1
            fetcher.remove(fetcher.members[key])

    def _fetcher(self, leader: int, number: int) -> Fetcher:
        fetcher = self._fetchers.get((leader, number))
        if fetcher is None:
            fetcher = self._fetchers[(leader, number)] = Fetcher(leader, number, self.context)
            fetcher.move_to(self._endpoints.get(leader))
        return fetcher

    def apply_image(self, image: MetadataImage) -> None:
        """Where brokers are reached, and what they understand."""
        self.settings.fetch_version = fetch_version(image.metadata_version)
        endpoints: dict[int, EndPoint] = {}
        for broker_id, broker in image.brokers.items():
            endpoint = broker.end_points.get(self.listener)
            if endpoint is not None:
                endpoints[broker_id] = endpoint
        self._endpoints = endpoints
        for fetcher in self._fetchers.values():
            fetcher.move_to(endpoints.get(fetcher.leader))

    # Turn by turn

    def on_durable(self, flushed: Log, now_ms: int) -> None:
        """A flush is over: a fetcher that waited for it goes on."""
        key = (flushed.topic_id, flushed.partition)
        fetcher = self.fetcher_of.get(key)
        if fetcher is not None and key in fetcher.flushing and flushed.flush_target <= flushed.recovery_point:
            fetcher.poll(now_ms)

    def on_released(self, released: Log, now_ms: int) -> None:
        """A truncation is on the disk: the log is fetched for again, with whatever else is due."""
        key = (released.topic_id, released.partition)
        fetcher = self.fetcher_of.get(key)
        if fetcher is not None:
            fetcher.ask_again(fetcher.members[key])
            self.context.wake(now_ms)

    def poll(self, now_ms: int) -> int:
        """Sends what is due; returns when to call again at the latest."""
        deadline_ms = NEVER_MS
        unused: list[Fetcher] = []
        for fetcher in self._fetchers.values():
            deadline_ms = min(deadline_ms, fetcher.poll(now_ms))
            if fetcher.followed == 0:
                unused.append(fetcher)
        for fetcher in unused:
            fetcher.close()
            del self._fetchers[(fetcher.leader, fetcher.number)]
        return deadline_ms

    def close(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self.fetcher_of.clear()
