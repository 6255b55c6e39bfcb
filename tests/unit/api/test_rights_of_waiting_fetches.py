"""Rights of a fetch that waits are those it had when it came, as in Kafka; what it did not know then stays unknown."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.security.rights import READ, TOPIC
from tests.sim.worlds import IS_COMPILED
from tests.unit.api.test_rights import ANNA, RightsWorld
from tests.unit.node.world import batch, produce_request

PLENTY = 1 << 20
VERSION = 13


@pytest.fixture
def world() -> RightsWorld:
    """Two topics with records in closed segments that are not in memory, of which anna may read one."""
    world = RightsWorld().start()
    for name in ("open", "secret"):
        assert world.create(name) == errors.NONE
        fill(world, name)
    assert world.leave()
    world.stop()
    world.start()
    world.add(TOPIC, "open", READ)
    return world


def fill(world: RightsWorld, name: str) -> None:
    world.become("User:admin")
    for _ in range(10):
        world.ask(produce_request(name, 0, batch(world.now_ms, 3, bytes(100))), 9)
    partition = world.node.replicas.find(name, 0)
    assert partition is not None and partition.log is not None
    partition.log.roll(world.now_ms)


def fetch(world: RightsWorld, *names: str, offset: int = 0, **fields: Any) -> FetchRequest:
    ids = [world.node.image.topics_by_name[name].topic_id for name in names]
    row = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=PLENTY)
    topics = [FetchTopic(topic_id=topic_id, partitions=[row]) for topic_id in ids]
    values: dict[str, Any] = {"max_wait_ms": 5000, "min_bytes": 1, "max_bytes": PLENTY, "session_epoch": -1}
    return FetchRequest(topics=topics, **{**values, **fields})


def told(world: RightsWorld, response: FetchResponse) -> dict[str, tuple[int, bool]]:
    """By name: the error, and whether there were records."""
    names = {topic.topic_id: name for name, topic in world.node.image.topics_by_name.items()}
    return {
        names[topic.topic_id]: (row.error_code, row.records is not None and row.records.size > 0)
        for topic in response.responses
        for row in topic.partitions
    }


ALL_OF_IT = (errors.NONE, True)
REFUSED = (errors.TOPIC_AUTHORIZATION_FAILED, False)


@pytest.mark.skipif(IS_COMPILED, reason="compiled classes cannot be changed, so no topic can be hidden from them")
def test_a_topic_that_becomes_known_while_a_fetch_waits_is_not_read_without_a_right(
    world: RightsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another fetch of the same session finds the name; nobody has asked for the waiting one whether it may read it."""
    hidden = world.node.image.topics_by_name["secret"].topic_id
    replicas = type(world.node.replicas)
    real = replicas.topic_name
    world.become(ANNA)
    with monkeypatch.context() as patch:
        patch.setattr(replicas, "topic_name", lambda one, known: None if known == hidden else real(one, known))
        opened = world.ask(fetch(world, "open", "secret", offset=30, session_epoch=0, max_wait_ms=0), VERSION)
        assert opened.session_id != 0
        world.disk.memory.cold_chance = 1.0
        in_session = {"session_id": opened.session_id, "offset": 0}
        waiting = world.send(fetch(world, "open", "secret", session_epoch=1, **in_session), VERSION)
        assert not waiting.reply.done
    second = world.send(fetch(world, "open", "secret", session_epoch=2, **in_session), VERSION)
    world.run(2000)
    assert told(world, second.response)["secret"] == REFUSED
    assert told(world, waiting.response) == {"open": ALL_OF_IT, "secret": (errors.UNKNOWN_TOPIC_ID, False)}


def test_a_right_that_is_taken_away_counts_for_the_next_fetch(world: RightsWorld) -> None:
    acl_id = world.ids.to_bytes(16, "big")
    world.become(ANNA)
    waiting = world.send(fetch(world, "open", offset=30), VERSION)
    assert not waiting.reply.done
    anna = world.context
    world.forget(acl_id)
    fill(world, "open")
    world.run(100)
    assert told(world, waiting.response) == {"open": ALL_OF_IT}
    world.context = anna
    assert told(world, world.ask(fetch(world, "open"), VERSION)) == {"open": REFUSED}


def test_a_right_that_is_given_counts_for_the_next_fetch(world: RightsWorld) -> None:
    world.disk.memory.cold_chance = 1.0
    world.become(ANNA)
    waiting = world.send(fetch(world, "open", "secret"), VERSION)
    assert not waiting.reply.done
    world.add(TOPIC, "secret", READ)
    world.run(2000)
    assert told(world, waiting.response) == {"open": ALL_OF_IT, "secret": REFUSED}
    after = world.send(fetch(world, "open", "secret"), VERSION)
    world.run(2000)
    assert told(world, after.response) == {"open": ALL_OF_IT, "secret": ALL_OF_IT}
