"""kcat against Moldau: listing, producing and consuming from the shell."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.interop.nodes import Node
from tests.pace import patience

KCAT = shutil.which("kcat") or shutil.which("kafkacat")
pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed (Debian: apt install kcat)")


def kcat(node: Node, *arguments: str, text: str = "") -> str:
    done = subprocess.run(
        [str(KCAT), "-b", node.bootstrap, *arguments], input=text, capture_output=True, text=True, timeout=patience(30)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_piped_in_comes_out(moldau_server: Node, topic: str, codec: str) -> None:
    lines = [f"key{i}:value {i}" for i in range(50)]
    kcat(
        moldau_server, "-P", "-t", topic, "-p", "0", "-K:", "-z", codec, "-H", "from=kcat", text="\n".join(lines) + "\n"
    )
    output = kcat(moldau_server, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o %k:%s %h\n")
    assert output.splitlines() == [f"{i} {line} from=kcat" for i, line in enumerate(lines)]


def test_null_values_and_json_output(moldau_server: Node, topic: str) -> None:
    kcat(moldau_server, "-P", "-t", topic, "-p", "0", "-K:", "-Z", text="gone:\nkept:1\n")
    output = kcat(moldau_server, "-C", "-t", topic, "-p", "0", "-o", "0", "-e", "-q", "-J")
    assert [(row["key"], row["payload"]) for row in map(json.loads, output.splitlines())] == [
        ("gone", None),
        ("kept", "1"),
    ]


def test_offsets_from_the_end_and_by_time(moldau_server: Node, topic: str) -> None:
    kcat(moldau_server, "-P", "-t", topic, "-p", "0", text="".join(f"{i}\n" for i in range(10)))
    assert kcat(moldau_server, "-C", "-t", topic, "-p", "0", "-o", "-3", "-e", "-q").split() == ["7", "8", "9"]
    assert kcat(moldau_server, "-Q", "-t", f"{topic}:0:0").strip() == f"{topic} [0] offset 0"
    assert kcat(moldau_server, "-Q", "-t", f"{topic}:0:-1").strip() == f"{topic} [0] offset 10"


def test_the_listing_shows_broker_and_topics(moldau_server: Node, topic: str) -> None:
    kcat(moldau_server, "-P", "-t", topic, text="x\n")
    listing = json.loads(kcat(moldau_server, "-L", "-J"))
    assert [broker["id"] for broker in listing["brokers"]] == [1]
    assert listing["brokers"][0]["name"] == moldau_server.bootstrap
    assert topic in [row["topic"] for row in listing["topics"]]
