"""Writes src/moldau/client/setting_types.py and docs/client-settings.md from the tables in client/config.py.

The first is for type checkers and editors: a misspelt keyword is found before the program runs, and each setting shows
what it does, its default and Kafka's name for it. The second is the same for readers. `--check` fails when one of the
files is stale.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TYPES = ROOT / "src" / "moldau" / "client" / "setting_types.py"
PAGE = ROOT / "docs" / "client-settings.md"
sys.path.insert(0, str(ROOT / "src"))

from moldau.client import config  # noqa: E402

# Of admin clients alone, and taken away before the table is asked.
CONTROLLERS = config.Setting(
    None, about="Controllers to speak to in place of brokers, as host:port; not together with bootstrap.servers."
)
ADMIN = {**config.ADMIN, "bootstrap.controllers": CONTROLLERS}

# Each with the one that it stands on, whose settings are not repeated.
CLASSES: dict[str, tuple[str, str, Mapping[str, config.Setting], str]] = {
    "CommonSettings": ("", "What all clients take", config.COMMON, "All clients"),
    "AdminSettings": ("CommonSettings", "Settings of Admin and AsyncAdmin", ADMIN, "Admin"),
    "ProducerSettings": ("CommonSettings", "Settings of Producer and AsyncProducer", config.PRODUCER, "Producer"),
    "ReadingSettings": ("CommonSettings", "What both kinds of consumers take", config.READING, "Both consumers"),
    "ConsumerSettings": ("ReadingSettings", "Settings of Consumer and AsyncConsumer", config.CONSUMER, "Consumer"),
    "ShareConsumerSettings": (
        "ReadingSettings",
        "Settings of ShareConsumer and AsyncShareConsumer",
        config.SHARE_CONSUMER,
        "Share consumer",
    ),
}

HEAD = '''\
"""The keywords of clients, for type checkers and editors: written by tools/generate_setting_types.py from config.py.

A keyword is Kafka's name with `_` for `.`; `config` takes Kafka's names as they are. docs/client-settings.md is the
same as a page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition
'''

# The keywords of the asyncio clients that are no settings.
TAIL = '''

class _Arguments(TypedDict, total=False):
    """What all clients take."""

    config: Mapping[str, object] | None
    """Settings by Kafka's names; a keyword of the same setting takes precedence."""


class AdminArguments(AdminSettings, _Arguments, total=False):
    """Everything that AsyncAdmin takes by keyword."""


class ProducerArguments(ProducerSettings, _Arguments, total=False):
    """Everything that AsyncProducer takes by keyword."""

    key_serializer: Callable[[Any], bytes | None] | None
    """Makes the bytes of each key; without one, keys are bytes, text or None."""
    value_serializer: Callable[[Any], bytes | None] | None
    """Makes the bytes of each value; without one, values are bytes, text or None."""
    partitioner: Callable[[str, bytes | None, int], int] | None
    """partitioner(topic, key, number of partitions) chooses the partition of a record for which none is given."""
    on_batch: Callable[[TopicPartition, int, ClientError | None], None] | None
    """on_batch(partition, number of records, error or None) is called in another thread for each batch that is done."""


class _ReaderArguments(_Arguments, total=False):
    """What both kinds of consumers take."""

    key_deserializer: Callable[[bytes | None], Any] | None
    """Makes record.key of the bytes of each key."""
    value_deserializer: Callable[[bytes | None], Any] | None
    """Makes record.value of the bytes of each value."""


class ConsumerArguments(ConsumerSettings, _ReaderArguments, total=False):
    """Everything that AsyncConsumer takes by keyword."""


class ShareConsumerArguments(ShareConsumerSettings, _ReaderArguments, total=False):
    """Everything that AsyncShareConsumer takes by keyword, on_acknowledged aside."""
'''

PAGE_HEAD = """# Settings of the client

Written by `make generate` from the tables in `client/config.py`. Names are Kafka's; as keywords they have `_` for `.`:
`Producer("localhost:9092", linger_ms=20)` is the same as `Producer("localhost:9092", config={"linger.ms": 20})`. What
is not here is refused. The asyncio clients take the same.
"""

# Settings that take more than their table says.
OTHERS = {
    "bootstrap.controllers": "str | list[str]",
    "bootstrap.servers": "str | list[str]",
    "partition.assignment.strategy": "str | list[str] | list[type] | list[object]",
    # A number may be written as one.
    "acks": "str | int",
}
WIDTH = 120


def own_rows(name: str) -> dict[str, config.Setting]:
    """The settings of a class that none of those below it has."""
    below, _, table, _ = CLASSES[name]
    known: set[str] = set()
    while below:
        known |= set(CLASSES[below][2])
        below = CLASSES[below][0]
    return {key: row for key, row in sorted(table.items()) if key not in known}


def type_of(name: str, row: config.Setting) -> str:
    if name in OTHERS:
        return OTHERS[name]
    if isinstance(row.default, bool):
        return "bool | str"
    if isinstance(row.default, int):
        return "int | str"
    if row.is_function:
        return "Callable[[], str] | None"
    return "str | None" if row.default is None else "str"


def default_of(row: config.Setting) -> str:
    if isinstance(row.default, bool):
        return str(row.default).lower()
    return "not set" if row.default is None else "empty" if row.default == "" else str(row.default)


def sentence_of(row: config.Setting) -> str:
    """What it does, and its values where the sentence leaves one out."""
    unsaid = [choice for choice in row.choices if choice not in row.about]
    return f"{row.about} One of {', '.join(row.choices)}." if unsaid else row.about


def class_lines(name: str) -> list[str]:
    below, about, _, _ = CLASSES[name]
    lines = ["", "", f"class {name}({below or 'TypedDict'}, total=False):", f'    """{about}."""', ""]
    for key, row in own_rows(name).items():
        if key == "bootstrap.servers":
            continue  # the first positional argument
        lines.append(f"    {key.replace('.', '_')}: {type_of(key, row)}")
        default = "not set" if row.default is None else f"default {default_of(row)}"
        text = f'"""{sentence_of(row)} [{key}, {default}]"""'
        lines += textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return lines


def types_text() -> str:
    lines = [HEAD.rstrip()]
    for name in CLASSES:
        lines += class_lines(name)
    return "\n".join(lines) + "\n" + TAIL


def page_text() -> str:
    lines = [PAGE_HEAD]
    for name, (below, _, _, title) in CLASSES.items():
        more = (
            f" Beside [{CLASSES[below][3].lower()}](#{CLASSES[below][3].lower().replace(' ', '-')}):" if below else ""
        )
        lines += [f"## {title}", "", *([more.strip(), ""] if more else [])]
        lines += ["| setting | default | |", "|---|---|---|"]
        for key, row in own_rows(name).items():
            default = default_of(row)
            shown = default if row.default in (None, "") else f"`{default}`"
            lines.append(f"| `{key}` | {shown} | {sentence_of(row)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    for target, text in ((TYPES, types_text()), (PAGE, page_text())):
        if "--check" not in sys.argv:
            target.write_text(text)
        elif not target.exists() or target.read_text() != text:
            sys.exit(f"{target.relative_to(ROOT)} is stale: run tools/generate_setting_types.py")


if __name__ == "__main__":
    main()
