"""Waiting: what is returned, what counts as not yet, and what is said when it never came."""

from __future__ import annotations

import asyncio

import pytest

from moldau.testing import WaitTimedOut, wait_for, wait_for_async


def test_what_the_condition_returned_is_returned() -> None:
    answers = iter([None, [], ["there"]])
    assert wait_for(lambda: next(answers)) == ["there"]


def test_an_assertion_is_not_yet_and_anything_else_is_an_error() -> None:
    tries: list[int] = []

    def third_time() -> bool:
        tries.append(1)
        assert len(tries) == 3
        return True

    assert wait_for(third_time)
    with pytest.raises(KeyError):
        wait_for(lambda: {}["missing"])


def test_the_message_says_what_was_waited_for_and_what_was_seen() -> None:
    seen: list[int] = []
    with pytest.raises(WaitTimedOut, match=r"wait_for\(lambda: seen, .*not within 0 ms; at the last look it was \[\]"):
        wait_for(lambda: seen, timeout_ms=0)
    with pytest.raises(AssertionError, match=r"the invoice: not within 0 ms"):
        wait_for(lambda: seen, timeout_ms=0, message="the invoice")


def test_the_same_in_an_event_loop() -> None:
    async def run() -> str:
        ready = asyncio.Event()
        asyncio.get_running_loop().call_later(0.01, ready.set)
        assert await wait_for_async(ready.is_set)

        async def name() -> str:
            return "found"

        with pytest.raises(WaitTimedOut):
            await wait_for_async(lambda: None, timeout_ms=0)
        return await wait_for_async(name)

    assert asyncio.run(run()) == "found"
