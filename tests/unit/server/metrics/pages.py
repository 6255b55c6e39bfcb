"""The page of a node in a test, as values by name and labels; every page that is read is checked on the way."""

from __future__ import annotations

import re
from typing import Any

from moldau.node.node import Node
from moldau.server.metrics.collect import Sources, collect
from moldau.server.metrics.metric import STRIMZI, to_text

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
LINE = re.compile(rf"({NAME})(\{{{LABEL}(?:,{LABEL})*\}})? (?:-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|NaN)")


class Page:
    """One scrape. `page["name", "topic=t"]` is the value of the row with that label."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.values: dict[str, float] = {}
        self.names: list[str] = []
        current = ""
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                current = line.split()[2]
                assert current not in self.names, f"{current} is there twice"
                self.names.append(current)
            elif not line.startswith("#"):
                found = LINE.fullmatch(line)
                assert found is not None, line
                assert found[1] == current, f"{line} is not below its type"
                row, value = line.rsplit(" ", 1)
                assert row not in self.values, f"{row} is there twice"
                self.values[row] = float(value)

    def rows(self, name: str) -> dict[str, float]:
        """Values of a metric, by its labels as they stand in the text."""
        return {
            row.partition("{")[2].removesuffix("}"): value
            for row, value in self.values.items()
            if row.partition("{")[0] == name
        }

    def __getitem__(self, wanted: str | tuple[str, ...]) -> float:
        if isinstance(wanted, str):
            return self.values[wanted]
        name, *labels = wanted
        texts = ['{}="{}"'.format(*label.split("=", 1)) for label in labels]
        found = [value for row, value in self.rows(name).items() if all(text in row for text in texts)]
        assert len(found) == 1, f"{len(found)} rows of {name} with {labels}: {sorted(self.rows(name))[:10]}"
        return found[0]


def page_of(node: Node, now_ms: int, spelling: str = STRIMZI, sources: Sources | None = None, **more: Any) -> Page:
    sources = sources if sources is not None else Sources(node, **more)
    return Page(to_text(collect(sources, now_ms, now_ms / 1000), spelling))
