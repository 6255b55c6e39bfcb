"""Which topics and groups have rows of their own, and how many: users choose their names, and how many there are."""

from __future__ import annotations

import re

from moldau.config.broker_config import BrokerConfig
from moldau.config.own_keys import (
    METRICS_GROUPS_KEY,
    METRICS_GROUPS_MAX_KEY,
    METRICS_PARTITIONS_MAX_KEY,
    METRICS_TOPICS_KEY,
)
from moldau.server.metrics.metric import GAUGE, Metric

TOPICS_MAX = 1000
PARTITIONS, GROUPS, GROUP_PARTITIONS, TOPICS, LAG_SECONDS = (
    "partitions",
    "groups",
    "partitions of groups",
    "topics",
    "lag in seconds",
)


class RowLimits:
    """Of one node, as its settings have them."""

    def __init__(self, config: BrokerConfig) -> None:
        self._topics = re.compile(config.get_str(METRICS_TOPICS_KEY))
        self._groups = re.compile(config.get_str(METRICS_GROUPS_KEY))
        self.partitions_max = config.get_int(METRICS_PARTITIONS_MAX_KEY)
        self.groups_max = config.get_int(METRICS_GROUPS_MAX_KEY)
        self.topics_max = TOPICS_MAX

    def has_topic(self, name: str) -> bool:
        return self._topics.search(name) is not None

    def has_group(self, group_id: str) -> bool:
        return self._groups.search(group_id) is not None


class LeftOut:
    """What one scrape does not show because there is too much of it, or because it is not known yet."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys((PARTITIONS, GROUPS, GROUP_PARTITIONS, TOPICS, LAG_SECONDS), 0)

    def add(self, what: str, count: int) -> None:
        self.counts[what] += count

    def metric(self) -> Metric:
        metric = Metric(
            "moldau_metrics_rows_left_out",
            GAUGE,
            "What has no rows here because there is too much of it, or no value yet",
        )
        for what, count in self.counts.items():
            metric.values[(("what", what),)] = count
        return metric
