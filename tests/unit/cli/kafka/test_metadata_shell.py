"""kafka-metadata-shell on what a node wrote: its commands, paths with patterns, and files that are damaged."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from moldau.cli.kafka.frame import run_command


def run(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> tuple[int, str, str]:
    code = run_command(["kafka-metadata-shell", "--snapshot", str(path), *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_tree_can_be_walked(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, written, "ls", "/") == (0, "image  local  raft\n", "")
    _, out, _ = run(capsys, written, "ls", "/image/topics/byName")
    assert {"orders", "payments", "more-19"} <= set(out.split())
    code, out, _ = run(capsys, written, "cat", "/image/topics/byName/orders/0")
    assert code == 0 and json.loads(out)["replicas"] == [1]
    _, out, _ = run(capsys, written, "cat", "/image/cluster/brokers/1")
    assert json.loads(out)["listeners"]["PLAINTEXT"] == "127.0.0.1:9092"
    _, out, _ = run(capsys, written, "find", "/image/topics/byName/pay*")
    assert "/image/topics/byName/payments/1\n" in out
    _, out, _ = run(capsys, written, "tree", "/image/features")
    assert "metadata.version: 30\n" in out


def test_what_is_not_there_is_said(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, written, "cat", "/image/nope")[:2] == (1, "cat: /image/nope: no such file or directory.\n")
    assert run(capsys, written, "cat", "/image")[:2] == (1, "cat: /image is a directory\n")
    assert run(capsys, written, "sing")[0] == 1
    code, _, err = run(capsys, written / "missing.checkpoint", "ls")
    assert code == 1 and "missing.checkpoint" in err


def test_a_prompt_remembers_where_one_is(
    written: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("cd image/topics\npwd\ncd ..\npwd\nhistory\nexit\npwd\n"))
    code, out, _ = run(capsys, written)
    assert code == 0
    assert out.splitlines()[:2] == ["/image/topics", "/image"]
    assert out.splitlines()[-1].endswith("history")


def test_a_snapshot_a_segment_and_a_folder_are_read(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written / "__cluster_metadata-0"
    snapshot = sorted(folder.glob("*.checkpoint"))[-1]
    for path in (snapshot, folder / "00000000000000000000.log", folder):
        code, out, _ = run(capsys, path, "ls", "/image/topics/byName")
        assert code == 0 and "orders" in out, path


def test_damage_is_a_warning_and_the_rest_is_shown(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = (written / "__cluster_metadata-0" / "00000000000000000000.log").read_bytes()
    copy = tmp_path / "00000000000000000000.log"
    copy.write_bytes(log[:-10] + b"0123456789")
    code, out, err = run(capsys, copy, "ls", "/image/topics/byName")
    assert code == 0 and "orders" in out
    assert err.startswith("WARNING: ") and "is damaged at position" in err
