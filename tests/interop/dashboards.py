"""The table of what dashboards ask for (tests/data/dashboards.txt), and the expressions that are made of its rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).resolve().parents[1] / "data" / "dashboards.txt"
WINDOW = "1m"
SPELLINGS = ("strimzi", "confluent")
EITHER, LEFT_OUT = "either", "left out"
USES = ("gauge", "rate", "delta", "quantile", "choice")
QUANTILE = "0.99"


class Row(NamedTuple):
    """One metric that a dashboard asks for."""

    dashboard: str
    metric: str
    labels: tuple[str, ...]
    use: str
    must_be_positive: bool
    may_be_missing: bool

    @property
    def selector(self) -> str:
        matchers = [matcher(label) for label in self.labels]
        if self.use == "quantile":
            matchers.append(f'quantile="{QUANTILE}"')
        return self.metric + (f"{{{','.join(matchers)}}}" if matchers else "")

    @property
    def expression(self) -> str:
        if self.use in ("rate", "delta"):
            return f"{self.use}({self.selector}[{WINDOW}])"
        return self.selector


def matcher(label: str) -> str:
    name, operator, value = re.fullmatch(r"(\w+)(!?=)?(.*)", label).groups()  # type: ignore[union-attr]
    return f'{name}{operator}"{value}"' if operator else f'{name}!=""'


def sections() -> dict[str, list[list[str]]]:
    """The cells of each line, by the heading that stands above it."""
    found: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in TABLE.read_text().splitlines():
        if line.startswith("== "):
            rows = found.setdefault(line.removeprefix("== ").strip(), [])
        elif line.strip() and not line.startswith("#"):
            rows.append([cell.strip() for cell in line.split("|")])
    return found


def rows(spelling: str) -> list[Row]:
    """Of the dashboards that fit to nodes with `moldau.metrics.names` set so."""
    by_heading = sections()
    return [row_of(cells) for heading in (spelling, EITHER) for cells in by_heading[heading]]


def row_of(cells: list[str]) -> Row:
    dashboard, metric, labels, use = cells
    kind = use.rstrip("+?")
    assert kind in USES, f"{dashboard}: no such use: {use}"
    return Row(dashboard, metric, tuple(labels.split()), kind, use.endswith("+"), use.endswith("?"))


def put_table(page: Path, name: str, lines: list[str]) -> None:
    """Replaces what stands between `<!-- name -->` and `<!-- end of name -->` in a page."""
    text = page.read_text()
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, rest = text.partition(begin)
    assert found and end in rest, f"{page} has no place for {name}"
    page.write_text("".join((before, begin, "\n", *(f"{line}\n" for line in lines), "\n", end, rest.partition(end)[2])))
