"""What metrics() gives: a mapping of Kafka's metric names, each with its group and tags, to what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

MetricValue = float | str

CLIENT_ID = "client-id"


class MetricName(NamedTuple):
    """The name of one metric as Kafka has it: `records-lag` of `consumer-fetch-manager-metrics`, with tags.

    tags: pairs of a name and a value, client-id first; then topic and partition, or node-id, where there are any.
    """

    name: str
    group: str
    tags: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        """As Kafka's tools write it."""
        return f"{self.group}:{self.name}:{{{', '.join(f'{tag}={value}' for tag, value in self.tags)}}}"


class Metrics(Mapping[MetricName, MetricValue]):
    """What a client measured, as of one moment; metrics() makes another one.

    `metrics["record-send-total"]` is what the client has in all. Other metrics are found by their tags:
    `metrics.value("records-lag", topic="orders", partition=0)`. Values are numbers, but for the text of app-info.
    """

    def __init__(self, values: Mapping[MetricName, MetricValue]) -> None:
        self._values = values
        # Those that have no tag but client-id.
        self._plain: dict[str, MetricValue] = {}
        for key, value in values.items():
            if len(key.tags) == 1:
                self._plain.setdefault(key.name, value)

    def __getitem__(self, key: MetricName | str) -> Any:
        return self._plain[key] if isinstance(key, str) else self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._plain if isinstance(key, str) else key in self._values

    def __iter__(self) -> Iterator[MetricName]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def find(self, name: str | None = None, group: str | None = None, **tags: object) -> Metrics:
        """Those of this name, of this group and with these tags, `_` for `-` in them; None: of any."""
        wanted = {(tag.replace("_", "-"), str(value)) for tag, value in tags.items()}
        return Metrics(
            {
                key: value
                for key, value in self._values.items()
                if (name is None or key.name == name)
                and (group is None or key.group == group)
                and wanted <= set(key.tags)
            }
        )

    def value(self, name: str, group: str | None = None, **tags: object) -> float:
        """The number of the one metric that has this name and these tags, and besides them no other than client-id.

        Raises KeyError where there is none.
        """
        wanted = {tag.replace("_", "-"): str(value) for tag, value in tags.items()}
        for key, value in self._values.items():
            if key.name != name or (group is not None and key.group != group):
                continue
            if wanted == {tag: text for tag, text in key.tags if tag != CLIENT_ID or CLIENT_ID in wanted}:
                return float(value)
        raise KeyError(name if not tags else f"{name} of {', '.join(f'{tag}={wanted[tag]}' for tag in wanted)}")

    def __repr__(self) -> str:
        return f"<{len(self._values)} metrics of {dict(next(iter(self._values)).tags).get(CLIENT_ID, '?')}>"
