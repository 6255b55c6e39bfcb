"""Workers on this machine import the installed pyspark, not the archive that Spark puts in front of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.spark import worker_python
from moldau.spark.worker_python import local_worker_python, pyspark_archives, worker_script


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like an installed pyspark; returns where its archives are."""
    archives = tmp_path / "site" / "pyspark" / "python" / "lib"
    archives.mkdir(parents=True)
    for name in ("py4j-0.10-src.zip", "pyspark.zip", "PY4J_LICENSE.txt"):
        (archives / name).touch()
    for name in ("pyspark", "py4j"):
        (tmp_path / "site" / name).mkdir(exist_ok=True)
        (tmp_path / "site" / name / "__init__.py").touch()
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return archives


def test_the_archives_are_those_of_the_installed_package(installed: Path) -> None:
    assert pyspark_archives() == [str(installed / "pyspark.zip"), str(installed / "py4j-0.10-src.zip")]


def test_a_spark_from_elsewhere_is_left_alone(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert pyspark_archives() == []
    assert local_worker_python() == sys.executable


def test_the_archives_are_taken_out_of_the_path_and_nothing_else(tmp_path: Path) -> None:
    archives = [str(tmp_path / "it's" / "pyspark.zip"), str(tmp_path / "it's" / "py4j.zip")]
    script = tmp_path / "python"
    script.write_text(worker_script(sys.executable, archives))
    script.chmod(0o700)

    def path_inside(path: str) -> list[str]:
        show = "import os, sys; print(os.environ['PYTHONPATH'], *sys.argv[1:], sep='|')"
        ended = subprocess.run(
            [str(script), "-c", show, "two words"], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
        )
        return ended.stdout.strip().split("|")

    assert path_inside(":".join([*archives, "/a.jar", "/mine"])) == ["/a.jar:/mine", "two words"]
    assert path_inside(":".join(["/a.jar", *archives, "/b.jar", *archives])) == ["/a.jar:/b.jar", "two words"]
    assert path_inside(archives[0] + ".old:/mine") == [archives[0] + ".old:/mine", "two words"]
    assert path_inside("") == ["", "two words"]


def test_one_script_serves_all_sessions_of_a_process(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_python, "_made", [])
    script = local_worker_python()
    assert script != sys.executable and os.access(script, os.X_OK)
    assert local_worker_python() == script
