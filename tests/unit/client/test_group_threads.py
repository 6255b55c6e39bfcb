"""The gate and the heartbeat thread: one inside at a time, the user first, and nobody locked out by the user's code."""

from __future__ import annotations

import threading
import time

from moldau.client.group.gate import Gate
from moldau.client.group.heartbeat import HeartbeatThread
from tests.pace import patience, wait_until

PATIENCE_S = patience(5)


def test_whoever_wants_in_wakes_the_one_inside() -> None:
    woken = threading.Event()
    gate = Gate(woken.set)
    assert gate.try_enter() and not gate.wanted
    entered = threading.Event()

    def user() -> None:
        with gate:
            entered.set()

    thread = threading.Thread(target=user)
    thread.start()
    assert woken.wait(PATIENCE_S)
    assert gate.wanted and not entered.is_set()
    gate.__exit__()
    assert entered.wait(PATIENCE_S)
    thread.join()
    assert not gate.wanted


def test_the_heartbeat_thread_stays_out_while_the_user_is_inside() -> None:
    gate = Gate(lambda: None)
    found: list[bool] = []
    with gate, gate:
        thread = threading.Thread(target=lambda: found.append(gate.try_enter()))
        thread.start()
        thread.join()
    assert found == [False]


def test_others_come_in_while_the_users_own_code_runs() -> None:
    """However deep the user is inside, and not any more afterwards."""
    gate = Gate(lambda: None)
    found: list[bool] = []

    def try_it() -> None:
        entered = gate.try_enter()
        found.append(entered)
        if entered:
            gate.__exit__()

    with gate, gate:
        with gate.left():
            for _ in range(2):
                thread = threading.Thread(target=try_it)
                thread.start()
                thread.join()
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert found == [True, True, False]


class FakeGroup:
    """Something is due until it was driven three times; a drive waits until it is woken."""

    def __init__(self) -> None:
        self.driven = 0
        self.busy = True
        self.woken = threading.Event()

    def drive(self, timeout_ms: int) -> None:
        self.driven += 1
        self.woken.wait(timeout_ms / 1000)
        self.woken.clear()

    def start(self) -> tuple[Gate, HeartbeatThread]:
        gate = Gate(self.woken.set)
        thread = HeartbeatThread(gate, self.drive, lambda: self.busy, lambda: 1_000, "test-heartbeat")
        thread.start()
        return gate, thread


def test_the_thread_drives_while_nobody_else_does() -> None:
    group = FakeGroup()
    gate, thread = group.start()
    wait_until(lambda: group.driven > 0)
    start = time.monotonic()
    for _ in range(20):
        with gate:
            before = group.driven
            time.sleep(0.001)
            assert group.driven == before
    # The user never waits for the thread's own waiting to end.
    assert time.monotonic() - start < PATIENCE_S
    wait_until(lambda: group.driven > before)
    group.busy = False
    wait_until(lambda: not group.woken.is_set())
    thread.stop()


def test_an_error_does_not_end_the_thread_and_stop_does() -> None:
    group = FakeGroup()

    def failing(timeout_ms: int) -> None:
        group.driven += 1
        raise ValueError("some trouble")

    group.drive = failing  # type: ignore[method-assign]
    _, thread = group.start()
    wait_until(lambda: group.driven >= 2)
    thread.stop()
    driven = group.driven
    time.sleep(0.05)
    assert group.driven == driven
