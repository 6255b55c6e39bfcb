"""The admin client for asyncio: every method of Admin, carried out by a thread beside the event loop and awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any

from moldau.client.admin.client import Admin
from moldau.client.aio_worker import Worker

if TYPE_CHECKING:
    from typing import Unpack

    from moldau.client.metrics.names import Metrics
    from moldau.client.setting_types import AdminArguments

__all__ = ["AsyncAdmin"]


class AsyncAdmin:
    """Every method of Admin, awaited: `await admin.create_topics([...])`. Takes what Admin takes.

    Calls of several tasks are carried out one after the other.
    """

    def __init__(self, bootstrap_servers: str | Iterable[str] | None = None, **more: Unpack[AdminArguments]) -> None:
        self._admin = Admin(bootstrap_servers, **more)
        self._worker = Worker("moldau-aio-admin")

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]: ...

    def metrics(self) -> Metrics:
        """What the client measures of itself; as Admin.metrics()."""
        return self._admin.metrics()

    async def close(self) -> None:
        """Ends all connections, and the thread."""
        if self._worker.closed:
            return
        await self._worker.run(self._admin.close)
        self._worker.close()

    async def __aenter__(self) -> AsyncAdmin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _awaited(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def call(self: AsyncAdmin, *arguments: Any, **more: Any) -> Any:
        return await self._worker.run(partial(method, self._admin, *arguments, **more))

    return call


for _name in dir(Admin):
    if not _name.startswith("_") and _name not in vars(AsyncAdmin):
        setattr(AsyncAdmin, _name, _awaited(getattr(Admin, _name)))
