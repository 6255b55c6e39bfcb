"""Names of certificates as Java writes them, and principals as Kafka's rules make them: thousands at random."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from moldau.config.definitions import ConfigError
from moldau.security.der import element_at
from moldau.security.distinguished_names import distinguished_name
from moldau.security.principal_rules import parse_principal_rules
from tests.interop.kafka_oracle import LIBS
from tests.pace import patience

pytestmark = pytest.mark.interop

PROBE = Path(__file__).parent / "NameProbe.java"
OTHER_NUMBERS = [bytes.fromhex(text) for text in ("550406", "550407", "550408", "550409", "55040c", "550405", "2a0304")]
NUMBERS = [bytes([0x55, 4, 3]), bytes([0x55, 4, 10]), bytes.fromhex("0992268993f22c640119"), *OTHER_NUMBERS]
CHARACTERS = [*" abcXYZ019,=+<>#;\"\\./-_@'():?*&%$!|~^äßΩ中\r\n\0\t", "  ", " ,"]
TAGS = [0x0C] * 6 + [0x13] * 4 + [0x16, 0x14, 0x1E, 0x1B, 0x04]
ENCODINGS = {0x13: "ascii", 0x16: "ascii", 0x1B: "ascii", 0x14: "latin-1", 0x1E: "utf-16-be"}

PATTERNS = [
    "^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$",
    "^CN=([^,]+),.*$",
    "CN=(.*?)",
    ".*",
    "(.*)",
    r"^CN=(\\w+),OU=(\\w+).*$",
    r"^CN=(\w+),OU=(\w+).*$",
    r"^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$",
    r"CN=a\/b.*",
    r"^CN=(\p{Alpha}+)(,.*)?$",
    "^CN=(?<user>[a-z]+),.*",
    "",
]
REPLACEMENTS = [
    "$1",
    "$1@$2",
    "$12",
    "$3",
    "x",
    "",
    r"\$1",
    r"a\/b$1",
    "$0",
    "${user}",
    "$",
    "$1.$2.$3.$4",
    r"\\",
    "$10",
]
NAMES = [
    "CN=anna,OU=Services,O=Org,C=DE",
    "CN=Anna",
    "CN=a/b,O=x",
    "CN=bert,O=Org",
    "OU=x,CN=carl.d,O=y",
    "",
    "CN=x,OU=y",
]


def der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    return bytes([tag]) + (bytes([size]) if size < 0x80 else b"\x82" + size.to_bytes(2, "big")) + content


def random_name(rng: random.Random) -> bytes:
    def attribute() -> bytes:
        text = "".join(rng.choice(CHARACTERS) for _ in range(rng.randrange(9)))
        tag = rng.choice(TAGS)
        return der(0x30, der(6, rng.choice(NUMBERS)), der(tag, text.encode(ENCODINGS.get(tag, "utf-8"), "ignore")))

    parts = [[attribute() for _ in range(rng.choice((1, 1, 1, 2)))] for _ in range(rng.randrange(4))]
    return der(0x30, *(der(0x31, *attributes) for attributes in parts))


def random_rules(rng: random.Random) -> str:
    rules = []
    for _ in range(rng.randrange(1, 4)):
        kind = rng.randrange(8)
        if kind == 0:
            rules.append("DEFAULT")
        elif kind == 1:
            rules.append(rng.choice(("", " ")))
        else:
            rules.append(f"RULE:{rng.choice(PATTERNS)}/{rng.choice(REPLACEMENTS)}/{rng.choice(('', '', 'L', 'U'))}")
    return rng.choice((",", " , ", ",\n")).join(rules)


def ask_java(folder: Path, lines: list[str]) -> list[str | None]:
    """What it answers to each, None where it answers with an exception."""
    file = folder / "questions.txt"
    file.write_text("\n".join(lines) + "\n")
    command = ["java", "-cp", f"{LIBS}/*", str(PROBE), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(60))
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines), done.stderr
    return [None if answer.startswith("!") else bytes.fromhex(answer).decode() for answer in answers]


def test_names_are_written_as_java_writes_them(kafka_tools: None, tmp_path: Path) -> None:
    rng = random.Random(25)
    names = [random_name(rng) for _ in range(3000)]
    answers = ask_java(tmp_path, [f"name {name.hex()}" for name in names])
    for name, answer in zip(names, answers, strict=True):
        assert distinguished_name(element_at(name)) == answer, name.hex()


def mapped(rules: str, name: str) -> str | None:
    try:
        return parse_principal_rules(rules).principal_name(name)
    except ConfigError:
        return None


def test_rules_make_the_principals_that_kafka_makes(kafka_tools: None, tmp_path: Path) -> None:
    rng = random.Random(26)
    cases = [(random_rules(rng), rng.choice(NAMES)) for _ in range(5000)]
    answers = ask_java(tmp_path, [f"rule {rules.encode().hex()} {name.encode().hex()}" for rules, name in cases])
    different = [
        f"{rules!r} of {name!r}: {mapped(rules, name)!r} instead of {answer!r}"
        for (rules, name), answer in zip(cases, answers, strict=True)
        if mapped(rules, name) != answer
    ]
    assert not different, f"{len(different)}:\n" + "\n".join(different[:20])
