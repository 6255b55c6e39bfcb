"""Random transactional producers on one node, with crashes, successors, and requests that come late or twice."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.records_data import MemoryRecords
from tests.unit.api.transaction_client import (
    Producer,
    batch,
    end_offsets,
    group_offset,
    read,
    transactional_world,
)

SEEDS = 25
STEPS = 60
TIMEOUT_MS = 10_000
PARTITIONS = 3


class Attempt:
    """One transaction as its client knows it."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.values: list[tuple[int, bytes]] = []
        self.has_offset = False
        self.outcome = "open"


class Worker:
    """A transactional id with the producer that has it now; those before it are zombies whose requests come late."""

    def __init__(self, story: Story, number: int) -> None:
        self.story = story
        self.name = f"id{number}"
        self.version = story.rng.choice([1, 2])
        self.attempts: list[Attempt] = []
        self.late: list[Callable[[], None]] = []
        self.renew()

    def renew(self) -> None:
        """The client dies and comes back."""
        if self.attempts and self.attempts[-1].outcome == "open":
            self.attempts[-1].outcome = "lost"
        self.producer = Producer(self.story.world, self.name, self.version)
        for _ in range(50):
            if self.producer.init(TIMEOUT_MS) == 0:
                self.begin()
                return
            self.story.world.run(40)
        raise AssertionError(f"{self.name} cannot begin")

    def begin(self) -> None:
        self.attempts.append(Attempt(len(self.attempts) + 1))

    def write(self) -> None:
        attempt, partition = self.attempts[-1], self.story.rng.randrange(PARTITIONS)
        value = f"{self.name}/{attempt.offset}/{len(attempt.values)}".encode()
        producer = self.producer
        sequence = producer.sequences.get(("t", partition), 0)
        self.keep_write(producer.producer_id, producer.epoch, sequence, partition, value)
        if self.version < 2 and producer.add(partition) != [0]:
            self.give_up()
        elif producer.write(partition, value) == 0:
            attempt.values.append((partition, value))
        else:
            self.give_up()

    def keep_write(self, producer_id: int, epoch: int, sequence: int, partition: int, value: bytes) -> None:
        """The network has a copy of the request, which it may deliver at any time."""
        world, version = self.story.world, 12 if self.version >= 2 else 9
        sender = Producer(world, self.name, self.version)
        sender.producer_id, sender.epoch = producer_id, epoch
        data = batch(world.now_ms, sender, sequence, [value])
        row = PartitionProduceData(index=partition, records=MemoryRecords(data, 0, len(data)))
        request = ProduceRequest(self.name, -1, 1000, [TopicProduceData(name="t", partition_data=[row])])
        self.late.append(lambda: world.ask(request, version))

    def commit_offset(self) -> None:
        if self.producer.commit_offset(f"group of {self.name}", self.attempts[-1].offset) == 0:
            self.attempts[-1].has_offset = True
        else:
            self.give_up()

    def end(self, committed: bool) -> None:
        attempt, producer, world = self.attempts[-1], self.producer, self.story.world
        if not attempt.values and not attempt.has_offset:
            return
        if self.version >= 2:
            request = EndTxnRequest(self.name, producer.producer_id, producer.epoch, not committed)
            # Of the other kind: a client may give up on a commit and abort, and the abort may come first or last.
            self.late.append(lambda: world.ask(request, 5))
        for _ in range(20):
            code = producer.end(committed)
            if code != errors.CONCURRENT_TRANSACTIONS:
                break
            world.run(40)
        if code == 0:
            attempt.outcome = "committed" if committed else "aborted"
            self.begin()
        else:
            self.give_up()

    def give_up(self) -> None:
        """The epoch was fenced, or the transaction has timed out."""
        self.attempts[-1].outcome = "lost"
        self.renew()


class Story:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = transactional_world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
        self.workers = [Worker(self, number) for number in range(3)]

    def step(self) -> None:
        worker = self.rng.choice(self.workers)
        what = self.rng.randrange(100)
        if what < 50:
            worker.write()
        elif what < 60:
            worker.commit_offset()
        elif what < 78:
            worker.end(self.rng.random() < 0.6)
        elif what < 82:
            worker.renew()
        elif what < 92 and worker.late:
            self.rng.choice(worker.late)()
        elif what < 96:
            self.world.disk.process_crash()
            self.world.events.clear()
            self.world.start()
        else:
            self.world.run(self.rng.choice([20, 200, 3000, 12_000]))

    def check(self) -> None:
        self.world.run(TIMEOUT_MS + 5000)
        seen = [read(self.world, index) for index in range(PARTITIONS)]
        everything = [value for values in seen for value in values]
        assert len(everything) == len(set(everything)), "something was written twice"
        for index in range(PARTITIONS):
            stable, end = end_offsets(self.world, index)
            assert stable == end, "a transaction hangs"
        for worker in self.workers:
            self.check_worker(worker, seen, set(everything))

    def check_worker(self, worker: Worker, seen: list[list[bytes]], everything: set[bytes]) -> None:
        counted = -1
        for attempt in worker.attempts:
            found = [value in seen[index] for index, value in attempt.values]
            if attempt.outcome == "committed":
                assert all(found), f"a part of {worker.name}/{attempt.offset} is lost"
                counted = attempt.offset if attempt.has_offset else counted
            else:
                # Whoever lost track before the end was never told to commit.
                assert not any(found), f"{worker.name}/{attempt.offset} was not committed, and is read"
            mine = {one for one in everything if one.startswith(f"{worker.name}/{attempt.offset}/".encode())}
            assert mine <= {value for _, value in attempt.values}, "a write that was refused is read"
        assert group_offset(self.world, f"group of {worker.name}") == (0, counted)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_transactions_are_all_or_nothing_whatever_happens(seed: int) -> None:
    story = Story(seed)
    for _ in range(STEPS):
        story.step()
    story.check()
