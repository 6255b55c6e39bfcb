"""Every recorded run of the real kafka-dump-log whose files were kept: the same output from ours."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.unit.cli.test_dump_log import run

FACTS = Path(__file__).parents[2] / "data" / "kafka-facts"
TRANSCRIPTS = FACTS / "dump-log.txt"
SAMPLES = FACTS / "files-of-a-cluster.txt"
# A file whose end was not kept can only be compared up to there; indexes end in zeros that were never written.
ZEROS = bytes(240)
NODES = ("node1", "node2", "node3")


class Transcript:
    def __init__(self, block: str) -> None:
        command, _, rest = block.partition("\n")
        self.command = command.removeprefix("$ kafka-dump-log.sh ").strip()
        parts = re.split(r"^\[(stdout|stderr|exit)\] ?\n?", rest, flags=re.M)
        self.parts = dict(zip(parts[1::2], parts[2::2], strict=False))
        self.exit = int(self.parts["exit"].split()[0])

    @property
    def path(self) -> str:
        match = re.search(r"\$DATA/(\S+)", self.command)
        return match[1] if match else ""

    def lines(self, stream: str) -> list[str]:
        """Without the frames of Java's stack traces."""
        return [line for line in self.parts.get(stream, "").splitlines() if not line.startswith(("\t", "[option"))]


def transcripts() -> list[Transcript]:
    blocks = re.split(r"\n\n(?=\$ )", TRANSCRIPTS.read_text())
    return [Transcript(block.strip("\n")) for block in blocks if block.startswith("$ ") and "$DATA" in block]


@cache
def samples() -> dict[str, tuple[bytes, bool]]:
    """Path below $DATA -> bytes that were kept, and whether they are the whole file."""
    found = {}
    for block in re.split(r"^== ", SAMPLES.read_text(), flags=re.M)[1:]:
        head = re.match(r"\$DATA/(\S+) \((\d+) bytes, (\d+) kept\) hex\n", block)
        if head is not None:
            data = bytes.fromhex("".join(re.findall(r"^[0-9a-f]+$", block, re.M)))
            assert len(data) == int(head[3])
            found[head[1]] = (data, head[2] == head[3])
    return found


def rebuild(folder: Path) -> dict[str, bool]:
    """Writes the files; replicas on other nodes have the same bytes. Path below the folder -> whole."""
    whole = {}
    for name, (data, complete) in samples().items():
        node, _, rest = name.partition("/")
        is_index = rest.endswith("index") and not rest.endswith("txnindex")
        for other in (node, *NODES):
            if other != node and f"{other}/{rest}" in samples():
                continue
            path = folder / other / rest
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data + ZEROS if is_index else data)
            whole[f"{other}/{rest}"] = complete or is_index
    return whole


@pytest.mark.parametrize("transcript", transcripts(), ids=lambda transcript: transcript.command)
def test_the_recorded_output_is_what_ours_prints(transcript: Transcript, tmp_path: Path) -> None:
    whole = rebuild(tmp_path)
    code, out, err = run(*transcript.command.replace("$DATA", str(tmp_path)).split())
    ours = out.replace(str(tmp_path), "$DATA").splitlines()
    recorded = transcript.lines("stdout")
    if whole[transcript.path]:
        assert ours == recorded
        assert err.replace(str(tmp_path), "$DATA").splitlines() == transcript.lines("stderr")
        assert code == transcript.exit
        return
    ours = [line for line in ours if not line.startswith("Found ")]
    assert len(ours) > 3
    left_out = sum(int(number) for number in re.findall(r"^\[… (\d+) lines left out\]", "\n".join(recorded), re.M))
    assert len([line for line in ours if line not in recorded]) <= min(left_out, 3)
