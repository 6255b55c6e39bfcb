"""The command line, run in this process against a scripted broker."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner, Result

from moldau.cli.notices import Notices
from moldau.cli.root import root
from moldau.client.connection import cluster
from moldau.protocol.messages.create_topics_request import CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest
from moldau.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
from moldau.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from moldau.protocol.messages.describe_configs_request import DescribeConfigsRequest
from moldau.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from moldau.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from moldau.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse, DescribeLogDirsResult
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.list_offsets_request import ListOffsetsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.primitives import Message
from tests.unit.client import test_consumer, test_producer
from tests.unit.client.fake_network import FakeNetwork, ScriptedBroker, metadata

ADDRESS = ("localhost", 9092)


class World:
    """One scripted broker at localhost:9092, with a log to produce to and one to consume from."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.topics: dict[str, int | list[int]] = {"t": [1, 1]}
        self.broker = ScriptedBroker()
        self.written = test_producer.Log()
        self.log = test_consumer.Log()
        self.broker.on(MetadataRequest, metadata(self.topics, {1: ADDRESS}))
        self.broker.on(ListOffsetsRequest, self.log.list_offsets)
        self.broker.on(FetchRequest, self.log.fetch)
        self.broker.on(ProduceRequest, self.written.handle)
        self.broker.on(InitProducerIdRequest, lambda request, version: InitProducerIdResponse(producer_id=5))
        network = FakeNetwork({ADDRESS: self.broker}, real_time=True)
        monkeypatch.setattr(cluster, "socket_network", lambda config: network)
        monkeypatch.delenv("MOLDAU_BOOTSTRAP_SERVER", raising=False)

    def run(self, *arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(root, list(arguments), input=stdin, prog_name="moldau")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield World(monkeypatch)


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(root, ["--help"])
    assert result.exit_code == 0
    for name in ("server", "storage", "topic", "produce", "consume"):
        assert name in result.stdout


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its words."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(leaves(root))

# Commands without an output for programs, and why.
WITHOUT_FORMAT = {
    "server": "runs until it is stopped; what it says on the way is its log",
    "console": "runs until it is stopped; what it says is for browsers",
    "mcp": "runs until it is stopped; its output is the protocol's",
    "completion": "its output is a program already: the script of a shell",
    "help": "pages for people",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_an_output_for_programs(command: str) -> None:
    result = CliRunner().invoke(root, [*command.split(), "--help"])
    assert result.exit_code == 0 and "Usage:" in result.stdout
    assert ("--format" in result.stdout) is (command not in WITHOUT_FORMAT)


def test_the_line_of_help_of_a_group_is_that_of_no_other_command() -> None:
    ctx = click.Context(root)
    texts = [text for _, text in root.described(ctx) if not text.startswith("Kafka's tool")]
    assert len(set(texts)) == len(texts) and all(text.endswith(".") for text in texts)


def test_version_says_which_and_how_it_was_built() -> None:
    result = CliRunner().invoke(root, ["--version"])
    assert result.stdout.startswith("moldau ") and ("compiled" in result.stdout or "interpreted" in result.stdout)


def test_an_unknown_command_is_answered_with_the_nearest_one() -> None:
    result = CliRunner().invoke(root, ["topc"])
    assert result.exit_code == 2 and "Did you mean 'topic'?" in result.stderr


def test_topics_as_a_table_as_names_and_as_json(world: World) -> None:
    assert world.run("topic", "list").stdout == "NAME  PARTITIONS  REPLICAS\nt              2         1\n"
    assert world.run("topic", "list", "-q").stdout == "t\n"
    (row,) = json.loads(world.run("topic", "list", "--format", "json").stdout)
    assert (row["name"], row["partitions"], row["internal"]) == ("t", 2, False)


def test_no_topics_is_said_on_stderr_and_is_no_error(world: World) -> None:
    world.topics.clear()
    result = world.run("topic", "list")
    assert (result.exit_code, result.stdout) == (0, "") and "no topics yet" in result.stderr


def create_handler(request: Message, version: int) -> object:
    assert isinstance(request, CreateTopicsRequest)
    rows = []
    for topic in request.topics:
        if topic.name == "taken":
            rows.append(
                CreatableTopicResult(name="taken", error_code=36, error_message="Topic 'taken' already exists.")
            )
        else:
            row = CreatableTopicResult(name=topic.name, error_message=None, replication_factor=1)
            row.num_partitions = topic.num_partitions
            rows.append(row)
    return CreateTopicsResponse(topics=rows)


def test_creating_topics_reports_each_of_them(world: World) -> None:
    world.broker.on(CreateTopicsRequest, create_handler)
    result = world.run("topic", "create", "fresh", "taken", "-p", "3")
    assert result.exit_code == 1
    assert result.stdout == "Created topic fresh: 3 partitions, replication factor 1.\n"
    assert "already exists" in result.stderr and "--if-not-exists" in result.stderr
    assert world.run("topic", "create", "taken", "--if-not-exists").exit_code == 0
    rows = json.loads(world.run("topic", "create", "fresh", "taken", "--format", "json").stdout)
    assert [row.get("error") for row in rows] == [None, "TOPIC_ALREADY_EXISTS"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("topic", "create", "x", "-c", "noequals"),
        ("topic", "create", "x", "-p", "three"),
        ("topic", "create", "x", "--replica-assignment", "a:b"),
        ("topic", "create", "x", "--replica-assignment", "1:2", "-p", "2"),
        ("topic", "create"),
        ("topic", "list", "--bogus"),
        ("topic", "list", "-X", "linger.ms"),
        ("produce", "t", "-K", ""),
        ("produce", "t", "-k", "a", "-K", ":"),
        ("produce", "t", "-H", "=x"),
        ("consume", "t", "-o", "middle"),
        ("consume", "t", "-o", "@yesterday"),
        ("consume", "t", "-p", "x"),
        ("consume", "t", "-f", "%q"),
        ("consume", "t", "-f", "\\xzz"),
        ("consume", "t", "-n", "-1"),
    ],
)
def test_bad_arguments_are_answered_with_usage_and_code_2(world: World, arguments: tuple[str, ...]) -> None:
    result = world.run(*arguments)
    assert result.exit_code == 2, result.output
    assert "Error:" in result.stderr and "Traceback" not in result.output


def test_deleting_a_topic_that_is_not_there(world: World) -> None:
    def handle(request: Message, version: int) -> object:
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name="gone", error_code=3)])

    world.broker.on(DeleteTopicsRequest, handle)
    result = world.run("topic", "delete", "gone")
    assert result.exit_code == 1 and "Topic gone does not exist." in result.stderr
    assert world.run("topic", "delete", "gone", "--if-exists").exit_code == 0


