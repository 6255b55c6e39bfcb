"""What benchmarks beside Apache Kafka share: plain connections, a broker of each kind, the table and the options.

Import it before anything of Moldau's: it adds the sources behind an installation, which may be a compiled one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
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
START_LIMIT_S = 300.0
KAFKA_VERSION = "4.3.1"
# Where tools/fetch_kafka.sh puts them.
KAFKA_JARS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"apache-kafka-{KAFKA_VERSION}" / "libs"


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

    def answer_into(self, buffer: memoryview) -> int:
        """The same without a copy, for loads: into `buffer`, which is large enough; returns its size."""
        self.fill(buffer[:4])
        size: int = struct.unpack_from(">i", buffer)[0]
        self.fill(buffer[:size])
        return size

    def _exactly(self, size: int) -> bytes:
        data = bytearray(size)
        self.fill(memoryview(data))
        return bytes(data)

    def fill(self, view: memoryview) -> None:
        """Receives exactly as much as fits."""
        missing = len(view)
        while missing:
            count = self.socket.recv_into(view[-missing:] if missing < len(view) else view)
            if count == 0:
                raise ConnectionError("the broker closed the connection")
            missing -= count

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


def family_of(pid: int) -> list[int]:
    """A process, those it started, and theirs."""
    found = [pid]
    for each in found:
        try:
            for task in os.listdir(f"/proc/{each}/task"):
                found += [int(child) for child in Path(f"/proc/{each}/task/{task}/children").read_text().split()]
        except OSError:
            continue
    return found


def environment_of(command: list[str]) -> dict[str, str]:
    """An installed command must not take up the sources; this Python takes the moldau that is imported here."""
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    if command[0] == sys.executable:
        environment["PYTHONPATH"] = str(Path(moldau.__file__).parent.parent)
    return environment


def combined_node_settings(
    node: int, listener_ports: dict[str, int], controller_ports: dict[int, int], data: Path
) -> dict[str, str]:
    """The settings that a node, which is broker and controller, cannot do without. Listeners are named after their
    security protocols."""
    ports = {**listener_ports, "CONTROLLER": controller_ports[node]}
    protocols = [f"{name}:{name}" for name in listener_ports]
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "controller.quorum.voters": ",".join(f"{other}@{HOST}:{at}" for other, at in controller_ports.items()),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
        "log.dirs": str(data),
    }


def internal_topics(nodes: int) -> dict[str, str]:
    """What the topics of coordinators need where there are fewer nodes than replicas by default."""
    if nodes >= 3:
        return {}
    replicas, in_sync = str(nodes), str(min(nodes, 2))
    return {
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


# Programs and their nodes


class Program:
    """One of the two systems: how the storage of a node is formatted, how the node is started, when it is ready."""

    name = ""

    def settings_for(self, settings: dict[str, str]) -> dict[str, str]:
        """Those that it knows."""
        return settings

    def format_command(self, properties: Path) -> list[str]:
        raise NotImplementedError

    def server_command(self, properties: Path) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def says_ready(self, output: str) -> bool:
        """Whether a node with this output is ready, as far as that shows; its port must be open, too."""
        return True


class MoldauProgram(Program):
    name = "Moldau"

    def __init__(self, command: list[str]) -> None:
        self.command = command

    def format_command(self, properties: Path) -> list[str]:
        return [*self.command, "storage", "format", "-t", CLUSTER_ID, "-c", str(properties)]

    def server_command(self, properties: Path) -> list[str]:
        return [*self.command, "server", str(properties)]

    def environment(self) -> dict[str, str]:
        return environment_of(self.command)


class KafkaProgram(Program):
    """Apache Kafka from the jars that tools/fetch_kafka.sh has fetched, with the JVM's options of its distribution."""

    name = "Apache Kafka"
    heap = ["-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
    collector = ["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"]
    logging = [
        "status = error",
        "appender.out.type = Console",
        "appender.out.name = out",
        "appender.out.layout.type = PatternLayout",
        "appender.out.layout.pattern = [%d] %p %m (%c)%n",
        "rootLogger.level = INFO",
        "rootLogger.appenderRef.out.ref = out",
    ]

    def __init__(self, jars: Path) -> None:
        self.jars = jars

    def settings_for(self, settings: dict[str, str]) -> dict[str, str]:
        return {key: value for key, value in settings.items() if not key.startswith("moldau.")}

    def format_command(self, properties: Path) -> list[str]:
        options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        arguments = ["format", "-t", CLUSTER_ID, "-c", str(properties)]
        return self._java(properties, options, "kafka.tools.StorageTool", arguments)

    def server_command(self, properties: Path) -> list[str]:
        return self._java(properties, [*self.heap, *self.collector], "kafka.Kafka", [str(properties)])

    def _java(self, properties: Path, options: list[str], main_class: str, arguments: list[str]) -> list[str]:
        logging = properties.with_name("log4j2.properties")
        logging.write_text("\n".join(self.logging) + "\n")
        more = ["-Djava.awt.headless=true", f"-Dlog4j2.configurationFile={logging}", "-cp", f"{self.jars}/*"]
        return ["java", *options, *more, main_class, *arguments]

    def says_ready(self, output: str) -> bool:
        return "Kafka Server started" in output


def why_no_kafka(jars: Path) -> str | None:
    """Why Apache Kafka cannot be run here; None where it can."""
    if not (jars / f"kafka_2.13-{KAFKA_VERSION}.jar").exists():
        return f"Apache Kafka {KAFKA_VERSION} is not in {jars}: run tools/fetch_kafka.sh"
    if shutil.which("java") is None:
        return "there is no Java: run tools/ensure_java.sh"
    return None


def is_open(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), 1).close()
    except OSError:
        return False
    return True


