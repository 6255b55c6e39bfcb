"""An answer that cannot be encoded closes its connection and disturbs nobody else."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.primitives import Writer
from tests.unit.node.world import NodeWorld


class Unsendable(CreateTopicsResponse):
    def encode(self, writer: Writer, version: int) -> None:
        raise ValueError("a bug")


def test_an_answer_that_fails_after_the_commit_does_not_stop_the_node() -> None:
    world = NodeWorld().start()
    create = world.node.metadata.submit

    def submit(verb, done, now_ms=None):  # type: ignore[no-untyped-def]
        create(verb, lambda _, done_ms: done(Unsendable(), done_ms), now_ms)

    world.node.metadata.submit = submit  # type: ignore[method-assign]
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    asked = world.send(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
    world.node.metadata.submit = create  # type: ignore[method-assign]
    world.run(200)
    assert asked.reply.done and asked.reply.parts is None and asked.reply.close_connection
    assert world.produce("t").error_code == errors.NONE
