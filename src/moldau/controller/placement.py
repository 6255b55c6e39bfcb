"""Where the replicas of new partitions go: rotation over the brokers, racks interleaved, fenced brokers last.

As Kafka's StripedReplicaPlacer does it: a round has as many partitions as there are unfenced brokers, and the leaders
of a full round are all different. The first round starts at a random broker of the sorted list, later rounds
begin with a new random order. With racks, a partition's replicas take one rack after the other, and so do the leaders.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.protocol import errors
from moldau.records.random_source import RandomSource


@dataclass(frozen=True, slots=True)
class UsableBroker:
    broker_id: int
    rack: str | None
    fenced: bool


def shuffle(items: list[int], rng: RandomSource) -> None:
    for i in range(len(items) - 1, 0, -1):
        j = rng.randrange(i + 1)
        items[i], items[j] = items[j], items[i]


class BrokerRing:
    """Brokers in an order that each use begins one later; a new random order begins when all were first once."""

    def __init__(self, brokers: list[int], rng: RandomSource) -> None:
        self.brokers = sorted(brokers)
        self._rng = rng
        self._offset = rng.randrange(len(brokers)) if brokers else 0
        self._epoch = 0
        self._index = 0

    def next(self, epoch: int) -> int:
        """The next broker for the partition number `epoch` of this placement; -1 when this partition has all."""
        if not self.brokers:
            return -1
        if self._epoch != epoch:
            self._epoch = epoch
            self._index = 0
            self._offset = (self._offset + 1) % len(self.brokers)
        if self._index >= len(self.brokers):
            return -1
        broker = self.brokers[(self._index + self._offset) % len(self.brokers)]
        self._index += 1
        return broker

    def shuffle(self) -> None:
        shuffle(self.brokers, self._rng)


class Rack:
    """The brokers of one rack, unfenced before fenced."""

    def __init__(self, rng: RandomSource, brokers: list[UsableBroker]) -> None:
        self.unfenced = BrokerRing([b.broker_id for b in brokers if not b.fenced], rng)
        self.fenced = BrokerRing([b.broker_id for b in brokers if b.fenced], rng)

    def next(self, epoch: int) -> int:
        unfenced = self.unfenced.next(epoch)
        return unfenced if unfenced != -1 else self.fenced.next(epoch)

    def shuffle(self) -> None:
        self.unfenced.shuffle()
        self.fenced.shuffle()


class RackRing:
    """All racks; the leaders of successive partitions begin at one rack after the other."""

    def __init__(self, rng: RandomSource, brokers: list[UsableBroker]) -> None:
        self._names = sorted({broker.rack or "" for broker in brokers})
        by_rack = {name: [b for b in brokers if (b.rack or "") == name] for name in self._names}
        self._racks = [Rack(rng, by_rack[name]) for name in self._names]
        self._order = list(range(len(self._racks)))
        self._rng = rng
        self.total = len(brokers)
        self.unfenced = sum(1 for broker in brokers if not broker.fenced)
        self._epoch = 0
        self._start = rng.randrange(len(self._racks)) if self._racks else 0

    def place(self, replication_factor: int) -> list[int]:
        if self._epoch == self.unfenced and self.unfenced > 1:
            # Every unfenced broker was a leader once: a new order avoids the same replica sets again.
            self._epoch = 0
            shuffle(self._order, self._rng)
            for rack in self._racks:
                rack.shuffle()
        ring = [self._racks[self._order[(self._start + i) % len(self._racks)]] for i in range(len(self._racks))]
        replicas: list[int] = []
        leading = 0
        while not replicas:
            broker = ring[leading].unfenced.next(self._epoch)
            if broker != -1:
                replicas.append(broker)
            else:
                leading += 1
        # The leader's rack has had its turn, so the first walk around passes over it.
        step = 0
        while len(replicas) < replication_factor:
            if step != leading:
                broker = ring[step % len(ring)].next(self._epoch)
                if broker != -1:
                    replicas.append(broker)
            step += 1
        self._epoch += 1
        self._start += 1
        return replicas


def place_replicas(
    brokers: list[UsableBroker], partitions: int, replication_factor: int, rng: RandomSource
) -> list[list[int]]:
    """The replicas of each new partition; the first of each is its preferred leader."""
    ring = RackRing(rng, brokers)
    if ring.unfenced == 0 and brokers:
        raise errors.KafkaError(
            errors.INVALID_REPLICATION_FACTOR,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        )
    if replication_factor > ring.total:
        raise errors.KafkaError(
            errors.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only {ring.total} "
            "broker(s) are registered or some brokers have all their log directories cordoned.",
        )
    return [ring.place(replication_factor) for _ in range(partitions)]