def test_describing_a_topic_shows_offsets_and_configs(world: World) -> None:
    def configs(request: Message, version: int) -> object:
        rows = [
            DescribeConfigsResourceResult(name="retention.ms", value="5", config_source=1),
            DescribeConfigsResourceResult(name="segment.bytes", value="9", config_source=5),
        ]
        return DescribeConfigsResponse(
            results=[DescribeConfigsResult(resource_type=2, resource_name="t", configs=rows)]
        )

    world.broker.on(DescribeConfigsRequest, configs)
    world.log.add(1, [b"a", b"b"])
    text = world.run("topic", "describe", "t").stdout
    assert "retention.ms=5 (topic)" in text and "segment.bytes" not in text
    assert text.splitlines()[-2].split() == ["1", "1", "7", "1", "1", "0", "2"]
    (row,) = json.loads(world.run("topic", "describe", "t", "--format", "json").stdout)
    assert [item["end_offset"] for item in row["partitions"]] == [0, 2]


def test_lines_become_records_with_keys_headers_and_nulls(world: World) -> None:
    result = world.run(
        "produce", "t", "-K", ":", "-H", "a=1", "-H", "b", "--null-marker", "NULL", "-p", "1", stdin="k:v\nx:NULL\n"
    )
    assert result.exit_code == 0 and result.stderr == "Delivered 2 records: 2 to partition 1.\n"
    first, second = world.written.records[1]
    assert (first.key, first.value, first.headers) == (b"k", b"v", [("a", b"1"), ("b", None)])
    assert (second.key, second.value) == (b"x", None)


