"""How an action is asked: for whom, with which values, and what is written down of it; and the table of all actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from moldau.actions.paging import PAGE_ROWS, PAGE_ROWS_MAX, Page, page_of
from moldau.actions.refusals import Refused
from moldau.client.errors import ClientError

if TYPE_CHECKING:
    from moldau.actions.audit import Audit
    from moldau.actions.viewer import Viewer

T = TypeVar("T")

# What is shown of one key or value before somebody asks for all of it.
PREVIEW_CHARS = 4096
Handler = Callable[["Call"], Awaitable[object]]


class Call:
    """One question: its values by name, and the viewer that it is asked for."""

    def __init__(
        self, viewer: Viewer, body: Mapping[str, Any] | None = None, preview_chars: int = PREVIEW_CHARS
    ) -> None:
        self.viewer = viewer
        self.body: dict[str, Any] = dict(body or {})
        self.preview_chars = preview_chars
        # What a change is made to, and what it is, for the audit log.
        self.target = ""
        self.details: object = None

    def given(self, name: str, default: object = None) -> Any:
        """The value as it was given."""
        return self.body.get(name, default)

    def text(self, name: str, default: str | None = None) -> str:
        value = self.given(name, default)
        if not isinstance(value, str):
            raise Refused(f"{name} is missing, or is not a text.")
        return value

    def number(self, name: str, default: int | None = None, lowest: int = 0, highest: int = 2**63 - 1) -> int:
        """A whole number."""
        value: Any = self.given(name, default)
        try:
            number = int(value)
        except (TypeError, ValueError):
            raise Refused(f"{name} is missing, or is not a whole number.") from None
        if isinstance(value, bool | float) or not lowest <= number <= highest:
            raise Refused(f"{name} must be a whole number from {lowest} to {highest}, not {value}.")
        return number

    def optional_number(self, name: str, lowest: int = 0) -> int | None:
        given = self.given(name)
        return None if given is None or given == "" else self.number(name, lowest=lowest)

    def flag(self, name: str) -> bool:
        return self.given(name) in (True, "true", "1")

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        value = self.given(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Refused(f"{name} is not a list of texts.")
        return value

    def page_of(self, rows: Iterable[T], *, name: Callable[[T], str], key: Callable[[T], Any] | None = None) -> Page:
        """The page of a list that search, descending, page, size and skip of this question choose."""
        return page_of(
            rows,
            name=name,
            search=self.text("search", ""),
            key=key,
            descending=self.flag("descending"),
            page=self.number("page", 0),
            size=self.number("size", PAGE_ROWS, 1, PAGE_ROWS_MAX),
            skip=self.optional_number("skip"),
        )


class Action(NamedTuple):
    """One action: where pages ask for it, who carries it out, and what it changes; None: nothing."""

    path: str
    method: str
    handler: Handler
    change: str | None = None


def reading(path: str, handler: Handler) -> Action:
    """Changes nothing; a few values choose what it shows."""
    return Action(path, "GET", handler)


def asking(path: str, handler: Handler) -> Action:
    """Changes nothing either: its question is longer than an address may be, or a preview."""
    return Action(path, "POST", handler)


def changing(path: str, change: str, handler: Handler) -> Action:
    """Changes something, where changes are allowed; tried or done, it is in the audit log."""
    return Action(path, "POST", handler, change)


async def carry_out_change(call: Call, change: str, handler: Handler, audit: Audit, user: str, address: str) -> object:
    """Carries out a change, and writes down what came of it."""
    error: str | None = "failed"
    try:
        found = await handler(call)
        error = None
        return found
    except (ClientError, Refused) as failed:
        error = f"{failed.name}: {failed.message}"
        raise
    finally:
        audit.note(user, address, change, call.target, call.details, error)
