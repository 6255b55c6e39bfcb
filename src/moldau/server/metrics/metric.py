"""One metric: its name in both spellings, its kind, and its values by labels.

The default names are those that the rules of Strimzi's JMX exporter make of Kafka's beans, for which most dashboards
ask; the other spelling is that of Confluent's. They differ in how meters and percentages end, in the names of a few
beans, and in the case of labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from moldau.config.own_keys import METRICS_SPELLINGS

GAUGE = "gauge"
COUNTER = "counter"

STRIMZI, CONFLUENT = METRICS_SPELLINGS

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
QUANTILE_TEXTS = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")

Labels = tuple[tuple[str, str], ...]

_CONFLUENT_BEANS = (
    ("kafka_server_socket_server_metrics_", "kafka_server_socketservermetrics_"),
    ("kafka_server_raftmetrics_", "kafka_server_raft_metrics_"),
    ("kafka_server_raftchannelmetrics_", "kafka_server_raft_channel_metrics_"),
)
_CONFLUENT_LABELS = {
    "clientSoftwareName": "client_software_name",
    "clientSoftwareVersion": "client_software_version",
    "networkProcessor": "network_processor",
}


class Metric:
    """One name with its values, one for each set of labels.

    Where there are thousands, such as one for each partition, labels come as the text they become (see `label_text`)
    and in blocks: they are then made once for all metrics of a partition, and a block is a turn's work. Names of labels
    in such a text are the same in both spellings; those that differ are in the labels that a whole block has in common.
    """

    def __init__(self, name: str, kind: str, about: str, value: float | None = None, confluent: str = "") -> None:
        self.name = name
        self.kind = kind
        self.about = about
        self.values: dict[Labels, float] = {} if value is None else {(): value}
        self.rows: list[tuple[str, float]] = []
        self.blocks: list[tuple[Labels, str, Sequence[str], Sequence[float]]] = []
        self._confluent = confluent

    def add_block(self, labels: Sequence[str], values: Sequence[float], common: Labels = (), lead: str = "") -> None:
        """As many values as labels; `common` are labels that all of them have, `lead` is how each text begins."""
        if labels:
            self.blocks.append((common, lead, labels, values))

    def spelled(self, spelling: str) -> str:
        if spelling != CONFLUENT:
            return self.name
        name = self._confluent or self.name
        for prefix, other in _CONFLUENT_BEANS:
            if name.startswith(prefix):
                return other + name.removeprefix(prefix)
        return name


def meter(stem: str, about: str, value: float | None = None) -> Metric:
    """What Kafka calls …PerSec: a count that only grows; how fast is the dashboard's business."""
    return Metric(f"{stem}_total", COUNTER, about, value, f"{stem}persec")


def percent(stem: str, about: str, value: float | None = None) -> Metric:
    """What Kafka calls …Percent, which is a fraction between 0 and 1."""
    return Metric(f"{stem}_percent", GAUGE, about, value, f"{stem}percent")


def label_text(labels: Labels, spelling: str = STRIMZI) -> str:
    """As it stands between the braces."""
    if spelling == CONFLUENT:
        return ",".join(f'{_CONFLUENT_LABELS.get(key) or key.lower()}="{escaped(text)}"' for key, text in labels)
    return ",".join(f'{key}="{escaped(text)}"' for key, text in labels)


def escaped(text: str) -> str:
    if "\\" in text or "\n" in text or '"' in text:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return text


def to_text(metrics: Iterable[Metric | None], spelling: str = STRIMZI) -> str:
    """What Prometheus reads."""
    return "".join(metric_text(metric, spelling) for metric in metrics if metric is not None)


def metric_text(metric: Metric, spelling: str = STRIMZI) -> str:
    """Nothing for a metric without a value."""
    return "".join(metric_pieces(metric, spelling))


def metric_pieces(metric: Metric, spelling: str = STRIMZI) -> Iterator[str]:
    """The same in pieces, each of which is soon made."""
    if not metric.values and not metric.rows and not metric.blocks:
        return
    name = metric.spelled(spelling)
    about = metric.about.replace("\\", "\\\\").replace("\n", "\\n")
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {metric.kind}"]
    for labels, value in metric.values.items():
        row = f"{name}{{{label_text(labels, spelling)}}}" if labels else name
        lines.append(f"{row} {value}" if value == value else f"{row} NaN")
    lines += [f"{name}{{{labels}}} {value}" for labels, value in metric.rows]
    yield "\n".join([*lines, ""])
    for common, lead, texts, values in metric.blocks:
        shared = label_text(common, spelling)
        head = f"{name}{{{shared},{lead}" if shared else f"{name}{{{lead}"
        yield block_text(head, texts, values)


def block_text(head: str, texts: Sequence[str], values: Sequence[float]) -> str:
    first = values[0]
    if values.count(first) == len(texts):
        # Very often all are the same, such as the number of replicas: then one join does it.
        end = f"}} {first}\n"
        return head + f"{end}{head}".join(texts) + end
    return "\n".join([*[f"{head}{text}}} {value}" for text, value in zip(texts, values, strict=True)], ""])
