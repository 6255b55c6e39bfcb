"""Readers of a simulated cluster that ask for committed records only, or for all: they filter as Moldau's client does.

What arrives is given to the client's own fetcher, which leaves out what was aborted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.fetch.fetcher import Fetcher
from moldau.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition
from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.list_offsets_response import ListOffsetsResponse
from moldau.protocol.primitives import Message
from moldau.sim.cluster.client import NOBODY, ClusterClient
from moldau.sim.cluster.consumer import FETCH_VERSION, LATEST, LIST_OFFSETS_VERSION, NO_EPOCH, TRANSIENT_ERRORS
from moldau.sim.kernel.world import Violation
from moldau.sim.transactions.ledger import ABORT, COMMIT, Place

if TYPE_CHECKING:
    from moldau.sim.transactions.world import TransactionWorld

FETCH_BYTES = 1 << 20
RECORDS_AT_ONCE = 100
LEADERS_ONLY, ANYBODY = 1.0, 0.6


class PartitionReader:
    """Reads one partition from some offset on; whoever owns it asks again and again."""

    def __init__(self, client: ClusterClient, place: Place, topic_id: bytes, isolation: int, leaders: float) -> None:
        self.client = client
        self.rng = client.rng
        self.place = place
        self._topic_id = topic_id
        self._isolation = isolation
        self._leaders = leaders
        self._fetcher = Fetcher(isolation, FETCH_BYTES, FETCH_BYTES, True)
        partition = TopicPartition(*place)
        self._fetcher.assign([partition])
        self._state = self._fetcher.partitions[partition]
        self.busy = False
        # Whoever is in a hurry takes all there is at once.
        self.hurries = False

    @property
    def position(self) -> int:
        return self._state.position or 0

    def seek(self, offset: int) -> None:
        self._fetcher.seek(self._state, offset)

    def take(self, limit: int) -> list[ConsumerRecord]:
        return self._fetcher.take(limit)

    def fetch(self) -> None:
        """Asks for what comes next, unless that is being asked."""
        if self.busy or not self._state.empty:
            return
        known = self.client.leadership(self._topic_id, self.place[1])
        if known is None or known.leader == NOBODY:
            self.client.refresh()
            return
        node_id = known.leader if self.rng.random() < self._leaders else self.rng.choice(known.replicas)
        asked = self._state.fetch_offset
        row = FetchPartition(
            partition=self.place[1],
            current_leader_epoch=known.epoch if node_id == known.leader else NO_EPOCH,
            fetch_offset=asked,
            partition_max_bytes=FETCH_BYTES if self.hurries else self.rng.choice((1, 500, FETCH_BYTES)),
        )
        request = FetchRequest(
            max_wait_ms=self.rng.choice((0, 50, 200)),
            min_bytes=1,
            isolation_level=self._isolation,
            session_epoch=-1,
            topics=[FetchTopic(topic_id=self._topic_id, partitions=[row])],
        )
        self.busy = True
        self.client.ask(node_id, request, FETCH_VERSION, lambda response: self._on_fetched(asked, response))

    def _on_fetched(self, asked: int, response: Message | None) -> None:
        self.busy = False
        if not isinstance(response, FetchResponse) or response.error_code != errors.NONE:
            self.client.refresh()
            return
        row = response.responses[0].partitions[0]
        name = f"{self.place[0]}-{self.place[1]}"
        if row.error_code == errors.OFFSET_OUT_OF_RANGE and self._leaders < LEADERS_ONLY:
            return  # a follower may be behind
        if row.error_code not in (errors.NONE, *TRANSIENT_ERRORS):
            raise Violation(f"a fetch is answered: {name} at {asked}: {errors.error_name(row.error_code)}")
        if row.error_code != errors.NONE:
            self.client.refresh()
            return
        self._fetcher.on_partition(self._state, asked, row)
        if self._isolation == READ_COMMITTED and self._state.fetch_offset > max(asked, row.last_stable_offset):
            raise Violation(
                f"nothing above the last stable offset is served: {name} up to {self._state.fetch_offset},"
                f" stable is {row.last_stable_offset}"
            )


class SimReader:
    """A consumer without a group: reads one partition for a while, then another."""

    def __init__(self, setting: TransactionWorld, name: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.name = name
        self.client = ClusterClient(setting, name)
        self.rng = self.client.rng
        self.isolation = READ_COMMITTED if self.rng.random() < 0.7 else READ_UNCOMMITTED
        self.leaders = self.rng.choice((LEADERS_ONLY, LEADERS_ONLY, ANYBODY))
        self.reader: PartitionReader | None = None
        self.start = 0
        self.seen: list[tuple[int, bytes]] = []
        self.latest_seen = 0
        self.listing = False
        self.world.schedule(self.rng.randint(0, 100), self.tick)

    def tick(self) -> None:
        if self.setting.finished:
            return
        self.world.schedule(self.rng.randint(20, 120), self.tick)
        if self.reader is None or self.rng.random() < 0.03:
            self._choose()
        reader = self.reader
        if reader is None:
            return
        for record in reader.take(RECORDS_AT_ONCE):
            self._on_record(reader.place, record)
        if self.rng.random() < 0.15:
            self._list_latest(reader)
        else:
            reader.fetch()

    def _choose(self) -> None:
        """Another partition, from its start; what was read of this one is checked at the end."""
        self.close()
        topics = self.setting.model.present()
        if not topics:
            return
        topic = self.rng.choice(topics)
        place = (topic.name, self.rng.randrange(len(topic.partitions)))
        self.reader = PartitionReader(self.client, place, topic.topic_id, self.isolation, self.leaders)
        self.start = 0 if self.rng.random() < 0.7 else self.rng.randint(0, self.setting.read_up_to.get(place, 0))
        self.reader.seek(self.start)
        self.latest_seen = 0

    def close(self) -> None:
        if self.reader is not None and self.isolation == READ_COMMITTED:
            self.setting.readings.append((self.reader.place, self.start, self.reader.position, self.seen))
        self.seen = []
        self.reader = None

    def _on_record(self, place: Place, record: ConsumerRecord) -> None:
        value, offset = bytes(record.value or b""), int(record.offset)
        where = f"{place[0]}-{place[1]} offset {offset}"
        attempt = self.setting.ledger.attempt_of(value, where)
        self.setting.read_up_to[place] = max(offset + 1, self.setting.read_up_to.get(place, 0))
        self.setting.fetched_records += 1
        if self.isolation == READ_COMMITTED:
            self.seen.append((offset, value))
            if attempt.wanted != COMMIT or ABORT in (attempt.told, attempt.decided):
                raise Violation(f"no aborted record is read: {where}, {attempt!r}")
            attempt.was_read = True

    def _list_latest(self, reader: PartitionReader) -> None:
        known = self.client.leadership(self.setting.topic_id(reader.place[0]), reader.place[1])
        if self.listing or known is None or known.leader == NOBODY:
            return
        row = ListOffsetsPartition(reader.place[1], known.epoch, LATEST)
        request = ListOffsetsRequest(-1, self.isolation, [ListOffsetsTopic(reader.place[0], [row])])
        self.listing = True
        self.client.ask(
            known.leader, request, LIST_OFFSETS_VERSION, lambda response: self._on_latest(reader, known.epoch, response)
        )

    def _on_latest(self, reader: PartitionReader, epoch: int, response: Message | None) -> None:
        self.listing = False
        if not isinstance(response, ListOffsetsResponse) or response.topics[0].partitions[0].error_code != errors.NONE:
            self.client.refresh()
            return
        offset = response.topics[0].partitions[0].offset
        if reader is not self.reader:
            return
        if offset < self.latest_seen:
            name = f"{reader.place[0]}-{reader.place[1]}"
            raise Violation(f"what a client saw as latest never shrinks: {name} {offset} after {self.latest_seen}")
        self.latest_seen = offset
