"""What a type checker finds in programs that use the client, before they run."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from moldau.client import config
from moldau.client import setting_types as types

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
from moldau.client import Admin, AsyncConsumer, AsyncProducer, Consumer, Producer, ShareConsumer

Producer("b:1", linger_ms=3, compression_type="zstd", value_serializer=lambda value: str(value).encode()).send("t", 5)
Producer({"bootstrap.servers": "b:1"}).send("t", "v", headers={"a": "b", "c": None})
Consumer("b:1", group_id="g", partition_assignment_strategy=["range"], config={"fetch.min.bytes": 1})
Admin(bootstrap_controllers="c:1")
Producer("b:1", linger_mss=3)
Producer("b:1", linger_ms=[3])
Consumer("b:1", linger_ms=3)
ShareConsumer("b:1", group_idd="g")
AsyncProducer("b:1", linger_mss=3)
AsyncConsumer("b:1", group_id="g", value_deserializer=lambda value: value, fetch_min_byte=1)
Producer("b:1").send(5, "v")
Producer("b:1").send("t", "v", partition="0")
"""


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_misspelt_keywords_and_wrong_types_are_found_before_the_program_runs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(program)]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [int(line.split(":")[1]) for line in found] == list(range(8, 16)), done.stdout + done.stderr
    assert 'Unexpected keyword argument "linger_mss" for "Producer"; did you mean "linger_ms"?' in found[0]


def test_the_keywords_and_the_page_are_those_of_the_table() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_setting_types.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("settings", [config.ADMIN, config.PRODUCER, config.CONSUMER, config.SHARE_CONSUMER])
def test_every_setting_says_what_it_does(settings: dict[str, config.Setting]) -> None:
    assert [name for name, row in settings.items() if not row.about.endswith(".")] == []


def test_what_clients_share_is_written_once() -> None:
    shared = set(config.COMMON) - {"bootstrap.servers"}
    for keywords in (types.AdminSettings, types.ProducerSettings, types.ConsumerSettings, types.ShareConsumerSettings):
        assert types.CommonSettings.__annotations__.items() <= keywords.__annotations__.items()
    assert {name.replace("_", ".") for name in types.CommonSettings.__annotations__} == shared


@pytest.mark.parametrize(
    ("settings", "keywords"),
    [
        (config.ADMIN, types.AdminSettings),
        (config.PRODUCER, types.ProducerSettings),
        (config.CONSUMER, types.ConsumerSettings),
        (config.SHARE_CONSUMER, types.ShareConsumerSettings),
    ],
)
def test_every_setting_is_a_keyword(settings: dict[str, config.Setting], keywords: type) -> None:
    named = {name.replace("_", ".") for name in keywords.__annotations__} - {"bootstrap.controllers"}
    assert named == set(settings) - {"bootstrap.servers"}
