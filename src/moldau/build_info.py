"""Tells how this Moldau was built: its version, and whether its hot modules are compiled."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import platform

from moldau import __version__

# One module of each compiled area; all compiled modules are built as one group, so they agree.
HOT_MODULES = ("moldau.protocol.primitives", "moldau.records.batch", "moldau.storage.log")


def is_compiled() -> bool:
    """True when every hot module would be loaded from an extension module."""
    return all(_is_extension(name) for name in HOT_MODULES)


def _is_extension(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    origin = spec.origin if spec is not None else None
    return origin is not None and origin.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))


def describe() -> str:
    """The line that `moldau --version` prints."""
    kind = "compiled" if is_compiled() else "interpreted"
    return f"moldau {__version__} ({kind}, {platform.python_implementation()} {platform.python_version()})"
