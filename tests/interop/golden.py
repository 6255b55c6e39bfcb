"""Transcripts of Kafka's tools: how they are written down, run again and compared.

A transcript in tests/data/cli is what the real tools printed when their command lines ran one behind the other against
a fresh Apache Kafka of one node: `$ ` a command line, `[stdin]` what it was given, `[stdout]`, `[stderr]`, `[exit]`
what came of it. `[file NAME]` is a file that is there from then on, `[sorted]` says that the order of the lines of the
output is not fixed, `[later]` that what was changed before may take a moment to be seen, `[apache]` that Moldau does
not have yet what is asked for. What differs from run to run is masked before it is written and before it is compared.
`python -m tests.interop.golden` writes all of them anew.
"""

from __future__ import annotations

import base64
import contextlib
import io
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.interop.kafka_oracle import TOOL_CLASSES, KafkaNode, java_command, run_tool
from tests.interop.nodes import Node
from tests.pace import patience

FOLDER = Path(__file__).parent.parent / "data" / "cli"
HEAD = "# What Apache Kafka 4.3.1's own tools print against one node; see tests/interop/golden.py.\n"
BROKER, CONTROLLER = "127.0.0.1:19092", "127.0.0.1:19192"

LATER_SECONDS = 0.7
# Apache Kafka answers before a change has reached its brokers and disks: what only asks may be asked again.
SEEN_SECONDS = patience(10)
ASKING = {"--describe", "--list", "--generate"}
# Tools that do something of their own when their process ends.
ALONE = ("verifiable-producer",)


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Step:
    """One command line and what came of it."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.files: dict[str, str] = {}
        self.stdin = ""
        self.flags: set[str] = set()
        self.done = Done(0, "", "")

    @property
    def tool(self) -> str:
        return shlex.split(self.line)[0].removeprefix("kafka-").removesuffix(".sh")

    def arguments(self, node: Node, folder: Path) -> list[str]:
        return shlex.split(self._filled(self.line, node, folder))[1:]

    def write_files(self, node: Node, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).write_text(self._filled(text, node, folder))

    def _filled(self, text: str, node: Node, folder: Path) -> str:
        text = text.replace(BROKER, node.bootstrap).replace(CONTROLLER, f"{node.host}:{node.controller_port}")
        return text.replace("$WORK", str(folder))


Runner = Callable[[str, list[str], str, Path], Done]


def read(path: Path) -> list[Step]:
    steps: list[Step] = []
    files: dict[str, str] = {}
    target = ""
    texts: dict[str, list[str]] = {}

    def finish() -> None:
        if steps and texts:
            step = steps[-1]
            step.stdin = "".join(texts.get("stdin", []))
            out, err = "".join(texts.get("stdout", [])), "".join(texts.get("stderr", []))
            step.done = Done(step.done.code, out, err)

    for line in path.read_text().splitlines(keepends=True):
        marker = re.fullmatch(r"\[(stdin|stdout|stderr|file [\w.-]+)\]\n", line)
        if line.startswith("$ "):
            finish()
            steps.append(Step(line[2:].rstrip("\n")))
            steps[-1].files, files, texts, target = files, {}, {"stdin": []}, ""
        elif marker is not None:
            target = marker[1]
            if target.startswith("file "):
                finish()
                texts = {}
                files[target[5:]] = ""
        elif line.startswith("[exit] ") and steps:
            steps[-1].done = steps[-1].done._replace(code=int(line[7:]))
            target = ""
        elif line in ("[sorted]\n", "[apache]\n", "[later]\n"):
            steps[-1].flags.add(line.strip("[]\n"))
        elif target.startswith("file "):
            files[target[5:]] += line
        elif target:
            texts.setdefault(target, []).append(line.replace("[no newline]\n", ""))
    finish()
    for step in steps:
        step.done = Done(step.done.code, *(text.removesuffix("\n\x00") for text in step.done[1:]))
    return steps


def write(path: Path, steps: list[Step]) -> None:
    parts = [HEAD]
    for step in steps:
        parts.append("\n")
        parts += [f"[file {name}]\n{text}" for name, text in step.files.items()]
        parts.append(f"$ {step.line}\n")
        parts += [f"[{flag}]\n" for flag in sorted(step.flags)]
        for name, text in (("stdin", step.stdin), ("stdout", step.done.out), ("stderr", step.done.err)):
            if text:
                parts.append(f"[{name}]\n{text}" + ("" if text.endswith("\n") else "\n"))
        parts.append(f"[exit] {step.done.code}\n")
    path.write_text("".join(parts))


def run_step(step: Step, node: Node, folder: Path, run: Runner) -> Done:
    """Runs one command line; what it printed is masked."""
    step.write_files(node, folder)
    if "later" in step.flags:
        time.sleep(LATER_SECONDS)
    done = run(step.tool, step.arguments(node, folder), step.stdin, folder)
    out = mask(done.out, node, folder)
    if "sorted" in step.flags:
        out = "".join(sorted(out.splitlines(keepends=True)))
    return Done(done.code, _with_end(out), _with_end(mask(done.err, node, folder)))


def _with_end(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def compare(path: Path, node: Node, folder: Path, run: Runner) -> list[str]:
    """What differs from the transcript, a paragraph for each command line."""
    different = []
    for step in read(path):
        if "apache" in step.flags and node.name != "kafka":
            continue
        done = run_step(step, node, folder, run)
        deadline = time.monotonic() + SEEN_SECONDS
        while done != step.done and _may_be_late(step, node) and time.monotonic() < deadline:
            time.sleep(0.2)
            done = run_step(step, node, folder, run)
        if done != step.done:
            different.append(f"$ {step.line}\n  recorded: {step.done}\n  now:      {done}")
    return different


def _may_be_late(step: Step, node: Node) -> bool:
    return node.name == "kafka" and bool(ASKING & set(shlex.split(step.line)))


def run_ours(tool: str, arguments: list[str], stdin: str, folder: Path) -> Done:
    """Our tool of that name, in this process."""
    from moldau.cli.kafka.frame import run_command

    out, err = io.StringIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_command([f"kafka-{tool}", *arguments])
    finally:
        sys.stdin = before
    return Done(code, out.getvalue(), err.getvalue())


def run_real(tool: str, arguments: list[str], stdin: str, folder: Path) -> Done:
    """The real tool in a process of its own."""
    done = run_tool(tool, *arguments, text=stdin, folder=folder)
    return Done(done.returncode, done.stdout, done.stderr)


class RealTools:
    """Kafka's own tools in one process, because starting one for each takes seconds; see ToolRunner.java."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, tool: str, arguments: list[str], stdin: str, folder: Path) -> Done:
        if tool in ALONE:
            return run_real(tool, arguments, stdin, folder)
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        given = "stdin:" + base64.b64encode(stdin.encode()).decode()
        process.stdin.write("\t".join([given, TOOL_CLASSES[tool], *arguments]).encode() + b"\n")
        process.stdin.flush()
        head = process.stdout.readline().split()
        if len(head) != 3:
            # The tool ended the whole process, as some do after a usage error.
            self.close()
            return run_real(tool, arguments, stdin, folder)
        code, out, err = map(int, head)
        return Done(code, process.stdout.read(out).decode(), process.stdout.read(err).decode())

    def _start(self) -> subprocess.Popen[bytes]:
        command = java_command("MAIN")
        command[-1] = str(Path(__file__).parent / "ToolRunner.java")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self._folder)
        return self._process

    def close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.wait(patience(20))
        self._process = None


