"""A Debian without a compiler: which one fits a wheel, and what is said where none can be made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import try_chroot

WHEEL = Path("dist/moldau-1.0-cp311-cp311-manylinux2014_x86_64.whl")


@pytest.fixture
def everything_there(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The commands that are found, to take some away."""
    found = {name: f"/usr/bin/{name}" for name in ("unshare", "mmdebstrap", "debootstrap")}
    monkeypatch.setattr(try_chroot.os, "geteuid", lambda: 0)
    monkeypatch.setattr(try_chroot.shutil, "which", lambda name: found.get(name))
    return found


@pytest.mark.parametrize(
    ("tag", "release"), [("cp311-cp311", "bookworm"), ("cp313-cp313", "trixie"), ("cp312-cp312", None)]
)
def test_the_release_is_the_one_whose_python_the_wheel_is_for(tag: str, release: str | None) -> None:
    assert try_chroot.release_for(Path(f"moldau-1.0-{tag}-linux_x86_64.whl")) == release


def test_either_of_the_two_makers_will_do(everything_there: dict[str, str]) -> None:
    del everything_there["mmdebstrap"]
    assert try_chroot.what_is_missing(WHEEL) is None


def test_what_is_missing_is_told(everything_there: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    del everything_there["mmdebstrap"], everything_there["debootstrap"]
    assert "apt install mmdebstrap" in str(try_chroot.what_is_missing(WHEEL))
    del everything_there["unshare"]
    assert "unshare" in str(try_chroot.what_is_missing(WHEEL))
    monkeypatch.setattr(try_chroot.os, "geteuid", lambda: 1000)
    assert try_chroot.what_is_missing(WHEEL) == "that needs root"
    assert "no Debian has" in str(try_chroot.what_is_missing(Path("moldau-1.0-cp312-cp312-linux_x86_64.whl")))
