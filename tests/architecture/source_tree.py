"""The project's files as the architecture tests see them: parsed modules, layers, imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "src" / "moldau"

# What each package may import, besides itself. The order is that of the design, from the bottom up.
ALLOWED_BELOW: dict[str, set[str]] = {
    "protocol": set(),
    "config": {"protocol"},
    "records": {"protocol", "config"},
    "security": {"protocol", "config"},
    "quota": set(),
    "metrics": {"protocol"},
    "storage": {"protocol", "config", "records"},
    "raft": {"protocol", "config", "records"},
    "metadata": {"protocol", "config", "records"},
    "replication": {"protocol", "config", "records", "quota", "metrics", "storage", "metadata"},
    "controller": {"protocol", "config", "records", "quota", "security", "metadata"},
    "coordinator": {"protocol", "config", "records", "metrics", "metadata"},
    "telemetry": {"protocol", "config", "records"},
}
ALLOWED_BELOW["node"] = set(ALLOWED_BELOW)
ALLOWED_BELOW["api"] = set(ALLOWED_BELOW)
BELOW = set(ALLOWED_BELOW)
ALLOWED_ABOVE: dict[str, set[str]] = {
    "net": BELOW,
    "server": BELOW | {"net"},
    "client": {"protocol", "config", "records", "security"},
    "facts": {"protocol", "config", "client"},
    "cli": BELOW | {"server", "client", "facts", "actions", "console", "mcp", "testing", "spark", "lake"},
    "spark": {"protocol", "config", "records", "client"},
    "lake": {"protocol", "config", "records", "client", "spark"},
    "actions": {"protocol", "config", "records", "storage", "client", "facts"},
    "console": {"protocol", "client", "facts", "actions", "lake"},
    "mcp": {"protocol", "client", "facts", "actions"},
    "testing": {"protocol", "config", "client"},
    "sim": BELOW | {"client"},
}
ALLOWED = ALLOWED_BELOW | ALLOWED_ABOVE


@dataclass(frozen=True)
class Module:
    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return ".".join(self.path.relative_to(PACKAGE.parent).with_suffix("").parts)

    @property
    def layer(self) -> str:
        """The package below moldau that it belongs to; empty for moldau's own top-level modules."""
        parts = self.path.relative_to(PACKAGE).parts
        return parts[0] if len(parts) > 1 else ""

    @property
    def generated(self) -> bool:
        return "generated" in self.text.split("\n", 1)[0].lower()

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the tree, as `ast.walk` gives it: most tests want to see everything, and to walk takes seconds."""
        return tuple(ast.walk(self.tree))

    def where(self, node: ast.AST) -> str:
        return f"{self.path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"

    def imports(self) -> Iterator[tuple[ast.AST, str]]:
        """Every import anywhere in the module, as an absolute dotted name."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node, alias.name
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    package = self.name.split(".")[: -node.level]
                    base = ".".join([*package, base]).rstrip(".")
                yield node, base
                for alias in node.names:
                    yield node, f"{base}.{alias.name}"

    def imports_at_runtime(self) -> set[str]:
        """What is imported when the module is, or when one of its functions is called; not what only types need."""
        only_types: set[ast.AST] = set()
        for node in self.nodes:
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                only_types.update(inner for statement in node.body for inner in ast.walk(statement))
        return {name for node, name in self.imports() if node not in only_types}


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        found.append(Module(path, text, ast.parse(text, str(path))))
    return tuple(found)


def compiled_names() -> list[str]:
    lines = (ROOT / "compiled_modules.txt").read_text().splitlines()
    return [name for name in (line.split("#")[0].strip() for line in lines) if name]


def text_files() -> Iterator[Path]:
    """The files that belong to the project, without environments, caches and generated data."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") and part != ".ci" for part in parts)
        if path.is_file() and not hidden and not {"__pycache__", "moldau-data", "build", "dist"} & set(parts):
            yield path
