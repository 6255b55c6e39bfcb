"""Tests of storage do not wait for the medium: syncs do nothing, except where the disk itself is tested. Nor does the
machine remember anything of their folders, except where that is tested."""

from __future__ import annotations

import os

import pytest


def no_sync(_descriptor: int) -> None:
    return


@pytest.fixture(autouse=True)
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was remembered of folders that go with the test would be left behind."""
    monkeypatch.setattr("moldau.server.posix_disk.find_memory_directory", lambda: "")


@pytest.fixture(autouse=True)
def quick_syncs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.module.__name__.endswith("test_posix_disk"):
        return
    for name in ("fsync", "fdatasync"):
        if hasattr(os, name):
            monkeypatch.setattr(os, name, no_sync)