def test_a_line_without_the_separator_ends_the_command_after_the_lines_before_it(world: World) -> None:
    result = world.run("produce", "t", "-K", ":", stdin="k:v\nbroken\n")
    assert result.exit_code == 1 and "Line 2 has no key separator ':' in it." in result.stderr
    assert sum(len(records) for records in world.written.records.values()) == 1


def test_json_lines_go_in_as_they_come_out(world: World) -> None:
    world.log.add(0, [b"text", b"\xff\x00"])
    lines = world.run("consume", "t", "-f", "json").stdout
    assert world.run("produce", "t", "-f", "json", stdin=lines).exit_code == 0
    assert [record.value for record in world.written.records[0]] == [b"text", b"\xff\x00"]
    assert world.run("produce", "t", "-f", "json", stdin="{").exit_code == 1


def test_a_refused_record_is_an_error(world: World) -> None:
    world.written.faults = [10]
    result = world.run("produce", "t", stdin="x\n")
    assert result.exit_code == 1 and "1 record was not delivered" in result.stderr


def test_a_line_that_is_too_large_is_named_and_the_lines_before_it_are_sent(world: World) -> None:
    result = world.run("produce", "t", stdin=b"small\n" + b"x" * 2_000_000 + b"\n")
    assert result.exit_code == 1
    assert "Line 2 cannot be sent" in result.stderr and "max.request.size" in result.stderr
    assert result.stderr.startswith("Delivered 1 record:")


def test_records_are_printed_to_the_end_and_no_further(world: World) -> None:
    world.log.add(0, [b"a", b"b"])
    world.log.add(1, [b"c"])
    result = world.run("consume", "t")
    assert sorted(result.stdout.split()) == ["a", "b", "c"] and result.exit_code == 0
    assert world.run("consume", "t", "-p", "0", "-f", "%t/%p/%o/%S/%k|%s\\n", "--null-marker", "-").stdout == (
        "t/0/0/1/-|a\nt/0/1/1/-|b\n"
    )


@pytest.mark.parametrize(
    ("offset", "printed"),
    [("beginning", "abc"), ("end", ""), ("1", "bc"), ("-1", "c"), ("-99", "abc"), ("3", ""), ("@1", "")],
)
def test_offsets_say_where_to_start(world: World, offset: str, printed: str) -> None:
    world.log.add(0, [b"a", b"b", b"c"])
    assert world.run("consume", "t", "-p", "0", "-o", offset, "-f", "%s").stdout == printed


def test_a_count_stops_early(world: World) -> None:
    world.log.add(0, [b"a", b"b", b"c"])
    assert world.run("consume", "t", "-n", "2", "-f", "%s").stdout == "ab"
    assert world.run("consume", "t", "-n", "0", "-f", "%s").stdout == ""


def test_an_offset_and_a_partition_that_are_not_there(world: World) -> None:
    result = world.run("consume", "t", "-o", "7")
    assert result.exit_code == 1 and "Offset 7 is not there: t-0 has 0 to 0" in result.stderr
    result = world.run("consume", "t", "-p", "0,5")
    assert result.exit_code == 1 and "there is no partition 5" in result.stderr


def test_a_topic_that_is_not_there(world: World) -> None:
    result = world.run("consume", "nope")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: Topic nope does not exist. `moldau topic list`")


def test_a_broker_that_is_not_there(world: World) -> None:
    world.broker.up = False
    for command in (("topic", "list"), ("consume", "t"), ("produce", "t")):
        result = world.run(*command, "--timeout", "1", stdin="x\n")
        assert result.exit_code == 1, command
        assert "Connection refused" in result.stderr and "moldau server" in result.stderr
        assert "Traceback" not in result.output


def test_a_broker_that_falls_silent_is_given_up(world: World) -> None:
    world.log.add(0, [b"a"])
    world.log.faults = [6] * 10_000
    result = world.run("consume", "t", "--timeout", "0.3")
    assert result.exit_code == 1 and "Nothing arrived for 0.3 seconds" in result.stderr


def test_the_flag_is_stronger_than_the_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", "elsewhere:1")
    assert "elsewhere:1" in world.run("topic", "list").stderr
    assert world.run("topic", "list", "--bootstrap-server", "localhost:9092").exit_code == 0


