"""Reads the options of a write: those of Spark's Kafka connector, and how records are delivered.

As in options.py, a wrong option is refused on the driver, before anything is written, with what to write instead.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.client import config as client_settings
from moldau.spark.options import OptionError, client_config

AT_LEAST_ONCE = "at-least-once"
EXACTLY_ONCE = "exactly-once"
DECISION_TOPIC = "__moldau_sink_decisions"
ID_PREFIX = "moldau-sink"
# Without two-phase commit a transaction ends by itself after this time; brokers allow no more unless they are told to.
TRANSACTION_TIMEOUT_MS = 15 * 60_000
# How long a write or a commit waits for brokers that are down.
MAX_BLOCK_MS = 120_000

AUTO = "auto"
FAIL = "fail"
IGNORE = "ignore"

_REFUSED_KAFKA = {
    "transactional.id": "the sink names its transactions itself; transactionalIdPrefix is what their names begin with",
    "transaction.two.phase.commit.enable": "write twoPhaseCommit instead",
    "key.serializer": "keys are text or bytes already",
    "value.serializer": "values are text or bytes already",
    "enable.idempotence": "delivery says how records are delivered",
}
_NAMES = (
    "topic",
    "delivery",
    "runId",
    "runBatch",
    "writeTimestamps",
    "decisionTopic",
    "transactionalIdPrefix",
    "twoPhaseCommit",
    "onLostTransactions",
    "checkpointLocation",
    "path",
)
_WORD = re.compile(r"[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True)
class WriteOptions:
    """Everything a write was told. Plain data: pickled to executors."""

    # kafka.* without the prefix, as far as our producer knows them; bootstrap.servers among them.
    producer_config: Mapping[str, str]
    # The same for the admin client and the consumer of the decision topic: addresses and times.
    contact_config: Mapping[str, str]
    topic: str = ""
    delivery: str = AT_LEAST_ONCE
    run_id: str = ""
    # Which batch of the run: a foreachBatch passes the number on that Spark gives it.
    run_batch: int = 0
    with_timestamps: bool = False
    decision_topic: str = DECISION_TOPIC
    id_prefix: str = ID_PREFIX
    two_phase: str = AUTO
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    on_lost: str = FAIL

    @property
    def identity(self) -> str:
        """The same for the same options."""
        configs = sorted(self.producer_config.items())
        topics = (self.delivery, self.decision_topic, self.id_prefix)
        return repr((configs, topics, self.two_phase, self.transaction_timeout_ms, self.on_lost))

    @property
    def exactly_once(self) -> bool:
        return self.delivery == EXACTLY_ONCE


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Checks the options of a write; raises OptionError."""
    given = {str(name).lower(): str(value).strip() for name, value in options.items() if value is not None}
    for name, instead in _REFUSED_KAFKA.items():
        if f"kafka.{name}" in given:
            raise OptionError(f"The option kafka.{name} cannot be set: {instead}.")
    _check_names(given)
    producer = client_config(options, client_settings.PRODUCER)
    producer.setdefault("max.block.ms", str(MAX_BLOCK_MS))
    timeout = producer.pop("transaction.timeout.ms", str(TRANSACTION_TIMEOUT_MS))
    common = set(client_settings.ADMIN) & set(client_settings.CONSUMER) & set(client_settings.PRODUCER)
    delivery = _choice(given, "delivery", (AT_LEAST_ONCE, EXACTLY_ONCE), AT_LEAST_ONCE)
    if delivery == EXACTLY_ONCE and producer.get("acks", "all") not in ("all", "-1"):
        raise OptionError("delivery=exactly-once needs kafka.acks=all: leave kafka.acks out.")
    return WriteOptions(
        producer_config=producer,
        contact_config={name: value for name, value in producer.items() if name in common},
        topic=given.get("topic", ""),
        delivery=delivery,
        run_id=_word(given, "runId", ""),
        run_batch=_run_batch(given),
        with_timestamps=_choice(given, "writeTimestamps", ("true", "false"), "false") == "true",
        decision_topic=_word(given, "decisionTopic", DECISION_TOPIC),
        id_prefix=_word(given, "transactionalIdPrefix", ID_PREFIX),
        two_phase=_choice(given, "twoPhaseCommit", (AUTO, "true", "false"), AUTO),
        transaction_timeout_ms=int(timeout),
        on_lost=_choice(given, "onLostTransactions", (FAIL, IGNORE), FAIL),
    )


def _run_batch(given: Mapping[str, str]) -> int:
    text = given.get("runbatch", "")
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise OptionError(
            f"The option runBatch is {text}: it takes the number that foreachBatch gives with each batch."
        )
    if not given.get("runid"):
        raise OptionError("The option runBatch counts the batches of a run: name the run by runId.")
    return int(text)


def _check_names(given: Mapping[str, str]) -> None:
    """Other options may be a wrapper's; but one that was meant to be ours must not go unnoticed."""
    known = {name.lower(): name for name in _NAMES}
    for name in given:
        near = (
            [] if name in known or name.startswith("kafka.") else difflib.get_close_matches(name, list(known), 1, 0.8)
        )
        if near:
            raise OptionError(f"There is no option {name} for a write: did you mean {known[near[0]]}?")


def _choice(given: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> str:
    value = given.get(name.lower(), "").lower() or default
    if value not in choices:
        raise OptionError(f"The option {name} is {value}: it must be one of {', '.join(choices)}.")
    return value


def _word(given: Mapping[str, str], name: str, default: str) -> str:
    value = given.get(name.lower(), "") or default
    if value and _WORD.fullmatch(value) is None:
        raise OptionError(f"The option {name} is {value}: it takes letters, digits, '.', '_' and '-', up to 200.")
    return value
