"""What the parts of the demo need, each set up when its part is next: packages, the compiled build, Java."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from pathlib import Path

from demo_steps import Job, Steps

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-demo"
MEGABYTE = 1_000_000
# Of what the extra `spark` names, the demo's table needs these.
LAKE_PACKAGES = ("pyspark", "pandas", "pyarrow", "deltalake")


class Setup:
    """The demo's environment, and what is there already. A stamp names what was installed, so a change is noticed."""

    sources = ROOT / "src"
    python = HOME / "bin" / "python"
    # Spark's classes as Java maps them; made by the first run, for this Spark.
    spark_archive = HOME / "spark.jsa"

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    # What is there

    def is_compiled(self) -> bool:
        return self._has("compiled", self._state_of_sources())

    def has_spark(self) -> bool:
        return self._has("spark", self._lake_packages())

    def can_compile(self) -> bool:
        compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
        if shutil.which(compiler):
            return True
        self._steps.say("\nThe compiled build is left out: there is no C compiler here.")
        return False

    # What is to be there

    def make_ready_to_run(self) -> None:
        packages = [*self._project["project"]["dependencies"], *self._optional("interop", ("confluent-kafka",))]
        if self._has("run", packages):
            return
        self._steps.say("Setting up what a broker and a client need (once):")
        if not self.python.exists():
            self._steps.run(
                Job("a virtual environment", self._environment_commands(), HOME / "log" / "venv", lambda: "with pip")
            )
        self._steps.run(self._packages_job(f"{len(packages)} packages", "run", packages))
        # Python compiles what it imports for the first time, which would count as the broker's start.
        imports = [str(self.python), "-c", "import moldau.cli.server, moldau.server.main"]
        environment = keeping_bytecode({**os.environ, "PYTHONPATH": str(self.sources)})
        self._steps.run(Job("bytecode", [imports], HOME / "log" / "bytecode", lambda: "…", environment))
        self._stamp("run", packages)
        self._steps.say("")

    def make_java_ready(self) -> bool:
        """Whether there is a Java for Spark, perhaps now."""
        if shutil.which("java") or os.environ.get("JAVA_HOME"):
            return True
        job = Job("Java", [["sh", "-c", f"{ROOT}/tools/ensure_java.sh || true"]], HOME / "log" / "java", lambda: "…")
        self._steps.run(job)
        return shutil.which("java") is not None

    def make_rest_ready(self, compiled: bool, lake: bool) -> None:
        """Compiles on one side and fetches Spark on the other; neither waits for the other one."""
        jobs = []
        if compiled:
            compiler = [*self._project["build-system"]["requires"], *self._project["dependency-groups"]["compile"]]
            if not self._has("compiler", compiler):
                self._steps.run(self._packages_job("the compiler mypyc", "compiler", compiler))
                self._stamp("compiler", compiler)
            jobs.append(self._compile_job())
        if lake and not self.has_spark():
            jobs.append(self._packages_job("Spark's packages", "spark", self._lake_packages()))
        state = self._state_of_sources()
        self._steps.run(*jobs)
        if compiled:
            self._install_wheel()
            self._stamp("compiled", state)
        if lake:
            self.spark_archive.unlink(missing_ok=True)
            self._stamp("spark", self._lake_packages())

    def _install_wheel(self) -> None:
        wheels = sorted((HOME / "wheel").glob("moldau-*.whl"))
        command = self._pip("install", "--no-deps", "--force-reinstall", *map(str, wheels))
        self._steps.run(Job("the compiled build", [command], HOME / "log" / "install", lambda: "installing"))

    # How

    def _environment_commands(self) -> list[list[str]]:
        makers = [f'"{sys.executable}" -m {module} "{HOME}"' for module in ("venv", "virtualenv")]
        return [["sh", "-c", " || ".join([*makers, f'{{ echo "{NO_VENV}"; exit 1; }}'])]]

    def _pip(self, *arguments: str) -> list[str]:
        return [str(self.python), "-m", "pip", "--disable-pip-version-check", *arguments]

    def _packages_job(self, name: str, kind: str, packages: list[str]) -> Job:
        """Fetches to a directory whose growth can be told, as pip says nothing while it downloads."""
        log, temporary = HOME / "log" / kind, HOME / "tmp" / kind
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        # Most modules of most packages are never imported: what is gets compiled then.
        command = self._pip("install", "--no-compile", "--prefer-binary", *packages)
        environment = {**os.environ, "TMPDIR": str(temporary)}
        return Job(name, [command], log, lambda: pip_progress(log, temporary), environment)

    def _compile_job(self) -> Job:
        build, wheels, log = HOME / "build", HOME / "wheel", HOME / "log" / "compile"
        for old in (build / "lib", wheels):
            shutil.rmtree(old, ignore_errors=True)
        environment = {**os.environ, "MOLDAU_COMPILE": "1", "MOLDAU_BUILD_BASE": str(build)}
        command = self._pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT))
        return Job("compiling", [command], log, lambda: compile_progress(build), environment)

    # Stamps

    def _optional(self, extra: str, names: tuple[str, ...]) -> list[str]:
        listed: list[str] = self._project["project"]["optional-dependencies"][extra]
        return [package for package in listed if re.split(r"[^\w-]", package)[0] in names]

    def _lake_packages(self) -> list[str]:
        return self._optional("spark", LAKE_PACKAGES)

    def _state_of_sources(self) -> list[str]:
        digest = hashlib.sha256()
        for path in (ROOT / "setup.py", ROOT / "compiled_modules.txt", *sorted(self.sources.rglob("*.py"))):
            digest.update(path.read_bytes())
        return [digest.hexdigest()]

    def _has(self, kind: str, what: list[str]) -> bool:
        stamp = HOME / f".{kind}"
        return stamp.exists() and stamp.read_text() == "\n".join([sys.version, *what])

    def _stamp(self, kind: str, what: list[str]) -> None:
        shutil.rmtree(HOME / "tmp" / kind, ignore_errors=True)
        (HOME / f".{kind}").write_text("\n".join([sys.version, *what]))


