"""Kafka's tools and ours of the same name, against the same Moldau: same output, same errors, same exit codes.

Both run each command line, on topics with different names: `%` stands for a prefix. What cannot be equal is masked:
times, stack frames, ids that are random and the list of options, whose texts are our own.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from moldau.cli.kafka.frame import run_command
from tests.interop.kafka_oracle import TOOL_CLASSES, java_command
from tests.interop.nodes import Node
from tests.pace import patience

pytestmark = pytest.mark.usefixtures("kafka_tools")

CLASSES = {**TOOL_CLASSES, "cluster": "org.apache.kafka.tools.ClusterTool"}
HERE = Path(__file__).parent
# Their hash codes are equal in Java: names that differ in them alone come in the same order out of a HashMap.
REAL, OURS = "wAa", "wBB"

TOPICS = """
--create --topic %-orders --partitions 2 --config retention.ms=3600000 --config cleanup.policy=compact
--create --topic %-orders
--create --topic %-orders --if-not-exists
--create --topic %.dot --replica-assignment 1,1
--create --topic %_dot
--create --topic %-more --partitions 3
--create --topic %bad --config retention.ms=abc
--create --topic %bad --config no.such.config=1
--create --topic %bad --config nonsense
--create --topic %bad --config cleanup.policy=shred
--create --topic %bad --partitions 0 --replication-factor 1
--create --topic %bad --partitions x
--create --topic %bad --partitions 1 --replication-factor 0
--create --topic %bad --replication-factor 4
--create --topic %bad --replica-assignment 1:1
--create --topic %bad --replica-assignment 1,x
--create --topic %bad --replica-assignment 9
--create --topic 'bad name!'
--create --topic .
--create
--create --topic %bad --replica-assignment 1 --partitions 1
--describe --topic %.*
--describe --topic %.* --topics-with-overrides
--describe --topic %.* --under-replicated-partitions
--describe --topic %.* --unavailable-partitions
--describe --topic %.* --at-min-isr-partitions
--describe --topic %.* --at-min-isr-partitions --topics-with-overrides
--describe --topic nope
--describe --topic nope --if-exists
--describe --if-exists
--describe --topic-id AAAAAAAAAAAAAAAAAAAAAw
--alter --topic %-orders --partitions 1
--alter --topic %-orders --partitions 2
--alter --topic %-orders --partitions 0
--alter --topic %-orders --partitions 4
--alter --topic nope --partitions 4
--alter --topic %-orders
--delete --topic nope
--delete --topic nope --if-exists
--delete --topic %-more
--list --partitions 3
--list --describe
--list --topic [
--no-such-flag
--list --if-exists
--create --topic %x --exclude-internal
--topic
--list --topic %.*
"""

GET_OFFSETS = """
--topic %-orders
--topic %-orders --time earliest
--topic %-orders --time -3
--topic %-orders --time -4
--topic %-orders --time -5
--topic %-orders --time -6
--topic %-orders --time 1
--topic %-orders --time 9999999999999
--topic %-orders --time bogus
--topic %-orders --partitions 1,3
--topic %-orders --partitions 1,x
--topic nope
--topic-partitions %-orders:0-2,%.dot
--topic-partitions %-orders:1,%.dot:-1
--topic-partitions %-orders:2-,:9
--topic-partitions %-orders:a
--topic-partitions %-orders --topic x
--topic %.* --exclude-internal-topics
--no-such-flag
alone --topic x
"""

CONFIGS = """
--alter --entity-type topics --entity-name %-orders --add-config retention.ms=60000,cleanup.policy=[compact,delete]
--describe --entity-type topics --entity-name %-orders
--describe --topic %-orders --all
--alter --topic %-orders --delete-config cleanup.policy,no.such.config
--alter --topic %-orders --add-config no.such.config=1
--alter --topic %-orders --add-config retention.ms=abc
--alter --topic %-orders --add-config nonsense
--alter --topic %-orders --add-config a?b=1
--alter --topic nope --add-config retention.ms=1
--alter --topic %-orders
--alter --entity-type topics --add-config retention.ms=1
--describe --topic nope
--describe --topic 'bad name!'
--describe --entity-type brokers --entity-name 1
--describe --entity-type brokers --entity-name 1 --all
--describe --entity-type brokers
--describe --broker x
--describe --broker 9
--alter --broker 1 --add-config log.cleaner.threads=2
--describe --broker 1
--alter --broker 1 --delete-config log.cleaner.threads
--alter --broker 1 --add-config log.dirs=/x
--alter --broker-defaults --add-config log.retention.ms=7200000
--describe --broker-defaults
--alter --broker-defaults --delete-config log.retention.ms
--describe --entity-type broker-loggers
--alter --broker-logger 1 --add-config no.such.logger=INFO
--alter --user alice --add-config producer_byte_rate=1024,consumer_byte_rate=20480000,request_percentage=50
--alter --user alice --client app --add-config controller_mutation_rate=5
--alter --user-defaults --add-config producer_byte_rate=1
--alter --user bob --add-config producer_byte_rate=0.5
--alter --ip 127.0.0.9 --add-config connection_creation_rate=10
--alter --ip 127.0.0.9 --add-config nonsense=10
--describe --entity-type users
--describe --entity-type users --entity-type clients
--describe --entity-type clients
--describe --entity-type ips
--describe --user alice --client app
--alter --user alice --add-config no_such_quota=1
--alter --user alice --add-config producer_byte_rate=x
--alter --user alice --delete-config request_percentage,no_such_quota
--alter --client alice --add-config no_such_quota=1
--alter --user alice --add-config SCRAM-SHA-256=[iterations=100,password=x]
--alter --user alice --add-config SCRAM-SHA-256=[iterations=8192,password=x]
--alter --user alice --add-config SCRAM-SHA-512=[password=x]
--alter --user alice --add-config SCRAM-SHA-512=[x]
--alter --user alice --add-config SCRAM-SHA-512=[password=x],producer_byte_rate=1
--describe --user alice
--describe --entity-type users
--alter --user nobody --delete-config SCRAM-SHA-512
--alter --user-defaults --add-config producer_byte_rate=1000000000
--alter --group %g --add-config consumer.session.timeout.ms=50000
--alter --group %g --add-config consumer.session.timeout.ms=1
--alter --client-metrics %m --add-config interval.ms=10000,metrics=org.apache
--describe --client-metrics %m
--describe --client-metrics nope
--describe --alter
--describe
--describe --entity-type nonsense
--describe --entity-type topics --entity-type brokers
--describe --entity-type topics --topic x
--describe --entity-type topics --entity-type topics
alone --describe --entity-type topics
--describe --topic a --add-config b=c
"""

# Limits that nobody here reaches: they hold for the tools as well.
QUOTAS = """
--alter --user %u --add-config producer_byte_rate=1048576,consumer_byte_rate=2097152
--alter --user %u --add-config producer_byte_rate=1048576
--describe --user %u
--alter --user %u --delete-config producer_byte_rate
--describe --user %u
--alter --user %u --delete-config producer_byte_rate
--alter --user %u --add-config request_percentage=75.5 --delete-config consumer_byte_rate
--describe --entity-type users --entity-name %u
--alter --user %u --delete-config request_percentage
--describe --user %u
--alter --entity-type clients --entity-name %c --add-config consumer_byte_rate=123456789,controller_mutation_rate=0.001
--describe --entity-type clients --entity-name %c
--describe --client %c
--alter --client %c --delete-config consumer_byte_rate,controller_mutation_rate
--alter --client %c --delete-config consumer_byte_rate,nope
--alter --user %u --client %c --add-config producer_byte_rate=99999999,request_percentage=1e9
--describe --user %u --client %c
--describe --client %c --user %u
--describe --user %u
--describe --client %c
--describe --entity-type users --entity-name %u --entity-type clients --entity-name %c
--describe --entity-type clients --entity-name %c --entity-type users --entity-name %u
--describe --entity-type users --entity-name %u --entity-type clients
--describe --entity-type users --entity-name %u --entity-type clients --entity-default
--alter --user %u --client-defaults --add-config producer_byte_rate=88888888
--describe --user %u --client-defaults
--describe --entity-type users --entity-type clients --entity-name %u
--alter --user %u --client-defaults --delete-config producer_byte_rate
--alter --entity-type clients --entity-name %c --entity-type users --entity-name %u --delete-config request_percentage
--alter --user %u --client %c --delete-config producer_byte_rate
--alter --user-defaults --client %c --add-config consumer_byte_rate=77777777
--describe --user-defaults --client %c
--alter --user-defaults --client %c --delete-config consumer_byte_rate
--alter --user-defaults --client-defaults --add-config consumer_byte_rate=66666666
--describe --user-defaults --client-defaults
--describe --entity-type users --entity-default --entity-type clients --entity-default
--alter --entity-type users --entity-default --add-config consumer_byte_rate=1000000000
--describe --user-defaults
--describe --entity-type users --entity-default
--alter --client-defaults --add-config request_percentage=100000
--describe --client-defaults
--describe --entity-type clients --entity-default
--alter --ip-defaults --add-config connection_creation_rate=100000
--alter --ip 127.0.0.8 --add-config connection_creation_rate=100000
--alter --entity-type ips --entity-name 127.0.0.7 --add-config connection_creation_rate=7
--describe --ip 127.0.0.8
--describe --ip-defaults
--describe --entity-type ips --entity-default
--describe --entity-type ips --entity-name 127.0.0.7
--describe --ip 127.0.0.6
--alter --ip 127.0.0.7 --add-config connection_creation_rate=1.5
--alter --ip 127.0.0.7 --add-config connection_creation_rate=0
--alter --ip 127.0.0.7 --add-config connection_creation_rate=-1
--alter --ip 127.0.0.7 --add-config connection_creation_rate=4294967296
--alter --ip 127.0.0.7 --add-config connection_creation_rate=x
--alter --ip 127.0.0.7 --add-config producer_byte_rate=1
--alter --ip 127.0.0.7 --delete-config producer_byte_rate
--alter --ip not.a.host.invalid --add-config connection_creation_rate=7
--describe --ip not.a.host.invalid
--alter --ip 127.0.0.7 --user a --add-config connection_creation_rate=7
--alter --entity-type ips --add-config connection_creation_rate=7
--alter --entity-type users --add-config producer_byte_rate=7
--alter --entity-type users --entity-type clients --entity-name a --add-config producer_byte_rate=7
--alter --user %u --add-config producer_byte_rate=0
--alter --user %u --add-config producer_byte_rate=-5
--alter --user %u --add-config producer_byte_rate=1.5
--alter --user %u --add-config producer_byte_rate=1e30
--alter --user %u --add-config producer_byte_rate=
--alter --user %u --add-config producer_byte_rate=0x10
--alter --user %u --add-config producer_byte_rate=1_000
--alter --user %u --add-config producer_byte_rate=5d
--alter --user %u --delete-config producer_byte_rate
--alter --user %u --add-config request_percentage=0
--alter --user %u --add-config controller_mutation_rate=-1
--alter --user %u --add-config connection_creation_rate=1
--alter --client %c --add-config connection_creation_rate=1
--alter --user %u --client %c --add-config SCRAM-SHA-256=[password=x]
--alter --client %c --add-config SCRAM-SHA-256=[password=x]
--alter --user-defaults --add-config SCRAM-SHA-256=[password=x]
--alter --user %u --delete-config no_such_quota
--alter --client %c --delete-config no_such_quota
--alter --client %c
--alter --client %c --user
--alter --entity-type users --entity-name '' --add-config producer_byte_rate=1000000000
--describe --entity-type users --all
--describe --user %u --all
--describe --user-defaults --ip 127.0.0.8
--describe --entity-type users --user a
--describe --entity-type ips --entity-type users
--describe --entity-type clients --entity-type ips --entity-name x
--alter --user 'CN=a b' --add-config consumer_byte_rate=1000000
--alter --client 'odd "client"' --add-config consumer_byte_rate=12345678901234
--describe --user 'CN=a b'
--describe --client 'odd "client"'
--describe --entity-type users --entity-type clients
--describe --entity-type clients
--describe --entity-type ips
--describe --bootstrap-controller --entity-type ips
--alter --bootstrap-controller --user %u --add-config consumer_byte_rate=55555555
--describe --bootstrap-controller --user %u
"""

CLIENT_METRICS = """
--list
--describe
--alter --name %m --metrics org.apache,x --interval 10000 --match client_id=a.*,client_software_name=x
--describe --name %m
--alter --name %m --metrics org.apache.kafka.producer --metrics a,,b
--describe --name %m
--alter --name %m --match ''
--describe --name %m
--alter --name %m
--alter --name %m --metrics a,a
--alter --name %m --interval 99
--alter --name %m --interval 3600001
--alter --name %m --interval x
--alter --name %m --interval 99999999999
--alter --name %m --match bogus=1
--alter --name %m --match client_id
--alter --name %m --match client_id=
--alter --name %m --match client_id=a=b
--alter --name %m --match client_id=[
--alter --name '' --metrics a
--describe --name nope
--describe --name ''
--delete --name nope
--delete --name ''
--delete --name %m
--describe --name %m
--list --name x
--list --metrics x
--list --describe
--describe --interval 1
--delete
--delete --name x --match y
--alter
--alter --name x --generate-name
--name x
--no-such-flag
--alter --name
alone --list
alone
alone --list --bootstrap-server nonsense
"""

LOG_DIRS = """
--describe --topic-list %-orders,%.dot
--describe --topic-list nope
--describe --broker-list 1 --topic-list %-orders
--describe --broker-list 9
--describe --broker-list x
--topic-list x
--describe --no-such-flag
alone --describe
"""

DELETE_FILES = {
    "good.json": '{"version": 1, "partitions": [%s]}',
    "twice.json": '{"version": 1, "partitions": [%s, %s]}',
    "plain.json": '{"partitions": [%s]}',
    "later.json": '{"version": 2, "partitions": [%s]}',
    "empty.json": '{"version": 1}',
    "nonsense.json": "nonsense",
    "far.json": '{"version": 1, "partitions": [{"topic": "%-orders", "partition": 0, "offset": 99999}]}',
    "unnamed.json": '{"version": 1, "partitions": [{"partition": 0, "offset": 1}]}',
}


class Done(NamedTuple):
    code: int
    out: str
    err: str


class RealTools:
    """Kafka's tools in one process; see ToolRunner.java."""

    def __init__(self, folder: Path) -> None:
        command = java_command("MAIN")
        command[-1] = str(HERE / "ToolRunner.java")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
        self.folder = folder

    def run(self, tool: str, arguments: list[str]) -> Done:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        stdin.write("\t".join([CLASSES[tool], *arguments]).encode() + b"\n")
        stdin.flush()
        code, out, err = map(int, stdout.readline().split())
        return Done(code, stdout.read(out).decode(), stdout.read(err).decode())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(patience(20))


@pytest.fixture(scope="module")
def real(kafka_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealTools]:
    tools = RealTools(tmp_path_factory.mktemp("tools"))
    yield tools
    tools.close()


def run_ours(tool: str, arguments: list[str], folder: Path) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command([f"kafka-{tool}", *arguments])
    return Done(code, out.getvalue(), err.getvalue())


def masked(done: Done, prefix: str) -> Done:
    return Done(done.code, _masked(done.out, prefix), _masked(done.err, prefix))


def _masked(text: str, prefix: str) -> str:
    text = re.sub(r"^\tat .*\n|^\t\.\.\. \d+ more\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]", "[TIME]", text)
    text = re.sub(r"^Caused by: (joptsimple|java.lang.NumberFormat).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"TopicId: \S{22}", "TopicId: ID", text)
    text = re.sub(r"Epoch: \d+", "Epoch: N", text)
    text = re.sub(r"(HighWatermark: +)\d+|\b\d+ +\t0 +\t\d{13} +\t\d{13}", r"\1N", text)
    text = re.sub(r"directory.id=[\w-]{22}", "directory.id=ID", text)
    text = re.sub(r"adminclient-\d+", "adminclient-1", text)
    text = re.sub(r"^Option +Description *\n(.*\n)*", "[options]\n", text, flags=re.MULTILINE)
    return text.replace(prefix, "%")


def compare(node: Node, real: RealTools, tool: str, lines: str, first: bool = False) -> None:
    """first: the address stands before the line, where a tool has subcommands."""
    different = []
    for line in lines.strip("\n").splitlines() or [""]:
        both = []
        for prefix in (REAL, OURS):
            arguments = shlex.split(line.replace("%", prefix))
            if "--bootstrap-controller" in arguments:
                arguments.insert(arguments.index("--bootstrap-controller") + 1, f"{node.host}:{node.controller_port}")
            elif arguments[:1] != ["alone"]:
                address = ["--bootstrap-server", node.bootstrap]
                arguments = [*address, *arguments] if first else [*arguments, *address]
            arguments = arguments[arguments[:1] == ["alone"] :]
            done = real.run(tool, arguments) if prefix == REAL else run_ours(tool, arguments, real.folder)
            both.append(masked(done, prefix))
        if both[0] != both[1]:
            different.append(f"{line}\n  real: {both[0]}\n  ours: {both[1]}")
    assert not different, "\n".join(["", *different])


def test_kafka_topics(moldau_server: Node, real: RealTools) -> None:
    compare(moldau_server, real, "topics", TOPICS, first=True)


def test_kafka_get_offsets(moldau_server: Node, real: RealTools) -> None:
    compare(moldau_server, real, "get-offsets", GET_OFFSETS)


def test_kafka_configs(moldau_server: Node, real: RealTools) -> None:
    compare(moldau_server, real, "configs", CONFIGS)


def test_kafka_configs_of_quotas(moldau_server: Node, real: RealTools) -> None:
    compare(moldau_server, real, "configs", QUOTAS)


def test_kafka_client_metrics(moldau_server: Node, real: RealTools) -> None:
    compare(moldau_server, real, "client-metrics", CLIENT_METRICS)


def test_kafka_log_dirs(moldau_server: Node, real: RealTools) -> None:
    compare(moldau_server, real, "log-dirs", LOG_DIRS)


def test_kafka_delete_records(moldau_server: Node, real: RealTools) -> None:
    for name, text in DELETE_FILES.items():
        # One partition: the real tool shows several in an order that changes from run to run.
        rows = '{"topic": "%-orders", "partition": 1, "offset": -1}'
        for prefix in (REAL, OURS):
            (real.folder / f"{prefix}-{name}").write_text(text.replace("%s", rows).replace("%", prefix))
    lines = [f"--offset-json-file %-{name}" for name in DELETE_FILES]
    lines += [
        "--offset-json-file %-nope.json",
        "--no-such-flag",
        "--bootstrap-server x:1",
        "alone --offset-json-file x",
    ]
    compare(moldau_server, real, "delete-records", "\n".join(lines))


def test_kafka_broker_api_versions(moldau_server: Node, real: RealTools) -> None:
    compare(moldau_server, real, "broker-api-versions", " \n--version\nalone --version\n--no-such-flag")


def test_kafka_cluster(moldau_server: Node, real: RealTools) -> None:
    lines = ["cluster-id", "list-endpoints", "list-endpoints --include-fenced-brokers", "unregister --id 9"]
    lines += ["cluster-id --bootstrap-controller", "list-endpoints --bootstrap-controller"]
    compare(moldau_server, real, "cluster", "\n".join(lines))


def test_kafka_features(moldau_server: Node, real: RealTools) -> None:
    lines = [
        "describe",
        "upgrade --feature metadata.version=99",
        "upgrade --feature bogus=1",
        "upgrade --feature bogus",
    ]
    lines += ["downgrade --feature transaction.version=1 --dry-run", "disable --feature kraft.version --dry-run"]
    lines += ["version-mapping", "version-mapping --release-version 3.9-IV0"]
    lines += ["feature-dependencies --feature transaction.version=2 --feature group.version=1"]
    compare(moldau_server, real, "features", "\n".join(lines), first=True)


def test_kafka_metadata_quorum(moldau_server: Node, real: RealTools) -> None:
    lines = "describe --status\ndescribe --replication\ndescribe\ndescribe --status --replication"
    compare(moldau_server, real, "metadata-quorum", lines, first=True)


def test_kafka_storage(moldau_server: Node, real: RealTools) -> None:
    base = "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
    base += "listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19192\n"
    for prefix in (REAL, OURS):
        dynamic = f"{base}controller.quorum.bootstrap.servers=127.0.0.1:19192\nlog.dirs={real.folder}/{prefix}-a\n"
        fixed = f"{base}controller.quorum.voters=1@127.0.0.1:19192\nlog.dirs={real.folder}/{prefix}-b\n"
        (real.folder / f"{prefix}-a.properties").write_text(dynamic)
        (real.folder / f"{prefix}-b.properties").write_text(fixed)
        (real.folder / f"{prefix}-bad.properties").write_text("node.id=1\n")
    lines = ["info -c %-a.properties", "format -t MkU3OEVBNTcwNTJENDM2Qk -c %-a.properties"]
    form = "format -t MkU3OEVBNTcwNTJENDM2Qk -c %-a.properties --standalone"
    lines += [form, "info -c %-a.properties", form, f"{form} --ignore-formatted", "format -t other -c %-b.properties"]
    lines += ["format -t X -c %-b.properties --release-version 9.9", "format -t X -c %-b.properties --standalone"]
    lines += ["format -t X -c %-b.properties", "format -t X -c nope.properties --standalone", "version-mapping"]
    lines += ["feature-dependencies --feature transaction.version=2", "info -c %-bad.properties"]
    compare(moldau_server, real, "storage", "\n".join(f"alone {line}" for line in lines))
