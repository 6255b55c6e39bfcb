"""The generator: its output is in the tree, and it refuses schemas that do not follow the format."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "generate_messages.py"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = spec_from_file_location("generate_messages", TOOL)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_generated_classes_are_up_to_date() -> None:
    result = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def text_of(generator: ModuleType, tmp_path: Path, schema: str) -> str:
    path = tmp_path / "sample.txt"
    path.write_text(schema)
    made: str = generator.module_text("sample.txt", "Sample", generator.parse_file(path), [], [])
    return made


@pytest.mark.parametrize(
    "body",
    [
        "  name  string  surprising",
        "  name  string  0+  default",
        "  name  Struct",
        "  name  [bytes]",
        "  class  string",
        "  first  One\n    a  int8\n\n  struct Two\n    b  int8",
    ],
)
def test_schemas_that_do_not_follow_the_format_are_refused(generator: ModuleType, tmp_path: Path, body: str) -> None:
    with pytest.raises(generator.SchemaError):
        text_of(generator, tmp_path, f"message Sample, versions 0-3, flexible 2+\n{body}\n")


def test_two_structs_of_one_name_in_a_module_are_refused(generator: ModuleType, tmp_path: Path) -> None:
    message = "message {}, version 0\n  items  [Item]\n    a  int8\n"
    with pytest.raises(generator.SchemaError, match="more than one"):
        text_of(generator, tmp_path, message.format("First") + message.format("Second"))


def test_a_field_of_some_versions_is_read_under_a_comparison(generator: ModuleType, tmp_path: Path) -> None:
    text = text_of(generator, tmp_path, "message Sample, versions 0-3, flexible 2+\n  name  string?  1+  null in 3+\n")
    assert "        if version >= 3:\n            name = reader.compact_nullable_string()\n" in text
    assert "        elif version >= 2:\n            name = reader.compact_string()\n" in text
    assert "        elif version >= 1:\n            name = reader.string()\n" in text
