"""Writes src/moldau/storage/inspect/fields.py, what printing a stored record as JSON needs to know, from schemas/.

    python tools/generate_record_fields.py            write it
    python tools/generate_record_fields.py --check    write nothing, fail if it is stale

The message classes know how to decode, not which version has which field under which name in JSON; this table does.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from generate_messages import LINE_LENGTH, ROOT, SCHEMAS, Field, parse_file

TARGET = ROOT / "src" / "moldau" / "storage" / "inspect" / "fields.py"
SOURCES = [
    "messages/consumer-protocol.txt",
    "stored/control_records.txt",
    "stored/group_records.txt",
    "stored/metadata_records.txt",
    "stored/remote_log_records.txt",
    "stored/share_records.txt",
    "stored/transaction_records.txt",
]
# Names in Kafka's schemas that the rule (word_word to wordWord) does not give.
IRREGULAR = {"kraft_version": "kRaftVersion", "kraft_version_feature": "kRaftVersionFeature"}
HEAD = '''"""The fields of stored records as JSON shows them: names, kinds and versions (generated).

Written by tools/generate_record_fields.py from schemas/. For each class, by module and name: the field's name in JSON,
its attribute, its kind (v: as it is, u: uuid, b: bytes, s: struct), the first and the last version that have it, and
the first version in which it is tagged (-1: in none), where only a value that is not the default is shown.
"""

from __future__ import annotations

from typing import Final

FieldRow = tuple[str, str, str, int, int, int]

FIELDS: Final[dict[str, tuple[FieldRow, ...]]] = {
'''


def json_name(name: str) -> str:
    if name in IRREGULAR:
        return IRREGULAR[name]
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def row(item: Field) -> str:
    kind = {"uuid": "u", "bytes": "b"}.get(item.kind, "v")
    if item.struct is not None and not item.is_array:
        kind = "s"
    tagged = -1 if item.tag is None else item.tagged.lowest if item.tagged is not None else item.versions.lowest
    versions = f"{item.versions.lowest}, {item.versions.highest}, {tagged}"
    return f'("{json_name(item.name)}", "{item.name}", "{kind}", {versions})'


def text() -> str:
    lines = []
    for source in SOURCES:
        path = SCHEMAS / source
        module = path.stem.replace("-", "_")
        for schema in parse_file(path):
            for struct in schema.structs.values():
                rows = [row(item) for item in struct.fields]
                flat = f'    "{module}.{struct.name}": ({", ".join(rows)}{"," if len(rows) == 1 else ""}),'
                if len(flat) <= LINE_LENGTH:
                    lines.append(flat)
                else:
                    lines += [f'    "{module}.{struct.name}": (', *(f"        {item}," for item in rows), "    ),"]
    return HEAD + "\n".join(lines) + "\n}\n"


def main(arguments: list[str]) -> int:
    wanted = text()
    if arguments == ["--check"]:
        if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != wanted:
            print(f"stale: {TARGET.relative_to(ROOT)}; run python tools/generate_record_fields.py")
            return 1
        return 0
    TARGET.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
