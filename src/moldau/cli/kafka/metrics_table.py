"""What a client measured as Java's tools print it for `--print-metrics`."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from moldau.cli.kafka.java_text import fixed_text

if TYPE_CHECKING:
    from moldau.client.metrics.names import Metrics

# The tools are those of this version.
VERSION = "4.3.1"


def print_metrics(metrics: Metrics) -> None:
    rows = {str(key): VERSION if key.name == "version" else _text(value) for key, value in metrics.items()}
    width = max(map(len, rows))
    print(f"\n{'Metric Name':<{width}}   Value")
    for name in sorted(rows):
        print(f"{name:<{width}} : {rows[name]}")


def _text(value: float | str) -> str:
    if isinstance(value, str | int):
        return str(value)
    return "NaN" if isnan(value) else fixed_text(value, 3)
