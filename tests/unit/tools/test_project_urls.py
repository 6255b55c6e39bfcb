"""Packages point to the repository that they were published from."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("set_project_urls", ROOT / "tools" / "set_project_urls.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_urls_are_those_of_the_repository_and_nothing_else_changes() -> None:
    before = (ROOT / "pyproject.toml").read_text()
    written = tomllib.loads(load().with_urls(before, "https://forge.example/team/moldau/"))
    urls = written["project"].pop("urls")
    assert written == tomllib.loads(before)
    assert urls["Source"] == "https://forge.example/team/moldau"
    assert urls["Issues"] == "https://forge.example/team/moldau/issues"
    for name in ("Documentation", "Changelog"):
        path = urls[name].removeprefix("https://forge.example/team/moldau/blob/HEAD/")
        assert (ROOT / path).is_file(), f"{name} is not there"


@pytest.mark.parametrize("url", ["", "moldau", "http://forge.example/x", 'https://forge.example/"]'])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(SystemExit):
        load().with_urls((ROOT / "pyproject.toml").read_text(), url)
