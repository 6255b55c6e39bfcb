"""`make chroot`: the wheel and the sdist of dist/ on a Debian that has Python and no compiler, made by its packages.

    python3 tools/try_chroot.py                    a Debian whose Python fits the wheel, in a temporary directory
    python3 tools/try_chroot.py --root DIRECTORY      one that is there already, or is made there and stays

The packages they depend on are fetched outside, so nothing but installing counts. There the wheel has to be compiled
and the sdist interpreted; broker, client and tools are tried with both. Says why and does nothing where it cannot work:
it needs root, mmdebstrap or debootstrap, and unshare.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from demo_steps import Job, SetupFailed, Steps

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
LOGS = ROOT / ".venv-wheel" / "log"
# Which release has which Python.
RELEASES = {"311": "bookworm", "313": "trixie"}
PACKAGES = "python3,python3-venv"
COMPILERS = ("cc", "gcc", "clang", "c99", "tcc", "x86_64-linux-gnu-gcc", "aarch64-linux-gnu-gcc")
INSIDE = "/opt/try"
# Not what this machine sets for itself.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Try the packages of dist/ where no compiler is.")
    parser.add_argument("--root", type=Path, help="keep the Debian in this directory")
    options = parser.parse_args()
    wheel, sdist = next(DIST.glob("*.whl"), None), next(DIST.glob("*.tar.gz"), None)
    if wheel is None or sdist is None:
        print("there is no wheel and sdist in dist/: run `make wheel` first")
        return 1
    missing = what_is_missing(wheel)
    if missing:
        print(f"not tried in a Debian without a compiler: {missing}")
        return 0
    steps = Steps(time.monotonic())
    temporary = tempfile.mkdtemp(prefix="moldau-chroot-")
    try:
        Trial(steps, options.root or Path(temporary, "root")).make(wheel, sdist)
    except SetupFailed as failure:
        print(failure)
        return 1
    finally:
        # What is mounted is mounted for the commands inside only, and gone with them.
        steps.end_all()
        shutil.rmtree(temporary)
    return 0


def what_is_missing(wheel: Path) -> str | None:
    if release_for(wheel) is None:
        return f"no Debian has the Python of {wheel.name}"
    if os.geteuid() != 0:
        return "that needs root"
    if not shutil.which("unshare"):
        return "unshare is missing (Debian: apt install util-linux)"
    if not (shutil.which("mmdebstrap") or shutil.which("debootstrap")):
        return "neither mmdebstrap nor debootstrap is here (Debian: apt install mmdebstrap)"
    return None


def release_for(wheel: Path) -> str | None:
    tag = re.search(r"-cp(\d+)-", wheel.name)
    return RELEASES.get(tag[1]) if tag else None


class Trial:
    """A Debian in a directory, and what is tried in it."""

    def __init__(self, steps: Steps, root: Path) -> None:
        self._steps = steps
        self._root = root

    def make(self, wheel: Path, sdist: Path) -> None:
        self._make_root(str(release_for(wheel)))
        there = self._root / INSIDE.lstrip("/")
        shutil.rmtree(there, ignore_errors=True)
        there.mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "try_install.py", there)
        for package in (wheel, sdist):
            shutil.copy(package, there)
        self._fetch(wheel, there / "packages")
        compilers = [name for name in COMPILERS if shutil.which(name, path=self._search_path())]
        if compilers:
            raise SetupFailed(f"this Debian has a compiler: {', '.join(compilers)}")
        version = self._inside("python3 --version", "python3", "--version").strip()
        self._steps.tell(f"a Debian with {version} and none of {', '.join(COMPILERS)}")
        self._try("wheel", "compiled", wheel)
        self._try("sdist", "interpreted", sdist)

    def _make_root(self, release: str) -> None:
        if (self._root / "usr" / "bin" / "python3").exists():
            return
        self._root.mkdir(parents=True, exist_ok=True)
        os.chmod(self._root, 0o755)
        maker = "mmdebstrap" if shutil.which("mmdebstrap") else "debootstrap"
        options = ["--variant=minbase", f"--include={PACKAGES}"]
        self._run(f"Debian {release} by {maker}", [maker, *options, release, str(self._root)])
        # An installer writes this file, and every container engine; a Debian of packages alone knows no localhost.
        (self._root / "etc" / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")

    def _search_path(self) -> str:
        return os.pathsep.join(str(self._root / directory) for directory in ("usr/bin", "usr/sbin", "usr/local/bin"))

    def _fetch(self, wheel: Path, to: Path) -> None:
        """What the wheel needs to run and the sdist to be built, for the Python of this wheel, which is that inside."""
        tag = re.search(r"-cp(\d)(\d+)-", wheel.name)
        assert tag is not None
        fetch = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--only-binary=:all:"]
        choice = ["--python-version", f"{tag[1]}.{tag[2]}", "--implementation", "cp"]
        self._run("packages fetched", [*fetch, *choice, "--dest", str(to), str(wheel), "flit_core>=3.11,<4"])

    def _try(self, name: str, kind: str, package: Path) -> None:
        python = f"{INSIDE}/{kind}/bin/python"
        self._inside(f"environment for the {name}", "python3", "-m", "venv", f"{INSIDE}/{kind}")
        install = [
            "-m",
            "pip",
            "install",
            "--no-index",
            "--find-links",
            f"{INSIDE}/packages",
            f"{INSIDE}/{package.name}",
        ]
        self._inside(f"{name} installed", python, *install)
        said = self._inside(f"{name} tried", python, "-I", f"{INSIDE}/try_install.py", f"--{kind}")
        self._steps.say("".join(f"           {line}\n" for line in said.splitlines()).rstrip())

    def _inside(self, name: str, *command: str) -> str:
        """Runs a command in the Debian, in namespaces of its own: what it mounts or leaves running ends with it."""
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", f"--root={self._root}"]
        return self._run(name, [*enter, "--wd=/", *command], ENVIRONMENT)

    def _run(self, name: str, command: list[str], environment: dict[str, str] | None = None) -> str:
        log = LOGS / f"chroot-{name.replace(' ', '-')}"
        job = Job(name, [command], log, lambda: last_line(log), environment, ROOT)
        self._steps.run(job)
        return job.printed()


def last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n")
    return next((line.strip()[:100] for line in reversed(lines) if line.strip()), "…")


if __name__ == "__main__":
    sys.exit(main())