def test_ctrl_c_is_quiet(world: World) -> None:
    def interrupt(request: Message, version: int) -> object:
        raise KeyboardInterrupt

    world.broker.on(FetchRequest, interrupt)
    world.log.add(0, [b"a"])
    result = world.run("consume", "t", "--follow")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "")


def test_a_bug_is_told_without_a_traceback(world: World) -> None:
    def fail(request: Message, version: int) -> object:
        raise ZeroDivisionError("oops")

    world.broker.on(MetadataRequest, fail)
    result = world.run("topic", "list")
    assert result.exit_code == 1 and "ZeroDivisionError: oops" in result.stderr and "MOLDAU_DEBUG" in result.stderr


def test_help_and_version_import_neither_client_nor_server() -> None:
    script = (
        "import sys; sys.argv=['moldau','--help']\n"
        "from moldau.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy=[m for m in sys.modules if m.startswith(('moldau.client','moldau.server','moldau.protocol','rich'))]\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def completed(monkeypatch: pytest.MonkeyPatch, words: str) -> list[str]:
    """What bash would offer behind these words."""
    monkeypatch.setenv("_MOLDAU_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    result = CliRunner().invoke(root, [], prog_name="moldau")
    assert result.exit_code == 0 and result.stderr == ""
    return [line.removeprefix("plain,") for line in result.stdout.split()]


def test_commands_options_and_topics_are_completed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.topics["__secret"] = [1]
    assert completed(monkeypatch, "moldau con") == ["consume", "config", "console"]
    assert "kafka-topics" in completed(monkeypatch, "moldau kafka-")
    assert completed(monkeypatch, "moldau topic trun") == ["truncate-to"]
    assert completed(monkeypatch, "moldau consume --fo") == ["--follow", "--format"]
    assert completed(monkeypatch, "moldau consume ") == ["t"]
    assert completed(monkeypatch, "moldau consume __") == ["__secret"]
    assert completed(monkeypatch, "moldau consume t ") == []
    assert completed(monkeypatch, "moldau acl test User:a read topic ") == ["t"]
    assert completed(monkeypatch, "moldau acl test User:a read to") == ["topic"]
    assert completed(monkeypatch, "moldau config describe topic ") == ["t"]
    world.broker.up = False
    assert completed(monkeypatch, "moldau consume ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell: str) -> None:
    result = CliRunner().invoke(root, ["completion", shell])
    assert result.exit_code == 0 and "_MOLDAU_COMPLETE" in result.stdout


def test_what_the_client_repeats_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    notices = Notices()
    for text in ("no broker", "no broker", "no topic", "no broker"):
        notices.handle(logging.LogRecord("moldau.client", logging.WARNING, "", 0, text, None, None))
    assert capsys.readouterr().err.splitlines() == ["no broker", "no topic", "no broker"]


@pytest.mark.parametrize(
    ("usable", "shown", "space"),
    [(0, "online, but full", "full"), (100 << 20, "online, little space left", "low"), (1 << 40, "online", "enough")],
)
def test_a_directory_without_space_is_not_just_online(world: World, usable: int, shown: str, space: str) -> None:
    world.broker.on(
        DescribeClusterRequest,
        lambda request, version: DescribeClusterResponse(
            cluster_id="c",
            controller_id=1,
            brokers=[DescribeClusterBroker(broker_id=1, host=ADDRESS[0], port=ADDRESS[1])],
        ),
    )
    world.broker.on(
        DescribeConfigsRequest,
        lambda request, version: DescribeConfigsResponse(
            results=[DescribeConfigsResult(resource_type=4, resource_name="1", configs=[])]
        ),
    )
    directory = DescribeLogDirsResult(log_dir="/data", total_bytes=1 << 42, usable_bytes=usable)
    world.broker.on(DescribeLogDirsRequest, lambda request, version: DescribeLogDirsResponse(results=[directory]))
    result = world.run("broker", "describe", "1")
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("/data")]
    assert line.rstrip().endswith(shown)
    (row,) = json.loads(world.run("broker", "describe", "--format", "json").stdout)
    assert row["log_directories"][0]["space"] == space
