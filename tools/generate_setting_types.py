"""Writes src/moldau/client/setting_types.py from the tables in client/config.py.

So that a type checker knows the keywords of the clients: a misspelt one is found before the program runs. `--check`
fails when the file is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "moldau" / "client" / "setting_types.py"
sys.path.insert(0, str(ROOT / "src"))

from moldau.client import config  # noqa: E402

TABLES = {
    "AdminSettings": ("Admin", config.ADMIN),
    "ProducerSettings": ("Producer", config.PRODUCER),
    "ConsumerSettings": ("Consumer", config.CONSUMER),
    "ShareConsumerSettings": ("ShareConsumer", config.SHARE_CONSUMER),
}

HEAD = '''"""The keywords of clients, for type checkers: written by tools/generate_setting_types.py from config.py."""

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


class AdminArguments(AdminSettings, _Arguments, total=False):
    """Everything that AsyncAdmin takes by keyword."""


class ProducerArguments(ProducerSettings, _Arguments, total=False):
    """Everything that AsyncProducer takes by keyword."""

    key_serializer: Callable[[Any], bytes | None] | None
    value_serializer: Callable[[Any], bytes | None] | None
    partitioner: Callable[[str, bytes | None, int], int] | None
    on_batch: Callable[[TopicPartition, int, ClientError | None], None] | None


class _ReaderArguments(_Arguments, total=False):
    """What both kinds of consumers take."""

    key_deserializer: Callable[[bytes | None], Any] | None
    value_deserializer: Callable[[bytes | None], Any] | None


class ConsumerArguments(ConsumerSettings, _ReaderArguments, total=False):
    """Everything that AsyncConsumer takes by keyword."""


class ShareConsumerArguments(ShareConsumerSettings, _ReaderArguments, total=False):
    """Everything that AsyncShareConsumer takes by keyword, on_acknowledged aside."""
'''

# Settings that take more than their table says.
OTHERS = {
    "bootstrap.controllers": "str | list[str]",
    "bootstrap.servers": "str | list[str]",
    "partition.assignment.strategy": "str | list[str] | list[type] | list[object]",
    # A number may be written as one.
    "acks": "str | int",
}
# Of admin clients alone, and taken away before the table is asked.
MORE = {"AdminSettings": ("bootstrap.controllers",)}


def type_of(name: str, row: config.Setting) -> str:
    if name in OTHERS:
        return OTHERS[name]
    if isinstance(row.default, bool):
        return "bool | str"
    if isinstance(row.default, int):
        return "int | str"
    return "str | None" if row.default is None else "str"


def table_lines(class_name: str, client: str, table: Mapping[str, config.Setting]) -> list[str]:
    rows = {name: type_of(name, row) for name, row in table.items()}
    rows |= {name: OTHERS[name] for name in MORE.get(class_name, ())}
    # The first positional argument.
    del rows["bootstrap.servers"]
    fields = [f"    {name.replace('.', '_')}: {kind}" for name, kind in sorted(rows.items())]
    return ["", "", f"class {class_name}(TypedDict, total=False):", f'    """Settings of {client}."""', "", *fields]


def render() -> str:
    lines = [HEAD.rstrip()]
    for class_name, (client, table) in TABLES.items():
        lines += table_lines(class_name, client, table)
    return "\n".join(lines) + "\n" + TAIL


def main() -> None:
    text = render()
    if "--check" in sys.argv:
        if TARGET.read_text() != text:
            sys.exit(f"{TARGET.relative_to(ROOT)} is stale: run tools/generate_setting_types.py")
        return
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
