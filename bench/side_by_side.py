"""What benchmarks beside Apache Kafka share: plain connections, a broker of each kind, the table and the options.

Import it before anything of Moldau's: it adds the sources behind an installation, which may be a compiled one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "src"))  # where moldau is not installed

import moldau  # noqa: E402
from moldau.protocol import api_keys  # noqa: E402
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest  # noqa: E402
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader  # noqa: E402
from moldau.protocol.primitives import Message, Reader, Writer  # noqa: E402

HOST = "127.0.0.1"
# 22 characters of base64.
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
TICKS = os.sysconf("SC_CLK_TCK")


# The wire


def frame(request: Message, version: int) -> bytes:
    key = type(request).API_KEY
    writer = Writer()
    RequestHeader(key, version, 7, "bench").encode(writer, api_keys.request_header_version(key, version))
    request.encode(writer, version)
    data = writer.to_bytes()
    return struct.pack(">i", len(data)) + data


class Wire:
    """One connection; answers come in the order of the requests."""

    def __init__(self, port: int, timeout_s: float = 120.0) -> None:
        self.socket = socket.create_connection((HOST, port), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exception: object) -> None:
        self.socket.close()

    def ask(self, request: Message, version: int) -> Any:
        reader = self.exchange(request, version)
        return api_keys.response_class(type(request).API_KEY).decode(reader, version)

    def exchange(self, request: Message, version: int) -> Reader:
        """The answer, behind its header."""
        self.socket.sendall(frame(request, version))
        reader = Reader(self.answer())
        ResponseHeader.decode(reader, api_keys.response_header_version(type(request).API_KEY, version))
        return reader

    def answer(self) -> bytes:
        """The next answer to what was sent, with its header."""
        size = struct.unpack(">i", self._exactly(4))[0]
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self.socket.recv_into(view)
            if count == 0:
                raise ConnectionError("the broker closed the connection")
            view = view[count:]
        return bytes(data)

    def receive(self, size_max: int) -> bytes:
        """What has come, be it several answers or a part of one; for those who take them apart themselves."""
        data = self.socket.recv(size_max)
        if not data:
            raise ConnectionError("the broker closed the connection")
        return data


def create_topic(wire: Wire, name: str, partitions: int) -> None:
    new = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    wire.ask(CreateTopicsRequest(topics=[new], timeout_ms=60_000), 7)


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind((HOST, 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


# Processes


def cpu_seconds_of(pid: int, with_ended_children: bool = False) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11 : 15 if with_ended_children else 13])) / TICKS


def memory_mb_of(pid: int, what: str = "VmRSS", file: str = "status") -> float:
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def environment_of(command: list[str]) -> dict[str, str]:
    """An installed command must not take up the sources; this Python takes the moldau that is imported here."""
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    if command[0] == sys.executable:
        environment["PYTHONPATH"] = str(Path(moldau.__file__).parent.parent)
    return environment


def combined_node_settings(node: int, port: int, controller_ports: dict[int, int], data: Path) -> dict[str, str]:
    """The settings that a node, which is broker and controller, cannot do without."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_ports[node]}",
        "controller.quorum.voters": ",".join(f"{other}@{HOST}:{at}" for other, at in controller_ports.items()),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
    }


def format_moldau(command: list[str], properties: Path, settings: dict[str, str]) -> None:
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    arguments = ["storage", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment_of(command))


def start_moldau(command: list[str], properties: Path, output_file: Path) -> subprocess.Popen[bytes]:
    with open(output_file, "ab") as log:
        return subprocess.Popen(
            [*command, "server", str(properties)], stdout=log, stderr=log, env=environment_of(command)
        )


