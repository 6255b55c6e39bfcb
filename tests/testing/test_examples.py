"""The sample projects work as they are, each run by a pytest of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testing.runs import SECONDS_MAX, environment, run_pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "testing"
NEEDS = {
    "with_aiokafka": "aiokafka",
    "with_confluent_kafka": "confluent_kafka",
    "with_faststream": "faststream",
    "with_kafka_python": "kafka",
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == {*NEEDS, "with_unittest"}


@pytest.mark.interop
@pytest.mark.parametrize("name", sorted(NEEDS))
def test_an_example(name: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(NEEDS[name]) is None and not os.environ.get("CI"):
        pytest.skip(f"{NEEDS[name]} is not installed")
    folder = Path(shutil.copytree(EXAMPLES / name, tmp_path / name))
    done = run_pytest(folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_for_unittest(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(EXAMPLES / "with_unittest", tmp_path / "with_unittest"))
    done = subprocess.run(
        [sys.executable, "-m", "unittest", "-v"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    assert "OK" in done.stderr
