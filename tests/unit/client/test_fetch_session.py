"""Fetch sessions: what a request says of the partitions, and what becomes of the session."""

from __future__ import annotations

from moldau.client.fetch.session import FetchSession, Wanted
from moldau.client.results import TopicPartition
from moldau.protocol.messages.fetch_request import FetchRequest

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
ID = bytes(range(16))


def wanted(offset: int, topic_id: bytes = ID) -> Wanted:
    return Wanted(topic_id, offset, 1, 1000)


def ask(session: FetchSession, partitions: dict[TopicPartition, Wanted]) -> tuple[int, int, list[int], list[int]]:
    """Session id, epoch, the partitions named and those forgotten."""
    request = FetchRequest()
    session.fill(request, partitions)
    named = [row.partition for topic in request.topics for row in topic.partitions]
    forgotten = [index for topic in request.forgotten_topics_data for index in topic.partitions]
    return request.session_id, request.session_epoch, named, forgotten


def test_only_changes_are_named_once_there_is_a_session() -> None:
    session = FetchSession()
    assert ask(session, {P0: wanted(0), P1: wanted(0)}) == (0, 0, [0, 1], [])
    session.on_response(77, 0)
    assert ask(session, {P0: wanted(5), P1: wanted(0)}) == (77, 1, [0], [])
    session.on_response(77, 0)
    assert ask(session, {P0: wanted(5)}) == (77, 2, [], [1])
    session.on_response(77, 0)
    assert ask(session, {P0: wanted(5), P1: wanted(3)}) == (77, 3, [1], [])


def test_a_broker_without_sessions_is_told_everything_each_time() -> None:
    session = FetchSession()
    for _ in range(2):
        assert ask(session, {P0: wanted(0)}) == (0, 0, [0], [])
        session.on_response(0, 0)


def test_a_forgotten_session_is_started_anew_and_a_broken_one_replaced() -> None:
    session = FetchSession()
    ask(session, {P0: wanted(0)})
    session.on_response(77, 0)
    ask(session, {P0: wanted(1)})
    session.on_response(0, 70)
    assert ask(session, {P0: wanted(1)}) == (0, 0, [0], [])
    session.on_response(78, 0)
    ask(session, {P0: wanted(2)})
    session.on_response(0, 71)
    assert ask(session, {P0: wanted(2)}) == (78, 0, [0], [])


def test_a_topic_that_was_created_again_starts_the_session_anew() -> None:
    session = FetchSession()
    ask(session, {P0: wanted(0)})
    session.on_response(77, 0)
    assert ask(session, {P0: wanted(0, bytes(16))}) == (77, 0, [0], [])


def test_a_lost_connection_starts_the_session_anew() -> None:
    session = FetchSession()
    ask(session, {P0: wanted(0)})
    session.on_response(77, 0)
    session.reset()
    assert ask(session, {P0: wanted(0)}) == (77, 0, [0], [])
