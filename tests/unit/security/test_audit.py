"""The audit log has Kafka's form and levels, and nobody can flood it or forge a line of it."""

from __future__ import annotations

import logging

import pytest

from moldau.security import audit
from moldau.security.authorizer import DEFAULT_DENY, SUPER_USER, Decision
from moldau.security.rights import READ, TOPIC, WRITE


def tell(
    log: audit.Audit,
    decision: Decision = DEFAULT_DENY,
    name: str = "orders",
    principal: str = "User:alice",
    is_filter: bool = False,
    now_ms: int = 0,
) -> None:
    if log.wants(decision.is_allowed, is_filter, now_ms):
        log.tell(
            decision,
            principal,
            "127.0.0.1",
            WRITE if decision is DEFAULT_DENY else READ,
            TOPIC,
            name,
            api_name="Produce",
            count=2,
            is_filter=is_filter,
            now_ms=now_ms,
        )


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="kafka.authorizer.logger")
    return caplog


def test_a_refusal_is_told_as_kafka_tells_it(lines: pytest.LogCaptureFixture) -> None:
    tell(audit.Audit())
    line = (
        "Principal = User:alice is Denied operation = WRITE from host = 127.0.0.1 on resource = "
        "Topic:LITERAL:orders for request = Produce with resourceRefCount = 2 based on rule DefaultDeny"
    )
    assert [(record.levelname, record.getMessage()) for record in lines.records] == [("INFO", line)]


def test_what_is_allowed_is_told_at_debug_and_filters_at_trace(lines: pytest.LogCaptureFixture) -> None:
    log = audit.Audit()
    tell(log, SUPER_USER)
    tell(log, is_filter=True)
    assert lines.records == []
    lines.set_level(logging.DEBUG, logger="kafka.authorizer.logger")
    tell(log, SUPER_USER, now_ms=1)
    tell(log, is_filter=True, now_ms=1)
    assert ["is Allowed operation = READ" in record.getMessage() for record in lines.records] == [True]
    lines.set_level(audit.TRACE, logger="kafka.authorizer.logger")
    tell(log, is_filter=True, now_ms=2)
    assert lines.records[-1].levelno == audit.TRACE


def test_one_who_asks_again_and_again_does_not_fill_the_disk_nor_hide_others(lines: pytest.LogCaptureFixture) -> None:
    log = audit.Audit()
    for _ in range(10_000):
        tell(log)
    assert len(lines.records) == audit.LINES_OF_ONE_MAX
    tell(log, principal="User:bob")
    assert "User:bob" in lines.records[-1].getMessage()
    for number in range(10_000):
        tell(log, principal=f"User:{number}")
    assert len(lines.records) == audit.LINES_MAX
    tell(log, now_ms=1000)
    left_out = log.left_out_total
    assert lines.records[-2].getMessage() == f"{left_out} decisions were left out of this log: too many in a second"
    assert "User:alice" in lines.records[-1].getMessage()


def test_a_name_cannot_forge_a_line(lines: pytest.LogCaptureFixture) -> None:
    tell(audit.Audit(), name="x\nPrincipal = User:root is Allowed\x1b[2J")
    tell(audit.Audit(), name="y" * 30_000)
    for record in lines.records:
        assert record.getMessage().isprintable() and len(record.getMessage()) < 2000
