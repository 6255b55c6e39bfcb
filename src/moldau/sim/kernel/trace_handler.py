"""Warnings of the code under test go into the trace of the world, and an error that nobody expected stops it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from moldau.protocol.errors import KafkaError
from moldau.sim.kernel.world import Violation, World

REBUILDING = "rebuilding the indexes"


class TraceHandler(logging.Handler):
    """Writes warnings of the node into the trace, and stops the world where the node met an error it did not expect."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self.world = world

    def emit(self, record: logging.LogRecord) -> None:
        self.world.note(f"log: {record.getMessage()}")
        if str(record.msg).startswith(REBUILDING):
            for host in self.world.hosts.values():
                host.disk.watch.on_rebuild()
        if record.exc_info is not None and not isinstance(record.exc_info[1], (OSError, KafkaError)):
            raise Violation(f"no request meets an error that nobody expected: {record.exc_info[1]!r}") from (
                record.exc_info[1]
            )


@contextmanager
def traced(world: World) -> Iterator[None]:
    """While this lasts, what is logged belongs to this world."""
    handler = TraceHandler(world)
    logger = logging.getLogger("moldau")
    propagate = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
