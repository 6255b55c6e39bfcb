"""A broker as tests handle it: the process, the door before it, and the faults that befall only this one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from moldau.testing.faults import CUT, DELAY, FAIL, HANG, LOSE, Fault
from moldau.testing.ports import HeldPort
from moldau.testing.process import START_TIMEOUT_MS, NodeProcess

if TYPE_CHECKING:
    from moldau.testing.proxy import Door, Proxy


class FaultMethods:
    """Faults on the way between clients and brokers; each returns a Fault that ends with its `with`, or with `heal()`.

    `api` is a name such as "Produce" or a key, `error` a name such as "NOT_LEADER_OR_FOLLOWER" or a code. `client_id`
    is a pattern ("billing-*") of the clients it concerns; without it, all of them.
    """

    def _faulty(self) -> tuple[Proxy, list[Door]]:
        raise NotImplementedError

    def fail_next(self, api: str | int, error: str | int, times: int | None = 1, client_id: str | None = None) -> Fault:
        """Refuses the next requests of an API with an error; `times=None` refuses all until the fault ends.

        Requests that would change something never reach the broker.
        """
        from moldau.testing.error_responses import check_can_fail, find_api, find_error

        found, code = find_api(api), find_error(error)
        check_can_fail(found)
        _check_times(times)
        what = f"{found.name} fails with {error}"
        return self._befall(
            Fault(FAIL, what, apis=frozenset([found.key]), client_id=client_id, times=times, error=code)
        )

    def lose_next_response(self, api: str | int, times: int | None = 1, client_id: str | None = None) -> Fault:
        """Lets the broker do what the next requests of an API ask for, and cuts the connection before the response."""
        from moldau.testing.error_responses import find_api

        found = find_api(api)
        _check_times(times)
        what = f"a response to {found.name} is lost"
        return self._befall(Fault(LOSE, what, apis=frozenset([found.key]), client_id=client_id, times=times))

    def delay(
        self,
        delay_ms: int,
        api: str | int | None = None,
        times: int | None = None,
        client_id: str | None = None,
    ) -> Fault:
        """Every request, or those of one API, arrives delay_ms later."""
        from moldau.testing.error_responses import find_api

        if delay_ms < 0:
            raise ValueError("a delay cannot be negative")
        _check_times(times)
        found = None if api is None else find_api(api)
        what = f"{'every request' if found is None else found.name} is delayed by {delay_ms} ms"
        apis = None if found is None else frozenset([found.key])
        return self._befall(Fault(DELAY, what, apis=apis, client_id=client_id, times=times, delay_ms=delay_ms))

    def cut(self, client_id: str | None = None) -> Fault:
        """Closes the connections of clients, and their new ones as soon as they come."""
        return self._befall(Fault(CUT, f"{client_id or 'every client'} is cut off", client_id=client_id))

    def hang(self, client_id: str | None = None) -> Fault:
        """Bytes of clients neither arrive nor come back, as in a network that lost its way; connections stay open."""
        return self._befall(Fault(HANG, f"{client_id or 'every client'} gets no response", client_id=client_id))

    def _befall(self, fault: Fault) -> Fault:
        proxy, doors = self._faulty()
        return proxy.add(fault, doors)


def _check_times(times: int | None) -> None:
    if times is not None and times < 1:
        raise ValueError("a fault happens at least once; times=None is until it ends")


class Node(FaultMethods):
    """One broker of a cluster."""

    def __init__(self, node_id: int, process: NodeProcess, held: list[HeldPort]) -> None:
        """held: the ports of the door, of the listener behind it, of the direct one, of the controllers."""
        self.node_id = node_id
        self.port = held[0].port
        """Where clients connect."""
        self._process = process
        self._held = held
        self._door: Door | None = None

    def attach(self, proxy: Proxy) -> None:
        """Its door will be one of this proxy's."""
        self._door = proxy.door(self._held[0], self._held[0].host, self._held[1].port)

    @property
    def pid(self) -> int | None:
        """The broker's process; None where it does not run."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether its process runs, paused or not."""
        return self._process.is_running

    @property
    def is_paused(self) -> bool:
        """Whether `pause()` stopped its clock."""
        return self._process.is_paused

    @property
    def log(self) -> str:
        """What the broker has written to its log so far."""
        return self._process.log()

    @property
    def log_file(self) -> Path:
        """Where its log is written."""
        return self._process.log_file

    def begin_start(self) -> None:
        """For the cluster: starts the process without waiting for it."""
        for held in self._held[1:]:
            held.let_use()
        self._process.begin_start()

    def finish_start(self, timeout_ms: int) -> None:
        """For the cluster: waits until the broker is ready, then lets clients in."""
        self._process.wait_until_ready(timeout_ms)
        assert self._door is not None
        self._door.open()

    def start(self, timeout_ms: int = START_TIMEOUT_MS) -> None:
        """Starts it again after `stop()` or `kill()`, on the same ports and with the same data."""
        if not self.is_running:
            self._process.kill()  # what is left of one that ended by itself
            self.begin_start()
            self.finish_start(timeout_ms)

    def stop(self) -> None:
        """Stops it in order, as an operator does."""
        self._process.stop()
        self._shut()

    def kill(self) -> None:
        """Ends it at once, as `kill -9` does."""
        self._process.kill()
        self._shut()

    def pause(self) -> None:
        """Stops its clock, as a machine that hangs: connections stay open and there are no responses."""
        self._process.pause()

    def resume(self) -> None:
        """Lets it go on after `pause()`."""
        self._process.resume()

    def restart(self, hard: bool = False) -> None:
        """Stops and starts it; `hard` kills it instead."""
        if hard:
            self.kill()
        else:
            self.stop()
        self.start()

    def _shut(self) -> None:
        if self._door is not None:
            self._door.shut()

    def _faulty(self) -> tuple[Proxy, list[Door]]:
        assert self._door is not None
        return self._door.proxy, [self._door]

    def __repr__(self) -> str:
        state = "paused" if self.is_paused else "running" if self.is_running else "not running"
        return f"<broker {self.node_id} on port {self.port}, {state}>"
