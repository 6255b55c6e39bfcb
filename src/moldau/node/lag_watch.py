"""How far the groups that this broker coordinates are behind, in records and in time, also where others lead.

A scrape says which places of which groups it shows. Where this broker leads, that is known at once: the end is
the high watermark, the time that of the record at the committed offset. Where others lead they are asked, every few
seconds and a few hundred partitions at a time, as long as somebody scrapes; a scrape shows what was answered last and
never waits. Records that are not in memory are read by threads, one at a time; until then the time is not known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.coordinator.group.machine import GroupMachine
from moldau.metadata.image import MetadataImage
from moldau.node.broker_channels import BrokerChannels
from moldau.node.cold_times import ColdTimes, GroupPlace
from moldau.node.coordinators import GroupCoordinator
from moldau.node.latest_offsets import LatestOffsets, Offsets, TopicPartition
from moldau.node.outbox import NoResponse
from moldau.node.record_times import find_in, find_local
from moldau.node.replicas import Replicas
from moldau.protocol.api_table import FETCH
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import CorruptBatch
from moldau.records.clocks import AT_ONCE_MS, NEVER_MS, WallClock
from moldau.storage.disk import ColdRead, Disk

WATCHED_MS: Final = 120_000
"""So long after a scrape others are still asked, for the next one."""
ROUND_MS: Final = 5_000
TURN_MS: Final = 20
PLACES_PER_TURN: Final = 500
TIMES_PER_ROUND: Final = 64
LOOKUPS_PER_SCRAPE: Final = 250
FRESH_MS: Final = 30_000
"""So long the time of an earlier commit of the group stands for that of its last one."""
FETCH_VERSION: Final = 13
NO_SESSION_EPOCH: Final = -1

GroupTopic = tuple[str, str]


class KnownTime:
    """Of the record at a committed offset; `seen_ms` is when that was so."""

    __slots__ = ("committed", "seen_ms", "timestamp_ms")

    def __init__(self, committed: int, timestamp_ms: int, seen_ms: int) -> None:
        self.committed = committed
        self.timestamp_ms = timestamp_ms
        self.seen_ms = seen_ms


class LagWatch:
    """See the module. Times of records and what is compared with them are the wall clock's."""

    def __init__(
        self,
        replicas: Replicas,
        groups: GroupCoordinator,
        latest: LatestOffsets,
        channels: BrokerChannels,
        *,
        disk: Disk,
        wall: WallClock,
        timeout_ms: int,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._latest = latest
        self._channels = channels
        self._disk = disk
        self._wall = wall
        self._timeout_ms = timeout_ms
        self._latest_image = image
        self._image = MetadataImage()
        self.ends: dict[TopicPartition, int] = {}
        """Latest offsets of partitions that others lead."""
        self._times: dict[GroupTopic, dict[int, KnownTime]] = {}
        self._shown: dict[GroupTopic, dict[int, KnownTime]] = {}
        self._remote: dict[GroupPlace, None] = {}
        self._places: dict[TopicPartition, None] = {}
        self._shown_remote: dict[GroupPlace, None] = {}
        self._lookups = self._misses = self._first_lookup = 0
        self._cold = ColdTimes(replicas, disk, self._on_cold_found)
        self._scraped_ms = -WATCHED_MS
        self._next_round_ms = NEVER_MS
        self._unasked: deque[TopicPartition] = deque()
        self._stale: deque[GroupPlace] = deque()
        self._asked_in_round = 0
        self._in_flight: set[GroupPlace] = set()
        self.on_deadline: Callable[[int], None] | None = None

    # What a scrape asks

    def begin_scrape(self) -> None:
        self._shown = {}
        self._shown_remote = {}
        self._misses = self._lookups = 0

    def times_of(self, group_id: str, topic: str) -> dict[int, KnownTime]:
        """What is known, by partition; it is kept for the next scrape."""
        key = (group_id, topic)
        times = self._times.get(key)
        if times is None:
            times = self._times[key] = {}
        self._shown[key] = times
        return times

    def find_seconds(
        self, times: dict[int, KnownTime], place: GroupPlace, committed: int, wall_ms: int
    ) -> float | None:
        """How old the first record is that the group has not committed; None while it is not known. `times` are those
        of the group and topic."""
        known = times.get(place[2])
        if known is None or known.committed != committed:
            found = self._look_up(place, committed, wall_ms)
            if found is not None:
                known = times[place[2]] = found
        if known is None:
            return None
        if known.committed == committed:
            return max(0, wall_ms - known.timestamp_ms) / 1000
        if wall_ms - known.seen_ms > FRESH_MS:
            return None
        return max(0, known.seen_ms - known.timestamp_ms) / 1000

    def note_shown(self, group_id: str, topic: str, index: int) -> None:
        """A row of a partition that somebody else leads."""
        self._shown_remote[(group_id, topic, index)] = None

    def _look_up(self, place: GroupPlace, committed: int, wall_ms: int) -> KnownTime | None:
        """Some for each scrape, and others for the next if they are too many."""
        partition = self._replicas.find(place[1], place[2])
        if partition is None or partition.leader != partition.broker_id:
            return None
        self._misses += 1
        if self._misses <= self._first_lookup or self._lookups >= LOOKUPS_PER_SCRAPE:
            return None
        self._lookups += 1
        disk = self._disk
        disk.refuses_cold = True
        try:
            timestamp_ms = find_local(partition, committed)
        except ColdRead:
            self._cold.add(place, committed)
            return None
        except (KafkaError, CorruptBatch):
            return None
        finally:
            disk.refuses_cold = False
        return KnownTime(committed, timestamp_ms, wall_ms) if timestamp_ms >= 0 else None

    def end_scrape(self, now_ms: int) -> None:
        """What was not shown is forgotten, what was is kept up to date for a while."""
        were_enough = self._first_lookup + self._lookups >= self._misses
        self._first_lookup = 0 if were_enough else self._first_lookup + self._lookups
        self._times = self._shown
        self._remote = self._shown_remote
        self._places = dict.fromkeys((topic, index) for _, topic, index in self._remote)
        self.ends = {place: end for place, end in self.ends.items() if place in self._places}
        self._scraped_ms = now_ms
        if self._remote and self._next_round_ms == NEVER_MS:
            self._next_round_ms = now_ms
        if (self._next_round_ms <= now_ms or self._cold.has_work) and self.on_deadline is not None:
            self.on_deadline(now_ms)

    # Asking others

    def poll(self, now_ms: int) -> int:
        self._cold.look_up()
        if self._next_round_ms == NEVER_MS:
            return NEVER_MS
        if now_ms >= self._next_round_ms:
            if now_ms - self._scraped_ms > WATCHED_MS or not self._remote:
                self._stop()
                return NEVER_MS
            self._next_round_ms = now_ms + ROUND_MS
            self._image = self._latest_image()
            if self._channels.drop_lost(self._image):
                self._in_flight.clear()  # what was asked there gets no response any more
            self._unasked = deque(self._places)
            self._asked_in_round = 0
            if not self._stale:
                self._stale = deque(self._remote)
        if self._unasked:
            self._ask_ends(now_ms)
        elif self._stale and self._asked_in_round < TIMES_PER_ROUND:
            self._ask_times(now_ms)
        else:
            return self._next_round_ms
        return min(self._next_round_ms, now_ms + TURN_MS)

    def _stop(self) -> None:
        self._next_round_ms = NEVER_MS
        self._remote, self._places, self.ends, self._times = {}, {}, {}, {}
        self._stale.clear()

    def _ask_ends(self, now_ms: int) -> None:
        count = min(PLACES_PER_TURN, len(self._unasked))
        places = [self._unasked.popleft() for _ in range(count)]
        self._latest.ask(places, self._image, self._on_ends, now_ms)

    def _on_ends(self, found: Offsets, now_ms: int) -> None:
        for place, end in found.items():
            if isinstance(end, int):
                self.ends[place] = end
            else:
                self.ends.pop(place, None)

    def _ask_times(self, now_ms: int) -> None:
        """One partition in a request: only its first batch is sent whatever its size."""
        for _ in range(min(PLACES_PER_TURN, len(self._stale))):
            if self._asked_in_round >= TIMES_PER_ROUND:
                return
            place = self._stale.popleft()
            committed = self._committed(place)
            end = self.ends.get(place[1:])
            known = self._known(place)
            if committed < 0 or end is None or end <= committed or place in self._in_flight:
                continue
            if known is None or known.committed != committed:
                self._ask_time(place, committed)

    def _known(self, place: GroupPlace) -> KnownTime | None:
        times = self._times.get(place[:2])
        return None if times is None else times.get(place[2])

    def _note_time(self, place: GroupPlace, known: KnownTime) -> None:
        times = self._times.get(place[:2])
        if times is not None:
            times[place[2]] = known

    def _committed(self, place: GroupPlace) -> int:
        shard = self._groups.runtime.shards.get(self._groups.partition_for(place[0]))
        machine = None if shard is None else shard.machine
        if not isinstance(machine, GroupMachine):
            return -1
        committed = machine.state.offsets.find(*place)
        return -1 if committed is None else int(committed.offset)

    def _ask_time(self, place: GroupPlace, committed: int) -> None:
        _, topic, index = place
        known = self._image.topics_by_name.get(topic)
        registration = None if known is None else known.partitions.get(index)
        channel = None if registration is None else self._channels.find(registration.leader, self._image)
        if known is None or channel is None:
            return
        self._asked_in_round += 1
        self._in_flight.add(place)
        wanted = FetchTopic("", known.topic_id, [FetchPartition(index, -1, committed, -1, -1, 1)])
        request = FetchRequest(None, -1, None, 0, 0, 1, 0, 0, NO_SESSION_EPOCH, [wanted], [])
        channel.send(
            FETCH,
            FETCH_VERSION,
            request,
            self._timeout_ms,
            lambda response, now_ms: self._on_time(place, committed, response, now_ms),
        )

    def _on_time(self, place: GroupPlace, committed: int, response: Message | NoResponse, now_ms: int) -> None:
        self._in_flight.discard(place)
        if not isinstance(response, FetchResponse) or place not in self._remote:
            return
        for topic in response.responses:
            for data in topic.partitions:
                records = data.records
                if data.error_code == 0 and isinstance(records, MemoryRecords) and records.size > 0:
                    try:
                        timestamp_ms = find_in(records.to_bytes(), committed)
                    except CorruptBatch:
                        continue
                    if timestamp_ms >= 0:
                        self._note_time(place, KnownTime(committed, timestamp_ms, self._wall.at(now_ms)))

    def _on_cold_found(self, place: GroupPlace, committed: int, timestamp_ms: int) -> None:
        if timestamp_ms >= 0:
            self._note_time(place, KnownTime(committed, timestamp_ms, 0))
        if self._cold.has_work and self.on_deadline is not None:
            self.on_deadline(AT_ONCE_MS)

    def close(self) -> None:
        self._channels.close()
        self._cold.close()
