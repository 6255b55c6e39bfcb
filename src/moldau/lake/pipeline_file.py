"""Pipelines in TOML: reads a file into a Pipeline, and writes one to begin with."""

from __future__ import annotations

import difflib
import importlib.util
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from moldau.lake.errors import LakeError
from moldau.lake.pipeline import (
    FileSource,
    Pipeline,
    PythonStep,
    Sink,
    Source,
    SqlStep,
    Step,
    TableSink,
    TableSource,
    TopicSink,
    TopicSource,
)

T = TypeVar("T")

TEMPLATE = """# A pipeline: `moldau pipeline validate {file}`, then `moldau pipeline run {file}`.

[pipeline]
name = "{name}"
# Checkpoints, the lock and logs of runs, beside this file.
state = "{name}.state"
interval_seconds = 10

[kafka]
"bootstrap.servers" = {address}

# What is read. A topic is read as a stream, tables and files as they are when the run begins.
[sources.orders]
topic = "orders"
value_format = "json"
value_schema = "id BIGINT, customer STRING, amount DOUBLE"

# [sources.customers]
# table = "lake/customers"
#
# [sources.countries]
# files = "countries/*.csv"
# format = "csv"
# options = {{ header = "true" }}

# What is made of it: SQL over sources and earlier steps, or a function `def large(orders): ...` in a Python file.
[[steps]]
name = "large"
sql = "SELECT key, value.customer, value.amount, timestamp FROM orders WHERE value.amount > 100"

# [[steps]]
# name = "scored"
# python = "steps.py:score"
# inputs = ["large"]

# Where it goes, exactly once.
[[sinks]]
name = "lake"
from = "large"
table = "lake/large_orders"
format = "delta"
partition_by = ["date"]

# [[sinks]]
# name = "alerts"
# from = "scored"
# topic = "alerts"
"""

_PIPELINE = ("name", "state", "interval_seconds")
_TOP = ("pipeline", "kafka", "spark", "sources", "steps", "sinks")


def read_pipeline(path: str) -> Pipeline:
    """The pipeline of a file, checked; paths in it are meant from the file's directory."""
    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except FileNotFoundError:
        raise LakeError(f"There is no file {path}: `moldau pipeline init {path}` writes one to begin with.") from None
    except tomllib.TOMLDecodeError as error:
        raise LakeError(f"{path} is no TOML: {error}.") from None
    pipeline = _Reader(os.path.dirname(os.path.abspath(path)), path).pipeline(data)
    pipeline.check()
    return pipeline


