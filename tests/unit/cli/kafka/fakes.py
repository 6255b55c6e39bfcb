"""A scripted admin client: methods that return what a test lays down, and remember what they were asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class FakeAdmin:
    """Each keyword is a method: its value, the exception that it raises, or a function of its arguments."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.connected: list[tuple[Any, ...]] = []

    def connect(self, *where: Any, **more: Any) -> FakeAdmin:
        self.connected.append(where)
        return self

    def __enter__(self) -> FakeAdmin:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self.answers:
            raise AttributeError(name)

        def method(*arguments: Any, **named: Any) -> Any:
            self.calls.append((name, arguments, named))
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer(*arguments, **named) if callable(answer) else answer

        return method
