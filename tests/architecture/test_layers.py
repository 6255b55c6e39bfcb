"""Imports go downward only, and nothing below the line reaches the outside world."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.source_tree import ALLOWED, BELOW, PACKAGE, Module, modules

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
# The state machines: every input carries its time.
MACHINES = {"raft", "controller", "coordinator", "replication", "quota", "security", "telemetry"}
CLOCKS = {"Callable[[], int]", "Callable[[], float]"}
KEPT_TIMES = {"now_ms", "_now_ms", "now_s", "_now_s"}
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
    refuse_circles(modules_needed(modules()))


def test_folders_side_by_side_do_not_need_each_other_in_a_circle() -> None:
    """What lies beside them in their package, faces above and small values below, may be on either side."""
    graph: dict[str, set[str]] = {}
    for name, needed in modules_needed(modules()).items():
        for other in needed:
            if (pair := folders_where_they_part(name, other)) is not None:
                graph.setdefault(pair[0], set()).add(pair[1])
    refuse_circles(graph)


def modules_needed(among: Iterable[Module]) -> dict[str, set[str]]:
    """For each module those it needs; a package is needed by who imports something that its `__init__` has."""
    known = {module.name.removesuffix(".__init__"): module for module in among}
    graph = {}
    for name, module in known.items():
        wanted = module.imports_at_runtime()
        needed = {other for other in wanted & set(known) if known[other].path.name != "__init__.py"}
        # `from package import module` names both; the package itself is nothing that anybody waits for then.
        needed |= {other.rpartition(".")[0] for other in wanted - set(known)} & wanted & set(known)
        graph[name] = needed - {name}
    return graph


def folders_where_they_part(name: str, other: str) -> tuple[str, str] | None:
    """The two folders of one package that two modules are in; None where one lies outside of all such folders."""
    ours, theirs = name.split("."), other.split(".")
    shared = next((at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), 0)
    if shared < 2 or shared >= len(ours) - 1 or shared >= len(theirs) - 1:
        return None
    return ".".join(ours[: shared + 1]), ".".join(theirs[: shared + 1])


def refuse_circles(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def module_of(name: str, text: str) -> Module:
    return Module(PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py"), text, ast.parse(text))


def test_a_circle_is_found() -> None:
    """Within one folder, through a function, and through what the `__init__` of a package has."""
    one = module_of("moldau.sim.node.one", "from moldau.sim.node import two")
    two = module_of("moldau.sim.node.two", "def f():\n    from moldau.sim.node.one import x")
    face = module_of("moldau.sim.node.__init__", "from moldau.sim.node.three import x")
    three = module_of("moldau.sim.node.three", "from moldau.sim.node import x")
    for circle in ([one, two], [face, three]):
        with pytest.raises(pytest.fail.Exception, match=" imports "):
            refuse_circles(modules_needed(circle))
    refuse_circles(modules_needed([one, face]))


def test_folders_part_where_the_names_do() -> None:
    assert folders_where_they_part("moldau.sim.node.a", "moldau.sim.share.b") == ("moldau.sim.node", "moldau.sim.share")
    for other in ("moldau.sim.node.b", "moldau.sim.b", "moldau.client.share.b"):
        assert folders_where_they_part("moldau.sim.node.a", other) is None


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
        for node in module.nodes:
            if not isinstance(node, ast.Call):
                continue
            function = node.func
            if isinstance(function, ast.Name) and function.id in BANNED_CALLS:
                wrong.append(f"{module.where(node)}: calls {function.id}() below the line")
            elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
                if (function.value.id, function.attr) in BANNED_METHODS:
                    wrong.append(f"{module.where(node)}: calls {function.value.id}.{function.attr}() below the line")
    assert not wrong, "\n".join(wrong)


def test_a_state_machine_is_told_the_time_with_every_input() -> None:
    """It neither asks a function for it nor keeps what it was told last, which may be another input's time."""
    wrong = []
    for module in modules():
        if module.layer not in MACHINES:
            continue
        for node in module.nodes:
            if isinstance(node, ast.Subscript) and ast.unparse(node) in CLOCKS:
                wrong.append(f"{module.where(node)}: {ast.unparse(node)} may be a clock")
            elif isinstance(node, ast.Attribute) and node.attr in KEPT_TIMES:
                wrong.append(f"{module.where(node)}: {ast.unparse(node)} is a time that was kept")
            elif isinstance(node, ast.ClassDef):
                fields = [field.target for field in node.body if isinstance(field, ast.AnnAssign)]
                kept = [field for field in fields if isinstance(field, ast.Name) and field.id in KEPT_TIMES]
                wrong += [f"{module.where(field)}: {node.name}.{field.id} is a time that was kept" for field in kept]
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