class _Reader:
    """One file on its way to a pipeline; all complaints name the place in the file."""

    def __init__(self, directory: str, path: str) -> None:
        self._directory = directory
        self._path = path

    def pipeline(self, data: Mapping[str, Any]) -> Pipeline:
        self._check_names("the file", data, _TOP)
        head = self._table(data, "pipeline")
        self._check_names("[pipeline]", head, _PIPELINE)
        name = self._text("[pipeline]", head, "name", os.path.splitext(os.path.basename(self._path))[0])
        interval = head.get("interval_seconds", 10.0)
        if isinstance(interval, bool) or not isinstance(interval, int | float):
            raise self._error("[pipeline]", "interval_seconds must be a number")
        sources = self._table(data, "sources")
        return Pipeline(
            name=name,
            sources=[self._source(key, value) for key, value in sources.items()],
            steps=[self._step(number, item) for number, item in enumerate(self._list(data, "steps"), 1)],
            sinks=[self._sink(number, item) for number, item in enumerate(self._list(data, "sinks"), 1)],
            state=self._place(self._text("[pipeline]", head, "state", f"{name}.state")),
            kafka=self._texts("[kafka]", self._table(data, "kafka")),
            spark=self._texts("[spark]", self._table(data, "spark")),
            interval_s=float(interval),
        )

    def _source(self, name: str, data: Any) -> Source:
        where = f"[sources.{name}]"
        if not isinstance(data, dict):
            raise self._error(where, "it must be a table")
        if "table" in data:
            return self._make(where, TableSource, {**data, "name": name}, {"table": self._place})
        if "files" in data:
            return self._make(where, FileSource, {**data, "name": name}, {"files": self._place})
        if "topic" in data or "pattern" in data:
            return self._make(where, TopicSource, {**data, "name": name}, {})
        raise self._error(where, "it needs a topic, a pattern, a table or files")

    def _step(self, number: int, data: Any) -> Step:
        where = f"step {number}"
        if not isinstance(data, dict):
            raise self._error(where, "it must be a table: write [[steps]]")
        where = f"step {data.get('name', number)}"
        if ("sql" in data) == ("python" in data):
            raise self._error(where, "it needs either sql or python")
        if "sql" in data:
            return self._make(where, SqlStep, data, {})
        self._check_names(where, data, ("name", "python", "inputs"))
        inputs = data.get("inputs", [])
        if not isinstance(inputs, list) or not all(isinstance(item, str) for item in inputs) or not inputs:
            raise self._error(where, "inputs must be a list of names")
        name = self._text(where, data, "name", "")
        return PythonStep(name, self._function(where, self._text(where, data, "python", "")), tuple(inputs))

    def _sink(self, number: int, data: Any) -> Sink:
        where = f"sink {number}"
        if not isinstance(data, dict):
            raise self._error(where, "it must be a table: write [[sinks]]")
        given = dict(data)
        if "from" not in given:
            raise self._error(where, "it needs `from`, the name of a source or a step")
        given["source"] = given.pop("from")
        given.setdefault(
            "name", str(given.get("topic") or os.path.basename(str(given.get("table", number)).rstrip("/")))
        )
        where = f"sink {given['name']}"
        if ("topic" in given) == ("table" in given):
            raise self._error(where, "it needs either a topic or a table")
        if "topic" in given:
            return self._make(where, TopicSink, given, {})
        return self._make(where, TableSink, given, {"table": self._place})

    def _make(self, where: str, kind: Callable[..., T], data: Mapping[str, Any], change: Mapping[str, Any]) -> T:
        """An object of a dataclass from a table, each value of the type that the field has."""
        known = {item.name: item for item in fields(kind)}  # type: ignore[arg-type]
        self._check_names(where, data, tuple(known))
        made: dict[str, Any] = {}
        for name, value in data.items():
            wanted = str(known[name].type)
            if wanted.startswith("Mapping"):
                made[name] = self._texts(f"{where} {name}", value)
            elif wanted.startswith("tuple"):
                items = [value] if isinstance(value, str) else value
                if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
                    raise self._error(where, f"{name} must be a list of texts")
                made[name] = tuple(items)
            else:
                made[name] = self._text(where, data, name, "")
        for name, turn in change.items():
            made[name] = turn(made[name])
        return kind(**made)

    def _function(self, where: str, text: str) -> Callable[..., Any]:
        file, colon, name = text.rpartition(":")
        if not colon or not file:
            raise self._error(where, f"python is {text!r}: write file.py:function")
        place = self._place(file)
        if not os.path.isfile(place):
            raise self._error(where, f"there is no file {place}")
        spec = importlib.util.spec_from_file_location(
            f"moldau_pipeline_{os.path.splitext(os.path.basename(file))[0]}", place
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise self._error(where, f"{file} cannot be imported: {type(error).__name__}: {error}") from error
        found = getattr(module, name, None)
        if not callable(found):
            raise self._error(where, f"{file} has no function {name}")
        function: Callable[..., Any] = found
        return function

    def _place(self, path: str) -> str:
        return path if "://" in path else os.path.join(self._directory, path)

    def _table(self, data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        found = data.get(name, {})
        if not isinstance(found, dict):
            raise self._error(f"[{name}]", "it must be a table")
        return found

    def _list(self, data: Mapping[str, Any], name: str) -> list[Any]:
        found = data.get(name, [])
        if not isinstance(found, list):
            raise self._error(f"[[{name}]]", f"write two brackets on each side: [[{name}]]")
        return found

    def _text(self, where: str, data: Mapping[str, Any], name: str, default: str) -> str:
        value = data.get(name, default)
        if not isinstance(value, str):
            raise self._error(where, f"{name} must be a text in quotes")
        return value

    def _texts(self, where: str, data: Any) -> dict[str, str]:
        if not isinstance(data, dict):
            raise self._error(where, "it must be a table of names and values")
        found = {}
        for name, value in _flat(data):
            if isinstance(value, bool):
                value = "true" if value else "false"
            if not isinstance(value, str | int | float):
                raise self._error(where, f"{name} must be a text or a number")
            found[name] = str(value)
        return found

    def _check_names(self, where: str, data: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for name in data:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
                raise LakeError(f"{self._path}, {where}: {name!r} is unknown; {hint}")

    def _error(self, where: str, problem: str) -> LakeError:
        return LakeError(f"{self._path}, {where}: {problem}.")


def _flat(data: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """bootstrap.servers without quotes is a table in a table to TOML."""
    found: list[tuple[str, Any]] = []
    for name, value in data.items():
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", value))
    return found


def write_template(path: str, address: str = "localhost:9092") -> None:
    """A file to begin with, for the brokers at this address; LakeError if there is one already."""
    name = os.path.splitext(os.path.basename(path))[0]
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(file=os.path.basename(path), name=name, address=json.dumps(address)))
    except FileExistsError:
        raise LakeError(f"{path} exists already: name another file.") from None