class Nodes:
    """Some nodes of a program on this machine, each broker and controller; removed at the end of a `with`."""

    def __init__(
        self, program: Program, count: int, settings: dict[str, str], protocols: Sequence[str] = ("PLAINTEXT",)
    ) -> None:
        """`protocols`: each is a listener of every node. `ports` has those of the first of them."""
        self.program = program
        self.numbers = range(1, count + 1)
        self.directory = Path(tempfile.mkdtemp(prefix="moldau-bench-"))
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self._output_before: dict[int, int] = {}
        ports = iter(free_ports(count * (1 + len(protocols))))
        controller_ports = {node: next(ports) for node in self.numbers}
        self.listener_ports = {node: {name: next(ports) for name in protocols} for node in self.numbers}
        self.ports = {node: self.listener_ports[node][protocols[0]] for node in self.numbers}
        for node in self.numbers:
            wanted = {
                **combined_node_settings(node, self.listener_ports[node], controller_ports, self.data(node)),
                **internal_topics(count),
                **settings,
            }
            properties = self.properties(node)
            properties.parent.mkdir()
            lines = [f"{key}={value}\n" for key, value in program.settings_for(wanted).items()]
            properties.write_text("".join(lines))
            command, environment = program.format_command(properties), program.environment()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def properties(self, node: int) -> Path:
        return self.directory / f"node{node}" / "server.properties"

    def data(self, node: int) -> Path:
        return self.directory / f"node{node}" / "data"

    def output_file(self, node: int) -> Path:
        return self.directory / f"node{node}" / "output.log"

    def start(self, *nodes: int, wait: bool = True) -> None:
        """All of them if none is named. Returns when they let clients in, or at once."""
        chosen = nodes or tuple(self.numbers)
        for node in chosen:
            command = self.program.server_command(self.properties(node))
            with open(self.output_file(node), "ab") as log:
                self._output_before[node] = log.tell()
                environment = self.program.environment()
                self.processes[node] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        for node in chosen:
            deadline = time.monotonic() + START_LIMIT_S
            while wait and not self.is_ready(node):
                if time.monotonic() > deadline or self.processes[node].poll() is not None:
                    end = self.output_file(node).read_text(errors="replace")[-3000:]
                    raise RuntimeError(f"node {node} of {self.program.name} did not start:\n{end}")
                time.sleep(0.01)

    def is_ready(self, node: int) -> bool:
        if not is_open(self.ports[node]):
            return False
        output = self.output_file(node).read_bytes()[self._output_before[node] :]
        return self.program.says_ready(output.decode(errors="replace"))

    def stop(self, *nodes: int) -> None:
        """A clean stop, of all that run if none is named."""
        chosen = nodes or tuple(self.processes)
        for node in chosen:
            self.processes[node].terminate()
        for node in chosen:
            self.processes.pop(node).wait(120)

    def kill(self, *nodes: int) -> None:
        """kill -9, of all that run if none is named."""
        for node in nodes or tuple(self.processes):
            process = self.processes.pop(node)
            process.kill()
            process.wait()

    def remove(self) -> None:
        """Stops them, and deletes their data."""
        try:
            self.stop()
        finally:
            self.kill()
            shutil.rmtree(self.directory, ignore_errors=True)

    def cpu_seconds(self, *nodes: int) -> float:
        """Of the processes that run and of those they started."""
        pids = [pid for node in nodes or tuple(self.processes) for pid in family_of(self.processes[node].pid)]
        return sum(cpu_seconds_of(pid) for pid in pids)

    def memory_mb(self, *nodes: int) -> float:
        """Pages that several processes share are counted once."""
        pids = [pid for node in nodes or tuple(self.processes) for pid in family_of(self.processes[node].pid)]
        return sum(memory_mb_of(pid, "Pss", "smaps_rollup") for pid in pids)


