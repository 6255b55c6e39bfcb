"""What a tool is: its name, its words and arguments for agents, who carries it out, and what it changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.actions.calls import Call, Handler, carry_out_change
from moldau.mcp.arguments import NUMBER, Argument
from moldau.mcp.bounds import Limits, Part, bounded

if TYPE_CHECKING:
    from moldau.actions.audit import Audit
    from moldau.actions.viewer import Viewer


class Asked:
    """One call of a tool: its checked arguments, and what serves it."""

    def __init__(
        self,
        viewer: Viewer,
        audit: Audit,
        limits: Limits,
        arguments: dict[str, Any],
        user: str = "",
        address: str = "",
    ) -> None:
        self.viewer = viewer
        self.limits = limits
        self.arguments = arguments
        self._audit = audit
        self._user = user
        self._address = address

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def get(self, name: str) -> Any:
        return self.arguments.get(name)

    def call(self, **values: Any) -> Call:
        """A question to an action; what is None was not said."""
        given = {name: value for name, value in values.items() if value is not None}
        return Call(self.viewer, given, self.limits.chars)

    async def result(self, handler: Handler, **values: Any) -> dict[str, Any]:
        """What an action returns, which is an object."""
        found = await handler(self.call(**values))
        assert isinstance(found, dict)
        return found

    async def change(self, what: str, handler: Handler, **values: Any) -> dict[str, Any]:
        """The same of one that changes something, written down in the audit log."""
        call = self.call(**values)
        found = await carry_out_change(call, what, handler, self._audit, self._user, self._address)
        assert isinstance(found, dict)
        return found

    async def page(self, handler: Handler, rows_max: int | None = None, **values: Any) -> tuple[dict[str, Any], Part]:
        """What an action says of a list that is searched and cut where it is."""
        limit = min(self.get("limit") or self.limits.rows, rows_max or self.limits.rows, self.limits.rows)
        found = await self.result(handler, search=self.get("search"), skip=self["skip"], size=limit, **values)
        for name in ("page", "pages"):
            found.pop(name, None)
        return found, Part("rows", "skip", self["skip"], found["total"])

    def rest(self, name: str, argument: str, rows: list[Any]) -> tuple[list[Any], Part]:
        """The rows behind those that were passed over, of a list that is there as a whole."""
        skipped = min(self[argument], len(rows))
        return rows[skipped:], Part(name, argument, skipped, len(rows))

    def bounded(self, result: dict[str, Any], *parts: Part) -> dict[str, Any]:
        return bounded(result, parts, self.limits)


@dataclass(frozen=True)
class Tool:
    """One tool. writes: it changes something, and is there only where that is allowed."""

    name: str
    title: str
    about: str
    handler: Callable[[Asked], Awaitable[dict[str, Any]]]
    arguments: tuple[Argument, ...] = ()
    writes: bool = False
    destructive: bool = False
    idempotent: bool = False


def skipping(name: str = "skip", what: str = "rows") -> Argument:
    """How one gets on in a long list."""
    about = f"So many {what} are passed over; the result says which number comes next."
    return Argument(name, NUMBER, about, default=0, lowest=0)


LIMIT = Argument("limit", NUMBER, "How many rows at most; the server has a limit of its own.", lowest=1)
