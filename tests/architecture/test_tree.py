"""The tree stays tidy: docstrings, sizes, no built files, no paths of one machine."""

from __future__ import annotations

import ast
import re

from tests.architecture.source_tree import ROOT, compiled_names, modules, text_files

LINES_MAX = 800
FUNCTION_LINES_MAX = 90
POSITIONAL_MAX = 7
# Written in pieces, so that this file does not find itself.
MACHINE_PATHS = re.compile(
    r"(?<![\w.$}~])/(?:" + "|".join(["tm" + "p", "wo" + "rk", "ho" + "me", "ro" + "ot"]) + r")/[\w.-]+"
)
# Paths that Apache Kafka itself uses as defaults are facts, not our machine.
KAFKA_DEFAULTS = ("/tm" + "p/kafka-logs", "/tm" + "p/kraft")


def test_every_module_begins_with_a_docstring() -> None:
    """Its first line is the module's entry in the file map."""
    missing = [
        str(module.path.relative_to(ROOT))
        for module in modules()
        if module.text.strip() and not module.generated and not (ast.get_docstring(module.tree) or "").strip()
    ]
    assert not missing, f"modules without a docstring: {missing}"


def test_no_built_file_lies_beside_the_sources() -> None:
    """A stale extension module would win over its source silently."""
    built = [path for folder in ("src", "tests", "tools") for path in (ROOT / folder).rglob("*.so")]
    assert not built, f"remove {[str(path.relative_to(ROOT)) for path in built]}"


def test_modules_have_one_subject() -> None:
    long = {
        str(module.path.relative_to(ROOT)): module.text.count("\n")
        for module in modules()
        if not module.generated and module.text.count("\n") > LINES_MAX
    }
    assert not long, f"modules of more than {LINES_MAX} lines: {long}"


def test_functions_fit_a_screen() -> None:
    long = []
    for module in modules():
        if module.generated:
            continue
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno
                if lines > FUNCTION_LINES_MAX:
                    long.append(f"{module.where(node)} {node.name}: {lines} lines")
    assert not long, f"functions of more than {FUNCTION_LINES_MAX} lines:\n" + "\n".join(long)


def test_no_call_is_a_row_of_values_without_names() -> None:
    """Eight parameters and more are told by name. A command's function is called by click, by name as well."""
    many = []
    for module in modules():
        if module.generated:
            continue
        for node in module.nodes:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            is_command = any(ast.unparse(decorator).startswith("click.command(") for decorator in node.decorator_list)
            positional = [argument.arg for argument in node.args.posonlyargs + node.args.args]
            count = len(positional) - (positional[:1] in (["self"], ["cls"]))
            if count > POSITIONAL_MAX and not is_command:
                many.append(f"{module.where(node)} {node.name}: {count}")
    assert not many, f"functions of more than {POSITIONAL_MAX} positional parameters:\n" + "\n".join(many)


def test_no_path_of_one_machine_is_written_down() -> None:
    """Tests use temporary folders that pytest gives them; nothing else needs an absolute path."""
    found = []
    for path in text_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for match in MACHINE_PATHS.findall(line):
                if not match.startswith(KAFKA_DEFAULTS):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {match}")
    assert not found, "\n".join(found)


def test_the_list_of_compiled_modules_is_true() -> None:
    """Every name in compiled_modules.txt is a module, and none is named twice."""
    names = compiled_names()
    known = {module.name for module in modules()}
    assert [name for name in names if name not in known] == []
    assert len(names) == len(set(names))


def test_compiled_modules_keep_to_what_mypyc_does_well() -> None:
    """No nested functions, generators, dataclasses or protocols where the code is meant to be fast."""
    wrong = []
    names = set(compiled_names())
    for module in modules():
        if module.name not in names:
            continue
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef):
                inner = [child for child in ast.walk(node) if child is not node]
                for child in inner:
                    if isinstance(child, ast.FunctionDef | ast.Lambda):
                        wrong.append(f"{module.where(child)}: a function inside {node.name}")
                    elif isinstance(child, ast.Yield | ast.YieldFrom | ast.Await):
                        wrong.append(f"{module.where(child)}: a generator, {node.name}")
            elif isinstance(node, ast.ClassDef):
                decorators = {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}
                bases = {ast.unparse(base).split("[")[0] for base in node.bases}
                if decorators & {"dataclass", "dataclasses.dataclass"} or "Protocol" in bases:
                    wrong.append(f"{module.where(node)}: {node.name} is a dataclass or a protocol")
    assert not wrong, "\n".join(wrong)


def test_compiled_functions_catch_different_errors_under_different_names() -> None:
    """A compiled local variable has one type, that of the first `except … as`: another error of the same name would be
    refused with a TypeError just where it is to be handled."""
    wrong = []
    names = set(compiled_names())
    for module in modules():
        for node in module.nodes if module.name in names else ():
            if isinstance(node, ast.FunctionDef):
                caught: dict[str, str] = {}
                for child in ast.walk(node):
                    if isinstance(child, ast.ExceptHandler) and child.name is not None and child.type is not None:
                        kinds = ast.unparse(child.type)
                        if caught.setdefault(child.name, kinds) != kinds:
                            wrong.append(f"{module.where(child)}: {child.name} is {kinds} and {caught[child.name]}")
    assert not wrong, "\n".join(wrong)
