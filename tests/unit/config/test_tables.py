"""The tables of keys agree with the facts about Kafka, and with themselves."""

import re
from pathlib import Path

import pytest

import moldau
from moldau.config.broker_keys import BROKER_KEYS, PER_LISTENER_SECURITY_KEYS, THREAD_COUNT_KEYS
from moldau.config.client_metrics_keys import CLIENT_METRICS_KEYS
from moldau.config.definitions import TYPE_NAMES, ConfigKeys
from moldau.config.group_keys import GROUP_KEYS
from moldau.config.honoured import (
    HONOURED_BROKER_KEYS,
    HONOURED_CLIENT_METRICS_KEYS,
    HONOURED_GROUP_KEYS,
    HONOURED_QUOTA_KEYS,
    HONOURED_TOPIC_KEYS,
    honoured_broker_keys,
)
from moldau.config.quota_keys import BROKER_QUOTA_KEYS, IP_QUOTA_KEYS, USER_CLIENT_QUOTA_KEYS
from moldau.config.topic_keys import BROKER_UNITS, TOPIC_KEYS

FACTS = Path(__file__).parents[2] / "data" / "kafka-facts" / "settings.txt"

TABLES = {
    "topic": TOPIC_KEYS,
    "broker": BROKER_KEYS,
    "broker-quota (dynamic broker keys only)": BROKER_QUOTA_KEYS,
    "group": GROUP_KEYS,
    "quota-user-client": USER_CLIENT_QUOTA_KEYS,
    "quota-ip": IP_QUOTA_KEYS,
    "client-metrics": CLIENT_METRICS_KEYS,
}


# Of Kafka 4.4: DescribeConfigs lists them where they are set, as 4.3 does not know them.
LATER_KEYS = {
    "topic": {"errors.deadletterqueue.group.enable"},
    "broker": {"errors.deadletterqueue.auto.create.topics.enable", "errors.deadletterqueue.topic.name.prefix"},
    "group": {"errors.deadletterqueue.topic.name", "errors.deadletterqueue.copy.record.enable"},
}


def read_facts() -> dict[str, list[dict[str, str]]]:
    sections: dict[str, list[dict[str, str]]] = {}
    columns: list[str] = []
    rows: list[dict[str, str]] = []
    for line in FACTS.read_text().splitlines():
        if line.startswith("== "):
            rows = sections.setdefault(line[3:], [])
            columns = []
        elif line and not line.startswith("#"):
            cells = re.split(r"\s{2,}", line.rstrip())
            if columns:
                rows.append(dict(zip(columns, cells, strict=True)))
            else:
                columns = cells
    return sections


@pytest.mark.parametrize("section", TABLES)
def test_every_key_has_the_type_and_default_kafka_gives_it(section: str) -> None:
    """No key is missing, none is invented, and type, default, scope, visibility and synonyms agree."""
    table = TABLES[section]
    facts = {row["name"]: row for row in read_facts()[section]}
    assert set(table.names()) == facts.keys() | LATER_KEYS.get(section, set())
    for name, row in facts.items():
        key = table[name]
        default = {"null": None, "(required)": None, '""': ""}.get(row["default"], row["default"])
        assert (name, TYPE_NAMES[key.type], key.default) == (name, row["type"], default)
        assert key.required == (row["default"] == "(required)")
        assert key.internal == (row.get("shown") == "no")
        assert key.sensitive == (row.get("sensitive") == "sensitive")
        if "dynamic" in row:
            assert key.dynamic == row["dynamic"]
        synonyms = row.get("broker-synonyms", "-")
        assert key.synonyms == (() if synonyms == "-" else tuple(re.sub(r"\(x\d+\)", "", synonyms).split(",")))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_default_passes_its_own_validation_and_every_key_is_documented(table: ConfigKeys) -> None:
    """A default that its validator refuses would be a typing mistake in the table."""
    for key in table.rows():
        key.parse(key.default)
        assert key.documentation.endswith(".")


def test_broker_keys_named_beside_the_table_exist() -> None:
    """Synonyms, units, thread counts and per-listener keys name rows of the broker table."""
    named = {*BROKER_UNITS, *PER_LISTENER_SECURITY_KEYS, *THREAD_COUNT_KEYS}
    for key in TOPIC_KEYS.rows() + GROUP_KEYS.rows():
        named.update(key.synonyms)
    assert named <= set(BROKER_KEYS.names())


READERS = ("api", "node", "net", "raft", "replication", "controller", "coordinator", "storage", "metadata")


def test_what_the_code_reads_is_said_to_have_an_effect() -> None:
    """Pages are generated from the list, so it must not lag behind."""
    root = Path(moldau.__file__).parent
    sources = [path.read_text() for part in READERS for path in (root / part).rglob("*.py")]
    read = {name for text in sources for name in re.findall(r'"([a-z0-9]+(?:\.[a-z0-9]+)+)"', text)}
    assert (read & set(BROKER_KEYS.names())) <= honoured_broker_keys()
    assert (read & set(TOPIC_KEYS.names())) <= HONOURED_TOPIC_KEYS


def test_every_honoured_key_exists() -> None:
    """The list of keys with an effect names rows of the tables."""
    assert set(TOPIC_KEYS.names()) >= HONOURED_TOPIC_KEYS
    assert set(BROKER_KEYS.names()) >= HONOURED_BROKER_KEYS | honoured_broker_keys()
    assert set(GROUP_KEYS.names()) >= HONOURED_GROUP_KEYS
    assert set(CLIENT_METRICS_KEYS.names()) >= HONOURED_CLIENT_METRICS_KEYS
    quotas = {*USER_CLIENT_QUOTA_KEYS.names(), *IP_QUOTA_KEYS.names(), *BROKER_QUOTA_KEYS.names()}
    assert quotas >= HONOURED_QUOTA_KEYS
    assert "log.retention.hours" in honoured_broker_keys()