# Brokers


class Broker:
    """A single node and its process; removed at the end of a `with`."""

    name = ""

    def __init__(self, program: Program, settings: dict[str, str], protocols: Sequence[str] = ("PLAINTEXT",)) -> None:
        self.name = self.name or program.name
        self.nodes = Nodes(program, 1, settings, protocols)
        self.settings = program.settings_for(settings)
        self.port = self.nodes.ports[1]
        self.listener_ports = self.nodes.listener_ports[1]
        self.output_file = self.nodes.output_file(1)
        self.pid = 0

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def start(self, wait: bool = True) -> None:
        """Returns when the node lets clients in, or at once."""
        self.nodes.start(wait=wait)
        self.pid = self.nodes.processes[1].pid

    def stop(self) -> None:
        self.nodes.stop()

    def kill(self) -> None:
        self.nodes.kill()

    def remove(self) -> None:
        """Stops it, and deletes its data."""
        self.nodes.remove()

    def output(self) -> str:
        return self.output_file.read_text(errors="replace")

    def connect(self) -> Wire:
        deadline = time.monotonic() + START_LIMIT_S
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
    name = MoldauProgram.name

    def __init__(self, command: list[str], settings: dict[str, str]) -> None:
        super().__init__(MoldauProgram(command), settings)


class Kafka(Broker):
    """Apache Kafka, with those of the settings that are not Moldau's own."""

    name = KafkaProgram.name

    def __init__(self, jars: Path, settings: dict[str, str]) -> None:
        super().__init__(KafkaProgram(jars), settings)


# Running and showing


def parser_of(description: str | None, rows: Sequence[str] = ()) -> argparse.ArgumentParser:
    """With the options that name what is measured, and those of the table where there are rows to choose from."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moldau", default=f"{sys.executable} -m moldau", help="the moldau command to measure")
    parser.add_argument(
        "--kafka",
        type=Path,
        default=KAFKA_JARS,
        help="the directory with the jars of Apache Kafka; without them Moldau is measured alone",
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
    """What makes each of the brokers to be measured: with an empty directory, and not started."""
    found: list[Callable[[], Broker]] = [lambda: Moldau(shlex.split(arguments.moldau), settings)]
    if why_no_kafka(arguments.kafka) is None:
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

    def __init__(self, arguments: argparse.Namespace, names: Sequence[str] = ()) -> None:
        """`names`: whose figures come, if not those of all systems that can be run here."""
        self.markdown = arguments.markdown
        reason = why_no_kafka(arguments.kafka)
        if not names and reason is not None:
            say(f"Moldau alone: {reason}")
        measured = names or ([Moldau.name, Kafka.name] if reason is None else [Moldau.name])
        columns = ["measurement", *measured, *(["better by"] if len(measured) == 2 else [])]
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