_MASKS: list[tuple[str, str]] = [
    # Level 2 is of Kafka 4.4: dead letters of share groups.
    (r"^(Feature: share\.version +SupportedMinVersion: 0 +SupportedMaxVersion: )2", r"\g<1>1"),
    (r"^\s+at .*\n|^\s+\.\.\. \d+ more\n", ""),
    (r"^Option +Description *\n(.*\n)*", "[options]\n"),
    (r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]", "[TIME]"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", "TIME"),
    (r"^Caused by: (joptsimple|java.lang.NumberFormat).*\n", ""),
    (r"\b1[5-9]\d{11}\b", "MILLIS"),
    (
        r"((?:TopicId: |directory\.id=|\"directoryId\": \"|Cluster ID: |ClusterId: +)|^|\t)[\w-]{22}(?=[\s,})\"]|$)",
        r"\1ID",
    ),
    (r"adminclient-\d+", "adminclient-1"),
    (r"\[\[config\], \[bootstrap-server\]\]", "[[bootstrap-server], [config]]"),
    (r"(SCRAM-SHA-512=\S+), (SCRAM-SHA-256=\S+)$", r"\2, \1"),
    (r"console-consumer-\d+", "console-consumer-N"),
    (r"correlation id \d+", "correlation id N"),
    (r"(Epoch: |LeaderEpoch: +|HighWatermark: +)\d+", r"\1N"),
    (r'"size":\d+', '"size":N'),
    (r"^(\d+ +\tID\t)\d+ +\t", r"\1N\t"),
    # What was measured.
    (r"-?\d+(\.\d+)? (records/sec|MB/sec|ms avg|ms max|ms \d\d|ms ago)", r"N \2"),
    (r"(TIME, TIME|TIME, 0)(, -?[\d.NaInfity]+)+", r"\1, NUMBERS"),
    (r"^(\d+)\t[\d.]+$", r"\1\tN"),
    (r"(Avg latency: )[\d.]+|(\d\d(?:\.9)?th = )\d+", r"\1\2N"),
    (r'("avg_throughput":)[\d.E]+', r"\1N"),
]


def mask(text: str, node: Node, folder: Path) -> str:
    """The text without what cannot be the same twice."""
    for pattern, replacement in _MASKS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    text = text.replace(node.bootstrap, BROKER).replace(f"{node.host}:{node.controller_port}", CONTROLLER)
    text = re.sub(rf"\b{node.port}\b", "19092", text)
    text = re.sub(rf"\b{node.controller_port}\b", "19192", text)
    text = text.replace(str(folder), "$WORK").replace(str(node.data), "$DATA").replace(node.cluster_id, "ID")
    # How often something is tried again is a matter of time.
    lines = text.splitlines(keepends=True)
    return "".join(line for index, line in enumerate(lines) if "WARN" not in line or line not in lines[:index])


def record_all() -> None:
    """Writes all transcripts anew, each with the real tools against an Apache Kafka of its own."""
    import tempfile

    for path in sorted(FOLDER.glob("*.txt")):
        if len(sys.argv) > 1 and path.stem not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as name:
            node = KafkaNode(Path(name) / "kafka")
            folder = Path(name) / "work"
            folder.mkdir()
            node.format()
            node.start()
            try:
                steps = read(path)
                for step in steps:
                    step.done = run_step(step, node, folder, run_real)
                    print(f"{step.done.code} {step.line}", flush=True)
            finally:
                node.stop()
        write(path, steps)


if __name__ == "__main__":
    record_all()
