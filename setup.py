"""Builds Moldau: compiles the modules of compiled_modules.txt with mypyc where a C compiler is present.

MOLDAU_COMPILE=0 installs pure Python; MOLDAU_COMPILE=1 makes a failing compile an error; without it a failing compile
is reported in one line and the same code is installed interpreted. `moldau --version` tells which of the two it became.
Everything that a build leaves behind goes to a temporary directory (or to MOLDAU_BUILD_BASE), never into the source
tree: a stale extension module beside its source would win silently.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))

from compiled_docs import documented  # noqa: E402

CHOICE = os.environ.get("MOLDAU_COMPILE", "")
# Collecting metadata needs no compiler, and an editable install would put extension modules into the source tree.
COMPILES = bool({"bdist_wheel", "build", "build_ext", "install"} & set(sys.argv))


def build_base() -> Path:
    """Where objects, generated C and wheels in the making go."""
    chosen = os.environ.get("MOLDAU_BUILD_BASE")
    if chosen:
        path = Path(chosen).resolve()
        path.mkdir(parents=True, exist_ok=True)
        return path
    path = Path(tempfile.mkdtemp(prefix="moldau-build-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


BUILD_BASE = build_base()

# Loops over bytes and records. All else calls the interpreter more than it computes; with less effort for that the
# whole compile takes 112 s in place of 135 s.
LOOPS = (
    "records",
    "protocol",
    "storage",
    "client___record",
    "client___produce___accumulator",
    "client___produce___partitioner",
)


def compiled_sources() -> list[str]:
    """The files to compile, in the order of compiled_modules.txt, relative to the project's root."""
    sources = []
    for line in (ROOT / "compiled_modules.txt").read_text().splitlines():
        name = line.split("#")[0].strip()
        if name:
            source = Path("src", *name.split(".")).with_suffix(".py")
            if not (ROOT / source).is_file():
                raise SystemExit(f"compiled_modules.txt names {name}, but there is no {source}")
            sources.append(str(source))
    return sources


def give_up(what: str) -> None:
    """Ends the build when compiling was demanded; otherwise says that the interpreted code is installed."""
    if CHOICE == "1":
        raise SystemExit(f"moldau: {what}; MOLDAU_COMPILE=1 demands compiled modules")
    print(f"moldau: WARNING: {what}; installing the same code interpreted (slower)", file=sys.stderr, flush=True)


def has_compiler() -> bool:
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    return shutil.which(command[0]) is not None


def extensions() -> list[Extension]:
    if CHOICE == "0" or not COMPILES:
        return []
    if not has_compiler():
        give_up("no C compiler found")
        return []
    sources = compiled_sources()
    if not sources:
        return []
    try:
        from mypyc.build import mypycify

        modules: list[Extension] = mypycify(
            # For the compiler, arguments of users are any object: moldau/client/arguments.py says what is wrong.
            [f"--cache-dir={BUILD_BASE / 'mypy-cache'}", "--always-true=FOR_COMPILER", *sources],
            opt_level=os.environ.get("MOLDAU_OPT_LEVEL", "3"),
            debug_level="0",
            multi_file=True,
            group_name="moldau",
            target_dir=str(BUILD_BASE / "c"),
        )
    except (Exception, SystemExit) as failure:  # mypyc reports type errors by leaving the process
        give_up(f"mypyc could not translate the hot modules ({type(failure).__name__}: {failure})")
        return []
    for module in modules:
        module.sources = documented(module.sources, ROOT / "src" / "moldau")
        module.include_dirs.append(str(BUILD_BASE / "c"))
    return modules


def is_loop(source: str) -> bool:
    """Whether a generated C file is worth the compiler's whole effort."""
    name = Path(source).stem.removeprefix("__native_moldau___")
    return name.startswith(LOOPS)


class BuildExtensions(build_ext):
    """Compiles the C files of one extension side by side, and lets go of all extensions when one of them fails."""

    def finalize_options(self) -> None:
        super().finalize_options()
        # Every module has a small extension of its own beside the large one: they fill the gaps that it leaves.
        self.parallel = self.parallel or (os.cpu_count() or 1)

    def build_extensions(self) -> None:
        compile_one_after_the_other = self.compiler.compile
        # mypyc leaves a file alone whose text did not change, so times tell what a kept build directory can reuse.
        headers_changed = max((header.stat().st_mtime for header in BUILD_BASE.glob("c/**/*.h")), default=0.0)

        def compile_file(source: str, output_dir: str, options: dict[str, Any]) -> list[str]:
            objects = self.compiler.object_filenames([source], output_dir=output_dir)
            target = Path(objects[0])
            if target.exists() and target.stat().st_mtime > max(headers_changed, os.path.getmtime(source)):
                return list(objects)
            if not is_loop(source):
                flags = ["-O1" if flag == "-O3" else flag for flag in options.get("extra_postargs") or []]
                options = {**options, "extra_postargs": flags}
            return list(compile_one_after_the_other([source], output_dir=output_dir, **options))

        def compile_side_by_side(sources: list[str], output_dir: str = "", **options: Any) -> list[str]:
            largest_first = sorted(sources, key=os.path.getsize, reverse=True)
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                parts = list(pool.map(lambda source: compile_file(source, output_dir, options), largest_first))
            return [name for part in parts for name in part]

        self.compiler.compile = compile_side_by_side
        super().build_extensions()

    def run(self) -> None:
        try:
            super().run()
        except Exception as failure:
            # A half-built group would not import: its modules load one shared library.
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []
            self.distribution.ext_modules = []
            give_up(f"the C compiler failed ({type(failure).__name__}, its messages are above)")


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildExtensions},
    options={"build": {"build_base": str(BUILD_BASE)}, "egg_info": {"egg_base": str(BUILD_BASE)}},
)
