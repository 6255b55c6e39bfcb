"""The largest values of the wire's integers, which are Java's."""

from __future__ import annotations

from typing import Final

INT_MAX: Final = 0x7FFFFFFF
LONG_MAX: Final = 0x7FFFFFFFFFFFFFFF
