"""The crc32c function without its package, which reads its own metadata: thirty milliseconds at every start."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from collections.abc import Callable


def _load() -> Callable[..., int]:
    package = importlib.util.find_spec("crc32c")
    places = None if package is None else package.submodule_search_locations
    found = None if places is None else importlib.machinery.PathFinder.find_spec("crc32c._crc32c", list(places))
    if found is None or found.loader is None:
        # Another version of the package, which keeps its extension elsewhere.
        from crc32c import crc32c as from_package

        return from_package
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    function: Callable[..., int] = module.crc32c
    return function


crc32c = _load()
