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
CLOCKS = {"Callable[[], int]", "Callable[[], float]"}
# Functions without arguments that give a number which is no time, by the names of the parameters that take them.
NO_CLOCKS = {"broker_epoch", "interval_ms"}
CLOCK_NAMES = {"clock", "_clock", "now", "_now"}
KEPT_TIMES = {"now_ms", "_now_ms", "now_s", "_now_s", "turn_ms", "_turn_ms"}
# Who may keep the time of the turn, and why. Everyone else is told it, with every input.
KEEPERS = {
    "moldau.node.node": "every turn begins here, and what logs and disk call back in it gets its time",
    "moldau.node.metadata_node": "the same for the metadata log: syncs, commits and changes of the leader",
    "moldau.quota.client_quotas": "responses are charged where they are made, often in the turn of another input",
}
# A request is an input, and has the time at which it came.
CARRIER = "moldau.api.call"
CARRIED_BY = {"call", "_call"}
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


def test_below_the_line_the_time_is_told_with_every_input() -> None:
    """Nobody asks a function for it nor keeps what was told last, which may be another input's time."""
    wrong = []
    for module in below_the_line():
        wrong += clocks_in(module)
        if module.name not in KEEPERS and module.name != CARRIER:
            wrong += kept_times_in(module)
    assert not wrong, "\n".join(wrong)


def test_who_may_keep_the_time_does() -> None:
    """An exception that nobody needs any more is none."""
    keeping = {module.name for module in below_the_line() if kept_times_in(module)}
    assert keeping == {*KEEPERS, CARRIER}


def clocks_in(module: Module) -> list[str]:
    """Functions without arguments that may tell the time: as a type, called by their name, or made of a kept time."""
    no_clocks = {
        inner
        for node in module.nodes
        if isinstance(node, ast.arg) and node.arg in NO_CLOCKS and node.annotation is not None
        for inner in ast.walk(node.annotation)
    }
    found = []
    for node in module.nodes:
        if isinstance(node, ast.Subscript) and ast.unparse(node) in CLOCKS and node not in no_clocks:
            found.append(f"{module.where(node)}: {ast.unparse(node)} may be a clock")
        elif isinstance(node, ast.Call) and last_name(node.func) in CLOCK_NAMES:
            found.append(f"{module.where(node)}: {ast.unparse(node)} asks a clock")
        elif isinstance(node, ast.Lambda) and not node.args.args and last_name(node.body) in KEPT_TIMES:
            found.append(f"{module.where(node)}: {ast.unparse(node)} is a clock")
    return found


def kept_times_in(module: Module) -> list[str]:
    found = []
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and node.attr in KEPT_TIMES and last_name(node.value) not in CARRIED_BY:
            found.append(f"{module.where(node)}: {ast.unparse(node)} is a time that was kept")
        elif isinstance(node, ast.ClassDef):
            fields = [field.target for field in node.body if isinstance(field, ast.AnnAssign)]
            kept = [field for field in fields if isinstance(field, ast.Name) and field.id in KEPT_TIMES]
            found += [f"{module.where(field)}: {node.name}.{field.id} is a time that was kept" for field in kept]
    return found


def last_name(node: ast.AST) -> str:
    """`c` of `c` and of `a.b.c`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    def __init__(self, time_of: Callable[[], int] | None) -> None: ...",
        "class A:\n    time_of: Callable[[], float]",
        "def f(clock):\n    return clock()",
        "class A:\n    def f(self):\n        return self._clock() + 1",
        "class A:\n    def f(self):\n        return B(lambda: self._now_ms)",
    ],
)
def test_a_clock_is_found(text: str) -> None:
    assert len(clocks_in(module_of("moldau.node.one", text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    def poll(self, now_ms):\n        self._now_ms = now_ms",
        "class A:\n    def f(self):\n        return self.metadata.now_ms",
        "class A:\n    now_ms: int",
        "def f(quotas, now_ms):\n    quotas.turn_ms = now_ms",
    ],
)
def test_a_kept_time_is_found(text: str) -> None:
    assert len(kept_times_in(module_of("moldau.node.one", text))) == 1


def test_what_only_looks_like_a_clock_or_a_kept_time_is_none() -> None:
    text = """
class A:
    def __init__(self, broker_epoch: Callable[[], int], call: Call) -> None:
        self._call = call
        self.clock = FetchClock(call.now_ms)

    def poll(self, now_ms: int) -> int:
        self._seen_ms = now_ms
        self._later(lambda: self.f(self._seen_ms))
        return self._call.now_ms + now_ms
"""
    module = module_of("moldau.node.one", text)
    assert clocks_in(module) == [] and kept_times_in(module) == []


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
