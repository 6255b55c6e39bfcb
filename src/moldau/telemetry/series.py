"""The numbers that clients pushed, as series for the metrics page: bounded, and gone with the client instance.

A name is made of the metric's, `org.apache.kafka.producer.record.send.total` becomes `producer_record_send_total`; what
is put in front of it keeps clients from speaking in the name of the broker. What was added to a count since the last
push is added up here, so that a counter is a counter.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

from moldau.telemetry.instances import Instance
from moldau.telemetry.otlp_reader import DELTA, GAUGE, Point

SERIES_PER_INSTANCE_MAX: Final = 500
COMMON_PREFIX: Final = "org.apache.kafka."
CLIENT_ID_LABEL: Final = "client_id"
INSTANCE_LABEL: Final = "client_instance_id"

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]")

Labels = tuple[tuple[str, str], ...]
"""Names are what Prometheus takes, each is there once."""


class Family:
    """One name: whether it is a counter, and a value for each instance and its labels.

    A gauge that is not a number, such as the average of nothing, has a place here and is not to be shown.
    """

    def __init__(self, is_counter: bool) -> None:
        self.is_counter = is_counter
        self.values: dict[Labels, float] = {}


class Series:
    """Those of all clients of a broker."""

    def __init__(self, series_max: int) -> None:
        self.series_max = series_max
        self.families: dict[str, Family] = {}
        self.count = 0
        self.left_out_total = 0
        self._of_instance: dict[bytes, dict[tuple[str, Labels], None]] = {}

    def add(self, instance: Instance, point: Point) -> None:
        """A new value of a series, which is there from now on if there is room for it."""
        if point.temporality != GAUGE and not isfinite(point.value):
            self.left_out_total += 1  # it would spoil the sum for good
            return
        name = metric_name(point.name)
        is_counter = point.temporality != GAUGE and point.is_monotonic
        labels = label_names(point.labels, instance)
        family = self.families.get(name)
        if family is not None and family.is_counter != is_counter:
            self.left_out_total += 1
            return
        before = None if family is None else family.values.get(labels)
        if before is None and not self._make_room(instance, name, labels):
            self.left_out_total += 1
            return
        if family is None:
            family = self.families[name] = Family(is_counter)
        family.values[labels] = (before or 0) + point.value if point.temporality == DELTA else point.value

    def forget(self, instance_id: bytes) -> None:
        """The instance has ended, and all that it said with it."""
        for name, labels in self._of_instance.pop(instance_id, ()):
            family = self.families[name]
            del family.values[labels]
            self.count -= 1
            if not family.values:
                del self.families[name]
        assert self.count >= 0

    def of_instance(self, instance_id: bytes) -> int:
        return len(self._of_instance.get(instance_id, ()))

    def _make_room(self, instance: Instance, name: str, labels: Labels) -> bool:
        if self.count >= self.series_max or self.of_instance(instance.instance_id) >= SERIES_PER_INSTANCE_MAX:
            return False
        self._of_instance.setdefault(instance.instance_id, {})[name, labels] = None
        self.count += 1
        assert self.count <= self.series_max
        return True


def metric_name(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name.removeprefix(COMMON_PREFIX))


def label_names(labels: Labels, instance: Instance) -> Labels:
    """With whose they are; what a client says about that itself does not count."""
    found = {label_name(name): value for name, value in labels}
    found[CLIENT_ID_LABEL] = instance.client_id
    found[INSTANCE_LABEL] = instance.text
    return tuple(sorted(found.items()))


def label_name(name: str) -> str:
    """Prometheus keeps names with two underscores in front to itself, and no name begins with a digit."""
    plain = _NOT_IN_NAMES.sub("_", name).lstrip("_")
    return f"_{plain}" if not plain or plain[0].isdigit() else plain
