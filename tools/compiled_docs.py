"""Puts docstrings into compiled modules.

mypyc leaves them out: help() of a class that users call shows nothing. It writes a signature where CPython keeps
the documentation of a class, a method or a property in C. Here a copy of the generated file is made with the docstring
behind the signature, which costs nothing while the program runs.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

# The modules whose classes users have in their hands.
PREFIX = "__native_moldau___client___"

SIGNATURE_END = r'\\n--\\n\\n(?="\))'
METHOD = re.compile(r'\(PyCFunction\)CPyPy_\w+?___(\w+?)___(\w+),\n\s+[A-Z_ |]+, PyDoc_STR\("[^\n]*?' + SIGNATURE_END)
CLASS = re.compile(r'\.tp_doc = PyDoc_STR\("(\w+)\([^\n]*?' + SIGNATURE_END)
PROPERTY = re.compile(r"\(getter\)\w+?___(\w+?)_get_(\w+),\n\s+(?:\(setter\)\w+|NULL),\s+NULL(?=, NULL},)")


def documented(sources: list[str], package: Path) -> list[str]:
    """The C files to compile: documented copies of those whose Python file in package has docstrings for users."""
    return [str(_copy(Path(source), package)) if Path(source).name.startswith(PREFIX) else source for source in sources]


def _copy(source: Path, package: Path) -> Path:
    parts = source.stem.removeprefix(PREFIX).split("___")
    docs = dict(docstrings(package.joinpath("client", *parts).with_suffix(".py").read_text()))
    text = insert(source.read_text(), docs)
    copy = source.parent / "documented" / source.name
    copy.parent.mkdir(exist_ok=True)
    if not copy.exists() or copy.read_text() != text:
        copy.write_text(text)
    return copy


def docstrings(python: str) -> Iterator[tuple[str, str]]:
    """The docstring of each class and, as Class.name, of its methods and properties."""
    for node in ast.parse(python).body:
        if not isinstance(node, ast.ClassDef):
            continue
        if text := ast.get_docstring(node):
            yield node.name, inspect.cleandoc(text)
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef) and (text := ast.get_docstring(inner)):
                yield f"{node.name}.{inner.name}", inspect.cleandoc(text)


def insert(c_text: str, docs: dict[str, str]) -> str:
    """The C file with the docstrings in their places."""

    def behind_signature(found: re.Match[str]) -> str:
        doc = docs.get(".".join(found.groups()))
        return found.group() if doc is None else f'{found.group()}" "{c_escaped(doc)}'

    def in_getset(found: re.Match[str]) -> str:
        doc = docs.get(".".join(found.groups()))
        return found.group() if doc is None else f'{found.group()[: -len("NULL")]}"{c_escaped(doc)}"'

    return PROPERTY.sub(in_getset, CLASS.sub(behind_signature, METHOD.sub(behind_signature, c_text)))


def c_escaped(text: str) -> str:
    """As part of a string in C: everything unusual in octal, which has a fixed width."""
    plain = [chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}" for byte in text.encode()]
    return "".join(plain)