def keeping_bytecode(environment: Mapping[str, str]) -> dict[str, str]:
    """Packages are installed without bytecode; what is imported is compiled once, also where Python is told not to."""
    kept = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(HOME / "bytecode")}


NO_VENV = "Python cannot make a virtual environment: install its venv module, on Debian with apt install python3-venv"


def pip_progress(log: Path, temporary: Path) -> str:
    """What pip does now, and how much of it is there."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    spoken = [
        line for line in lines if line.startswith(("Collecting", "Downloading", "Building wheel", "Installing coll"))
    ]
    if not spoken:
        return "asking the registry"
    last = spoken[-1]
    if last.startswith("Installing coll"):
        return f"installing {last.count(',') + 1} packages"
    if last.startswith("Building wheel"):
        return f"unpacking and packing {last.split()[3]}"
    fetched = sum(line.startswith("Downloading") for line in lines)
    if last.startswith("Collecting"):
        return f"{fetched} fetched, looking for {re.split('[^A-Za-z0-9_-]', last.split()[1])[0]}"
    name, size = last.split()[1].rsplit("/", 1)[-1].split("-")[0], last.partition("(")[2].rstrip(")")
    return f"{fetched} fetched, {name} of {size} ({directory_megabytes(temporary)} MB so far)"


def directory_megabytes(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            pass  # gone in the meantime
    return total // MEGABYTE


def compile_progress(build: Path) -> str:
    """By size: the largest files come first, and take longest."""
    sizes = {path.stem: path.stat().st_size for path in build.glob("c/**/*.c")}
    done = sum(sizes.get(path.stem, 0) for path in build.glob("temp*/**/*.o"))
    if not done:
        return "mypyc translates to C"
    return f"{100 * done // sum(sizes.values())} % of {sum(sizes.values()) / MEGABYTE:.0f} MB of C"
