"""One metric: its name, its kind, and its values by labels."""

from __future__ import annotations

GAUGE = "gauge"
COUNTER = "counter"

Labels = tuple[tuple[str, str], ...]


class Metric:
    """One name with its values, one for each set of labels."""

    def __init__(self, name: str, kind: str, about: str, value: float | None = None) -> None:
        self.name = name
        self.kind = kind
        self.about = about
        self.values: dict[Labels, float] = {} if value is None else {(): value}
