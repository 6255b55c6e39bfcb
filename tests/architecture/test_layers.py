"""Imports go downward only, and nothing below the line reaches the outside world."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.source_tree import ALLOWED, BELOW, Module, modules

# Clocks, chance, threads, sockets, processes, files: all of it is handed in from above the line.
BANNED_BELOW = {
    "asyncio",
    "fcntl",
    "glob",
    "io",
    "mmap",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
}
PIPELINE = {"spark", "lake"}
BANNED_CALLS = {"open", "input", "print", "eval", "exec"}
BANNED_METHODS = {("datetime", "now"), ("datetime", "utcnow"), ("date", "today"), ("uuid", "uuid1"), ("uuid", "uuid4")}


def below_the_line() -> list[Module]:
    return [module for module in modules() if module.layer in BELOW]


def test_imports_go_downward_only() -> None:
    """Each package imports only what its place in the design allows."""
    wrong = []
    for module in modules():
        allowed = ALLOWED.get(module.layer)
        if allowed is None:
            continue
        for node, name in module.imports():
            parts = name.split(".")
            if parts[0] != "moldau" or len(parts) < 2 or parts[1] not in ALLOWED:
                continue
            if parts[1] != module.layer and parts[1] not in allowed:
                wrong.append(f"{module.where(node)}: {module.layer} must not import {parts[1]}")
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_no_module_needs_itself_through_others() -> None:
    """Neither between packages nor within one; an import in a function counts, one for types alone does not."""
    known = {module.name.removesuffix(".__init__"): module for module in modules()}
    graph = {}
    for name, module in known.items():
        wanted = module.imports_at_runtime()
        # `from package import module` names both; the package itself is nothing that anybody waits for.
        graph[name] = {other for other in wanted & set(known) if known[other].path.name != "__init__.py"} - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_every_package_has_a_place_in_the_design() -> None:
    """A new package must be entered in the table of what it may import."""
    unknown = {module.layer for module in modules()} - set(ALLOWED) - {""}
    assert not unknown, f"add to ALLOWED in source_tree.py: {sorted(unknown)}"


def test_nothing_below_the_line_reaches_the_outside_world() -> None:
    """Sockets, threads, clocks, chance and files are handed in, never fetched."""
    wrong = []
    for module in below_the_line():
        for node, name in module.imports():
            if name.split(".")[0] in BANNED_BELOW:
                wrong.append(f"{module.where(node)}: imports {name.split('.')[0]} below the line")
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_nothing_below_the_line_opens_files_or_asks_the_clock() -> None:
    wrong = []
    for module in below_the_line():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call):
                continue
            function = node.func
            if isinstance(function, ast.Name) and function.id in BANNED_CALLS:
                wrong.append(f"{module.where(node)}: calls {function.id}() below the line")
            elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
                if (function.value.id, function.attr) in BANNED_METHODS:
                    wrong.append(f"{module.where(node)}: calls {function.value.id}.{function.attr}() below the line")
    assert not wrong, "\n".join(wrong)


def test_spark_is_imported_by_the_pipeline_alone() -> None:
    """A broker and a client install and start without pyspark; only the packages of the pipeline may import it."""
    wrong = [
        f"{module.where(node)}: {module.layer or 'moldau'} must not import pyspark"
        for module in modules()
        if module.layer not in PIPELINE
        for node, name in module.imports()
        if name.split(".")[0] == "pyspark"
    ]
    assert not wrong, "\n".join(sorted(set(wrong)))
