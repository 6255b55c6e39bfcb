"""Asks the brokers of a pipeline whether they are there before Spark starts, which takes a minute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moldau.client import config as client_settings
from moldau.client.admin.topics import TopicAdmin
from moldau.client.errors import ClientError
from moldau.client.wiring import wired
from moldau.lake.errors import LakeError
from moldau.lake.pipeline import Pipeline, TopicSink, TopicSource
from moldau.spark.options import OptionError, client_config

# How long a broker may take; one that is being started is waited for.
TIMEOUT_MS = 5_000
FIRST_CONTACT_MS = 2_000


def ask_brokers(pipeline: Pipeline) -> list[str]:
    """The topics that are read and not there; raises LakeError if brokers cannot be reached."""
    missing: list[str] = []
    for options, topics in _clusters(pipeline):
        there = ask_topics(options)
        missing += [name for name in topics if name not in there]
    return missing


def ask_topics(options: Mapping[str, str]) -> Sequence[str]:
    """The topics there are at the brokers that kafka.* options name; LakeError where nobody responds."""
    try:
        chosen = client_config(options, client_settings.ADMIN)
    except OptionError as error:
        raise LakeError(str(error)) from None
    settings = {**chosen, "default.api.timeout.ms": str(TIMEOUT_MS), "request.timeout.ms": str(TIMEOUT_MS)}
    try:
        with TopicAdmin(config=wired(settings, first_contact_ms=FIRST_CONTACT_MS)) as admin:
            return [topic.name for topic in admin.list_topics()]
    except ClientError as error:
        where = chosen["bootstrap.servers"]
        raise LakeError(f"No broker responds at {where} (bootstrap.servers): {error.message}") from None


def _clusters(pipeline: Pipeline) -> Iterable[tuple[dict[str, str], list[str]]]:
    """The kafka.* options of each cluster, and the topics that are read there by name."""
    common = {f"kafka.{name}": value for name, value in pipeline.kafka.items()}
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for item in (*pipeline.sources, *pipeline.sinks):
        if not isinstance(item, TopicSource | TopicSink):
            continue
        given = {**common, **item.options}
        options = {name: value for name, value in given.items() if name.lower().startswith("kafka.")}
        topics = found.setdefault(tuple(sorted(options.items())), [])
        if isinstance(item, TopicSource) and item.topic:
            topics += [name.strip() for name in item.topic.split(",")]
    return [(dict(options), topics) for options, topics in found.items()]
