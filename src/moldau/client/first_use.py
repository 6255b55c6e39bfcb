"""Names of a package that are imported when they are first used, so that a program pays only for the part it uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def on_first_use(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """A `__getattr__` for the package: homes has the module of each name."""

    def find(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(home), name)

    return find