class KafkaScript:
    """The script that starts real Kafkas, with a port of its own: 1 GB heap and G1, as in the distribution."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.port = free_ports(1)[0]
        # It sees by a line of this level that a node is ready.
        self.environment = {**os.environ, "KAFKA_ORACLE_LOG": "INFO", "KAFKA_ORACLE_WAIT": "300"}
        self.environment["KAFKA_ORACLE_PORT"] = str(self.port)

    def run(self, *arguments: str) -> dict[str, str]:
        """What it says in lines of key=value."""
        done = subprocess.run(
            [str(self.path), *arguments], check=True, stdout=subprocess.PIPE, text=True, env=self.environment
        )
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

    def begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([str(self.path), *arguments], env=self.environment)


# Brokers


class Broker:
    """A single node and its process; removed at the end of a `with`."""

    name = ""
    port = 0
    pid = 0
    output_file = Path()

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def start(self, wait: bool = True) -> None:
        """Returns when the node lets clients in, or at once."""
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError

    def remove(self) -> None:
        """Stops it, and deletes its data."""
        raise NotImplementedError

    def output(self) -> str:
        return self.output_file.read_text(errors="replace")

    def connect(self) -> Wire:
        deadline = time.monotonic() + 300
        while True:
            try:
                return Wire(self.port)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)

    def cpu_seconds(self) -> float:
        return cpu_seconds_of(self.pid)

    def memory_mb(self) -> float:
        return memory_mb_of(self.pid)


class Moldau(Broker):
    name = "Moldau"

    def __init__(self, command: list[str], settings: dict[str, str]) -> None:
        self.command = command
        self.folder = Path(tempfile.mkdtemp(prefix="moldau-bench-"))
        self.properties = self.folder / "server.properties"
        self.output_file = self.folder / "output.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.port, controller_port = free_ports(2)
        self.settings = {
            **combined_node_settings(1, self.port, {1: controller_port}, self.folder / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **settings,
        }
        format_moldau(command, self.properties, self.settings)

    def start(self, wait: bool = True) -> None:
        self.process = start_moldau(self.command, self.properties, self.output_file)
        self.pid = self.process.pid
        if wait:
            self.connect().socket.close()

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(120)
            self.process = None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Kafka(Broker):
    """Apache Kafka, with those of the settings that are not Moldau's own."""

    name = "Apache Kafka"

    def __init__(self, script: Path, settings: dict[str, str]) -> None:
        self.script = KafkaScript(script)
        self.port = self.script.port
        self.settings = {key: value for key, value in settings.items() if not key.startswith("moldau.")}
        self.folder: Path | None = None
        self.starting: subprocess.Popen[bytes] | None = None

    def start(self, wait: bool = True) -> None:
        if self.folder is None:
            facts = self.script.run("start", "1", *(f"{key}={value}" for key, value in self.settings.items()))
            self.folder = Path(facts["data"])
            self.output_file = self.folder / "node1.out"
        elif wait:
            self.script.run("start-node", "1")
        else:
            # It waits for the node in steps; whoever starts it this way watches the port.
            self.starting = self.script.begin("start-node", "1")
        if wait:
            self.pid = int((self.folder / "node1.pid").read_text())
            self.connect().socket.close()

    def stop(self) -> None:
        self._end_starting()
        self.script.run("stop-node", "1")

    def kill(self) -> None:
        self._end_starting()
        self.script.run("kill-node", "1")

    def remove(self) -> None:
        self._end_starting()
        self.script.run("stop")

    def _end_starting(self) -> None:
        if self.starting is not None:
            self.starting.wait(300)
            self.starting = None


# Running and showing


def parser_of(description: str | None, rows: Sequence[str] = ()) -> argparse.ArgumentParser:
    """With the options that name what is measured, and those of the table where there are rows to choose from."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moldau", default=f"{sys.executable} -m moldau", help="the moldau command to measure")
    parser.add_argument(
        "--kafka",
        type=Path,
        default=ROOT.parent / "shared" / "oracle" / "kafka",
        help="the script that starts Apache Kafka; without it Moldau is measured alone",
    )

    def chosen(text: str) -> list[str]:
        for row in text.split(","):
            if row not in rows:
                raise argparse.ArgumentTypeError(f"there is no row {row}: {', '.join(rows)}")
        return text.split(",")

    if rows:
        parser.add_argument("--rows", type=chosen, default=list(rows), help="some of " + ",".join(rows))
        parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser


def say(line: str) -> None:
    """What is no part of the result."""
    print(line, file=sys.stderr, flush=True)


def makers(arguments: argparse.Namespace, settings: dict[str, str]) -> list[Callable[[], Broker]]:
    """What makes each of the brokers to be measured: with an empty folder, and not started."""
    found: list[Callable[[], Broker]] = [lambda: Moldau(shlex.split(arguments.moldau), settings)]
    if arguments.kafka.exists():
        found.append(lambda: Kafka(arguments.kafka, settings))
    return found


@contextlib.contextmanager
def fresh_brokers(arguments: argparse.Namespace, settings: dict[str, str]) -> Iterator[list[Broker]]:
    """All of them at once; removed afterwards."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(make()) for make in makers(arguments, settings)]


def alternating(brokers: Sequence[Broker], rounds: int, work: Callable[[Broker], Sequence[float]]) -> list[list[float]]:
    """For each figure of `work`, its median for each broker."""
    seen: dict[str, list[Sequence[float]]] = {broker.name: [] for broker in brokers}
    for _ in range(rounds):
        for broker in brokers:
            seen[broker.name].append(work(broker))
    figures = len(seen[brokers[0].name][0])
    return [[statistics.median([one[n] for one in seen[b.name]]) for b in brokers] for n in range(figures)]


class Table:
    """Printed row by row: a figure of each broker, and by how much Moldau's is the better one."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.markdown = arguments.markdown
        columns = ["measurement", Moldau.name]
        if arguments.kafka.exists():
            columns += [Kafka.name, "better by"]
        else:
            say(f"Apache Kafka is not measured: {arguments.kafka}, which starts it, is not there")
        self._print(columns)
        if self.markdown:
            print("|---|" + "---:|" * (len(columns) - 1), flush=True)

    def add(self, name: str, values: list[float], more_is_better: bool, form: str) -> None:
        cells = [form.format(value) for value in values]
        if len(values) == 2 and min(values) > 0:
            ratio = values[0] / values[1] if more_is_better else values[1] / values[0]
            cells.append(f"{ratio:.2f}×")
        self._print([name, *cells])

    def _print(self, cells: list[str]) -> None:
        if self.markdown:
            line = "| " + " | ".join(cells) + " |"
        else:
            line = f"{cells[0]:<75}" + "".join(f"{cell:>16}" for cell in cells[1:])
        print(line, flush=True)
