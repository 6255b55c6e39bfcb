"""Builds Moldau with setuptools, and asks for the compiler mypyc only where it will be used.

An install from source on a machine without a C compiler, or with MOLDAU_COMPILE=0, fetches nothing but setuptools and
takes seconds. What compiling needs is the dependency group `compile` of pyproject.toml.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from setuptools.build_meta import get_requires_for_build_wheel as what_setuptools_needs

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*what_setuptools_needs(config_settings), *(compile_requirements() if will_compile() else [])]


def will_compile() -> bool:
    choice = os.environ.get("MOLDAU_COMPILE", "")
    if choice in ("0", "1"):
        return choice == "1"
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    return shutil.which(command[0]) is not None


def compile_requirements() -> list[str]:
    project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())
    needed: list[str] = project["dependency-groups"]["compile"]
    return needed
