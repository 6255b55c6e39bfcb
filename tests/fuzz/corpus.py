"""Valid request frames of every API and version, with random values, made with the protocol's own classes.

Which fields a class has, and of which type, is read from the annotations in its source, so that a compiled build is
fuzzed with the same requests. Names and ids are such that no request hits what the good client works on.
"""

from __future__ import annotations

import ast
import functools
import importlib
import random
import struct
from pathlib import Path
from types import ModuleType
from typing import Any

from moldau.protocol.primitives import EncodeError, Message, Writer
from moldau.protocol.records_data import MemoryRecords
from tests.crash.raw import build_batch

MESSAGES = Path(__file__).parents[2] / "src" / "moldau" / "protocol" / "messages"
WORDS = (
    "",
    "decoy",
    "fuzz-a",
    "fuzz-b",
    "no.such.topic",
    "retention.ms",
    "cleanup.policy",
    "delete",
    "-1",
    "86400000",
    "é",
)
DECOY_TOPIC = "decoy"
# Well-formed and hostile: what arithmetic, tables and file names may stumble over.
WILD_INTEGERS = (-128, -2, 127, 255, 32_767, -32_768, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 10**6, 7)
WILD_WORDS = (
    "..",
    "a/b",
    "x" * 300,
    "\x00",
    "decoy\n",
    "__cluster_metadata",
    "__consumer_offsets",
    "\U0001f600",
    "%s{}",
)


@functools.cache
def annotations_of(file_name: str) -> dict[str, dict[str, str]]:
    """class -> field -> annotation, of one generated module."""
    tree = ast.parse((MESSAGES / file_name).read_text())
    found: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                found[node.name] = {
                    argument.arg: ast.unparse(argument.annotation)
                    for argument in item.args.args
                    if argument.annotation is not None and argument.arg != "unknown_tags"
                }
    return found


class Filler:
    """Makes an instance of a message class with random fields."""

    def __init__(self, module: ModuleType, file_name: str, rng: random.Random) -> None:
        self.module = module
        self.annotations = annotations_of(file_name)
        self.rng = rng
        self.wild = False

    def instance(self, class_name: str, density: float) -> Any:
        fields = {
            field: self.value(field, annotation, density)
            for field, annotation in self.annotations[class_name].items()
            if self.rng.random() < density
        }
        return getattr(self.module, class_name)(**fields)

    def value(self, field: str, annotation: str, density: float) -> Any:
        kind = annotation.removesuffix(" | None")
        if kind.startswith("list["):
            element = kind[5:-1]
            return [self.value(field, element, density) for _ in range(self.rng.randint(0, 2))]
        if kind == "bool":
            return self.rng.random() < 0.5
        if kind == "float":
            return self.rng.random() * 100
        if kind == "int":
            return self.integer(field)
        if kind == "str":
            return self.rng.choice(WILD_WORDS if self.wild and self.rng.random() < 0.2 else WORDS)
        if kind == "bytes":
            return self.rng.choice((bytes(16), self.rng.randbytes(16)))
        if kind.endswith("Records"):
            data = build_batch([(1_700_000_000_000, self.rng.randbytes(20)) for _ in range(self.rng.randint(1, 3))])
            return MemoryRecords(data, 0, len(data))
        return self.instance(kind, density)

    def integer(self, field: str) -> int:
        if field.endswith(("broker_id", "node_id", "voter_id", "leader_id", "candidate_id", "replica_id")):
            return 25_000
        if field in ("timeout_ms", "max_wait_ms"):
            return self.rng.randint(0, 5)
        return self.rng.choice(WILD_INTEGERS if self.wild and self.rng.random() < 0.3 else (-1, 0, 0, 1, 2, 3, 5, 100))


def request_modules() -> list[str]:
    return sorted(path.stem for path in MESSAGES.glob("*_request.py"))


def encode_frame(request: Message, version: int, rng: random.Random) -> bytes | None:
    """Header and body without the size; None when the values do not fit the version."""
    writer = Writer()
    writer.int16(request.API_KEY)
    writer.int16(version)
    writer.int32(rng.randint(0, 1 << 30))
    writer.nullable_string(rng.choice(("fuzz", None, "")))
    if version >= request.FIRST_FLEXIBLE_VERSION >= 0:
        writer.uvarint(0)
    try:
        request.encode(writer, version)
    except EncodeError:
        return None
    return writer.to_bytes()


def build_corpus(rng: random.Random, variants: int) -> list[bytes]:
    """For every API and version `variants` requests, from rich to plain."""
    frames: list[bytes] = []
    for name in request_modules():
        module = importlib.import_module(f"moldau.protocol.messages.{name}")
        class_name = "".join(word.capitalize() for word in name.split("_"))
        if not hasattr(module, class_name):
            class_name = next(key for key in annotations_of(f"{name}.py") if key.endswith("Request"))
        request_class = getattr(module, class_name)
        filler = Filler(module, f"{name}.py", rng)
        for version in range(request_class.LOWEST_VERSION, request_class.HIGHEST_VERSION + 1):
            for variant in range(variants):
                filler.wild = variant % 2 == 1
                for density in (1.0, 1.0, 0.8, 0.8, 0.5, 0.5, 0.2, 0.0)[variant % 3 :]:
                    frame = encode_frame(filler.instance(class_name, density), version, rng)
                    if frame is not None:
                        frames.append(frame)
                        break
    return frames


EXTREMES = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff\x0f")


def mutate(frame: bytes, corpus: list[bytes], rng: random.Random) -> bytes:
    """One damaged frame, its size in front of it; sometimes the size is what lies, sometimes nothing is damaged."""
    kind = rng.random()
    if kind < 0.10:
        return struct.pack(">i", len(frame)) + frame
    if kind < 0.15:
        body = rng.randbytes(rng.randint(0, 200))
    elif kind < 0.25:
        body = frame[: rng.randint(0, len(frame))]
    elif kind < 0.33:
        other = rng.choice(corpus)
        body = frame[: rng.randint(0, len(frame))] + other[rng.randint(0, len(other)) :]
    elif kind < 0.40:
        position = rng.randint(0, len(frame))
        body = frame[:position] + rng.randbytes(rng.randint(1, 40)) + frame[position:]
    elif kind < 0.60:
        extreme = rng.choice(EXTREMES)
        position = rng.randint(min(8, len(frame)), len(frame))
        body = frame[:position] + extreme + frame[position + len(extreme) :]
    else:
        damaged = bytearray(frame)
        # The header is left alone in most cases: what lies behind the front door is of more interest.
        first = 0 if rng.random() < 0.1 else min(8, len(damaged) - 1)
        for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
            damaged[rng.randrange(first, len(damaged))] ^= 1 << rng.randrange(8)
        body = bytes(damaged)
    size = len(body)
    if rng.random() < 0.03:
        size = rng.choice((0, 1, size // 2, size + rng.randint(1, 100), -1, 0x7FFFFFFF, -0x80000000, 104_857_601))
    return struct.pack(">i", size) + body
