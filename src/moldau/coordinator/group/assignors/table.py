"""The assignors by name, and which of them a broker offers (group.consumer.assignors)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.coordinator.group.assignors import range as range_assignor
from moldau.coordinator.group.assignors import uniform
from moldau.coordinator.group.assignors.spec import GroupSpec, Targets

Assignor = Callable[[GroupSpec], Targets]

ASSIGNORS: Final[dict[str, Assignor]] = {
    uniform.NAME: uniform.assign,
    range_assignor.NAME: range_assignor.assign,
}

CLASS_NAMES: Final = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": uniform.NAME,
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": range_assignor.NAME,
}


def offered_assignors(setting: list[str]) -> list[str]:
    """The names in the setting, in order; the Java class names of both stand for them, others are left out."""
    names: list[str] = []
    for entry in setting:
        name = CLASS_NAMES.get(entry, entry)
        if name in ASSIGNORS and name not in names:
            names.append(name)
    return names or list(ASSIGNORS)
