"""Chance as an argument: a seeded generator in simulation, the system's in a real node."""

from __future__ import annotations

from typing import Protocol


class RandomSource(Protocol):
    """What is needed of `random.Random`."""

    def randrange(self, stop: int, /) -> int: ...

    def randbytes(self, n: int, /) -> bytes: ...
