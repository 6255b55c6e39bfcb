"""Builds Moldau: with setuptools and mypyc where modules are compiled, with flit_core where they are not.

An install from source on a machine without a C compiler, or with MOLDAU_COMPILE=0, fetches nothing but flit_core, which
is small, and takes seconds. What compiling needs is the dependency group `compile` of pyproject.toml.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

Settings = dict[str, Any] | None

ROOT = Path(__file__).resolve().parent.parent


def compiled() -> Any:
    """That of setuptools, which is there only where it was asked for."""
    from setuptools import build_meta

    return build_meta


def interpreted() -> Any:
    from flit_core import buildapi

    return buildapi


# Wheels


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return group("compile") if will_compile() else []


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    backend = compiled() if will_compile() else interpreted()
    name: str = backend.prepare_metadata_for_build_wheel(metadata_directory, config_settings)
    return name


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    name: str
    if will_compile():
        name = compiled().build_wheel(wheel_directory, config_settings, metadata_directory)
        return name
    if os.environ.get("MOLDAU_COMPILE") != "0":
        print("moldau: no C compiler found; installing the same code interpreted (slower)", file=sys.stderr, flush=True)
    name = interpreted().build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


# For those who change the sources: never compiled, since extension modules would lie beside them.


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return []


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Settings = None) -> str:
    name: str = interpreted().prepare_metadata_for_build_editable(metadata_directory, config_settings)
    return name


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    name: str = interpreted().build_editable(wheel_directory, config_settings, metadata_directory)
    return name


# The sdist: what MANIFEST.in says.


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    return group("sdist")


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    name: str = compiled().build_sdist(sdist_directory, config_settings)
    return name


def will_compile() -> bool:
    choice = os.environ.get("MOLDAU_COMPILE", "")
    if choice in ("0", "1"):
        return choice == "1"
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    return shutil.which(command[0]) is not None


def group(name: str) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed: list[str] = project["dependency-groups"][name]
    return needed
