"""The demo's commands: what they started ends with them, and a failing one says what it printed."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from demo_setup import compile_progress, pip_progress
from demo_steps import Job, SetupFailed, Steps, members_of


def test_everything_a_command_started_ends_with_it(tmp_path: Path) -> None:
    steps = Steps(time.monotonic())
    # A grandchild that survives its parent, and one that left the process group and ignores a polite request.
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    leaver = f"import os, signal, time; {deaf}; os.setpgid(0, 0); print(1, flush=True); time.sleep(600)"
    started = steps.start(
        ["sh", "-c", f"sleep 600 & {sys.executable} -c '{leaver}' & wait"], output=tmp_path / "output"
    )
    while not (tmp_path / "output").read_text():
        time.sleep(0.01)
    assert len(members_of({started.pid})) == 3
    steps.end_all()
    assert members_of({started.pid}) == set()


def test_a_failing_command_ends_the_wait_with_what_it_printed(tmp_path: Path) -> None:
    steps = Steps(time.monotonic())
    job = Job("packages", [["true"], ["sh", "-c", "echo no such package; exit 3"], ["true"]], tmp_path / "log", str)
    with pytest.raises(SetupFailed, match=r"packages ended with code 3\nno such package"):
        steps.run(job)


def test_commands_of_a_job_run_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = Job("both", [["sh", "-c", "echo first"], ["sh", "-c", "echo second"]], tmp_path / "log", str)
    Steps(time.monotonic()).run(job)
    assert (tmp_path / "log").read_text() == "first\nsecond\n"
    assert "both: done" in capsys.readouterr().out


def test_the_cpu_of_all_commands_of_a_job_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"]
    job = Job("work", [work, ["sh", "-c", "exec " + " ".join(f"'{word}'" for word in work)]], tmp_path / "log", str)
    Steps(time.monotonic()).run(job)
    assert job.cpu_seconds >= 0.4
    assert f"{job.cpu_seconds:.1f} s of CPU" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "progress"),
    [
        ("", "asking the registry"),
        ("Collecting click>=8.1\n", "0 fetched, looking for click"),
        (
            "Collecting x\n  Downloading pyspark-4.2.0.tar.gz (455.9 MB)\n",
            "1 fetched, pyspark of 455.9 MB (1 MB so far)",
        ),
        (
            "Building wheels for collected packages: pyspark\n  Building wheel for pyspark (pyproject.toml): started\n",
            "unpacking and packing pyspark",
        ),
        ("Installing collected packages: a, b, c\n", "installing 3 packages"),
    ],
)
def test_what_pip_does_is_told(tmp_path: Path, lines: str, progress: str) -> None:
    (tmp_path / "log").write_text(lines)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "part").write_bytes(bytes(1_200_000))
    assert pip_progress(tmp_path / "log", tmp_path / "tmp") == progress


def test_how_much_is_compiled_counts_by_size(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "large.c").write_bytes(bytes(3_000_000))
    (tmp_path / "c" / "small.c").write_bytes(bytes(1_000_000))
    assert compile_progress(tmp_path) == "mypyc translates to C"
    (tmp_path / "temp.linux" / "c").mkdir(parents=True)
    (tmp_path / "temp.linux" / "c" / "large.o").write_bytes(b"o")
    assert compile_progress(tmp_path) == "75 % of 4 MB of C"
