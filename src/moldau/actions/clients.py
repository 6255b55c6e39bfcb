"""The clients of one viewer: admin clients in a small pool, consumers for a while, one producer.

The client's classes belong to one thread at a time and block it. Each call is carried out by a thread of a
pool with a client that nobody else has meanwhile, so the event loop waits for none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from moldau.client.admin import Admin
from moldau.client.errors import ClosedError, NetworkError
from moldau.client.wiring import wired

if TYPE_CHECKING:
    from moldau.client.consumer import Consumer
    from moldau.client.producer import Producer
    from moldau.client.results import RecordMetadata

T = TypeVar("T")

# The kinds of clients that settings are given for.
ADMIN = "admin"
CONSUMER = "consumer"
PRODUCER = "producer"

THREADS_MAX = 8
STREAM_THREADS_MAX = 16
# More would let one page with many parts take the broker for itself.
ADMINS_MAX = 3
# A page that waits longer is told that nobody responds, and asks again by itself.
RESPONSE_MS = 10_000
CONNECT_MS = 3_000
# What a consumer keeps in memory at most: pages show a few records, not a stream.
FETCH_BYTES = 4 * 1024 * 1024
PARTITION_FETCH_BYTES = 512 * 1024
CLOSES_MAX = 40
CLOSE_AGAIN_S = 0.25

threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="moldau-actions")
# Live views wait for records most of the time: they must not take the threads that serve pages.
stream_threads = ThreadPoolExecutor(STREAM_THREADS_MAX, thread_name_prefix="moldau-live")


async def in_thread(work: Callable[[], T]) -> T:
    """What blocks, beside the event loop."""
    return await asyncio.get_running_loop().run_in_executor(threads, work)


async def in_stream_thread(work: Callable[[], T]) -> T:
    """The same for live views."""
    return await asyncio.get_running_loop().run_in_executor(stream_threads, work)


_closing: set[asyncio.Task[None]] = set()


def close_later(consumer: Consumer) -> None:
    """Who looked away does not wait; a poll that is under way has its thread for a moment longer."""

    async def close() -> None:
        consumer.wakeup()
        for _ in range(CLOSES_MAX):
            try:
                await in_stream_thread(lambda: consumer.close(0))
                return
            except Exception:
                await asyncio.sleep(CLOSE_AGAIN_S)

    task = asyncio.get_running_loop().create_task(close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)


class _Pool:
    """Clients that nobody uses at the moment, and how many there may be with those in use."""

    def __init__(self, size: int) -> None:
        self.idle: list[Admin] = []
        self.places = asyncio.Semaphore(size)


class Clients:
    """All clients that act for one user."""

    def __init__(
        self,
        settings: Mapping[str, Mapping[str, object]],
        credentials: Mapping[str, object] | None = None,
        client_id: str = "moldau-console",
    ) -> None:
        self._settings = settings
        self._client_id = client_id
        self._credentials = dict(credentials or {})
        self._pool = _Pool(ADMINS_MAX)
        self._for_all = asyncio.Semaphore(1)
        self._producer: Producer | None = None
        self._producer_lock = asyncio.Lock()
        self._closed = False

    def _config(self, kind: str, **more: object) -> dict[str, object]:
        ours = {
            "client.id": self._client_id,
            "request.timeout.ms": RESPONSE_MS,
            "socket.connection.setup.timeout.ms": CONNECT_MS,
            "socket.connection.setup.timeout.max.ms": CONNECT_MS,
        }
        given = {name: value for name, value in self._settings.get(kind, {}).items() if name != "client.id"}
        return {**ours, **given, **{name.replace("_", "."): value for name, value in more.items()}, **self._credentials}

    async def ask(self, work: Callable[[Admin], T]) -> T:
        """Carries out the work with an admin client."""
        return await self._ask(self._pool, work)

    async def ask_of_all(self, work: Callable[[Admin], T]) -> T:
        """The same for work that is about all topics, with a client that forgets them all afterwards."""

        def carry_out() -> T:
            with self._open_admin() as admin:
                return work(admin)

        async with self._for_all:
            if self._closed:
                raise ClosedError("The session has ended.")
            return await in_thread(carry_out)

    async def _ask(self, pool: _Pool, work: Callable[[Admin], T]) -> T:
        async with pool.places:
            if self._closed:
                raise ClosedError("The session has ended.")
            admin = pool.idle.pop() if pool.idle else None
            return await in_thread(lambda: self._carry_out(pool, admin, work))

    def _open_admin(self) -> Admin:
        return Admin(config=wired(self._config(ADMIN, default_api_timeout_ms=RESPONSE_MS), first_contact_ms=0))

    def _carry_out(self, pool: _Pool, admin: Admin | None, work: Callable[[Admin], T]) -> T:
        if admin is None:
            admin = self._open_admin()
        try:
            found = work(admin)
        except NetworkError:
            # What it knew of the cluster may be why: the next call begins with the addresses that were given.
            admin.close()
            raise
        except BaseException:
            self._put_back(pool, admin)
            raise
        self._put_back(pool, admin)
        return found

    def _put_back(self, pool: _Pool, admin: Admin) -> None:
        if self._closed:
            admin.close()
        else:
            pool.idle.append(admin)

    def open_consumer(
        self, isolation: str = "read_uncommitted", partition_bytes: int = PARTITION_FETCH_BYTES
    ) -> Consumer:
        """A consumer without a group, for assigned partitions; to be called and used in threads of the pool."""
        from moldau.client.consumer import Consumer

        config = self._config(
            CONSUMER,
            default_api_timeout_ms=RESPONSE_MS,
            isolation_level=isolation,
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=partition_bytes,
            allow_auto_create_topics=False,
            enable_auto_commit=False,
        )
        config.pop("group.id", None)
        return Consumer(config=wired(config, first_contact_ms=0))

    async def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: list[tuple[str, bytes | None]] | None = None,
    ) -> RecordMetadata:
        """Sends one record and waits until it is delivered."""

        def work() -> RecordMetadata:
            from moldau.client.producer import Producer

            if self._producer is None:
                config = self._config(PRODUCER, delivery_timeout_ms=2 * RESPONSE_MS, max_block_ms=RESPONSE_MS)
                self._producer = Producer(config=wired(config, first_contact_ms=0))
            future = self._producer.send(
                topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers or []
            )
            return future.result(2 * RESPONSE_MS)

        async with self._producer_lock:
            return await in_thread(work)

    async def close(self) -> None:
        """Ends all connections; calls that are under way close theirs when they end."""
        self._closed = True
        idle, self._pool.idle = self._pool.idle, []
        producer, self._producer = self._producer, None

        def work() -> None:
            for admin in idle:
                admin.close()
            if producer is not None:
                producer.close(1_000)

        await in_thread(work)
