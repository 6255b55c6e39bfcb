"""Kafka's console tools by name as whole processes: pipes, signals, groups, much data, a stranger at the port."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.interop.nodes import HOST, MoldauNode, Node
from tests.pace import moment_ms, patience

SECONDS = patience(30)


def command(tool: str, node: Node, *arguments: str) -> list[str]:
    return [*MoldauNode.command(), f"kafka-{tool}", "--bootstrap-server", node.bootstrap, *arguments]


def environment() -> dict[str, str]:
    return MoldauNode.environment(MoldauNode.__new__(MoldauNode))


def run(tool: str, node: Node, *arguments: str, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(tool, node, *arguments), input=text, capture_output=True, timeout=SECONDS, env=environment()
    )


@contextmanager
def started(tool: str, node: Node, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command(tool, node, *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        # Whoever runs the tests in the background has it ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def read_lines(process: subprocess.Popen[bytes], count: int) -> list[bytes]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def create(node: Node, topic: str, partitions: int = 1) -> None:
    done = run("topics", node, "--create", "--topic", topic, "--partitions", str(partitions))
    assert done.returncode == 0, done.stderr


def test_many_lines_come_back_as_they_went_in(moldau_server: Node, topic: str) -> None:
    create(moldau_server, topic)
    lines = b"".join(b"%d %s\n" % (number, b"x" * (number % 300)) for number in range(20_000))
    assert run("console-producer", moldau_server, "--topic", topic, text=lines).returncode == 0
    found = run("console-consumer", moldau_server, "--topic", topic, "--from-beginning", "--max-messages", "20000")
    assert (found.returncode, found.stdout) == (0, lines)
    assert found.stderr.endswith(b"Processed a total of 20000 messages\n")


def test_what_is_typed_is_shown_while_both_run(moldau_server: Node, topic: str) -> None:
    create(moldau_server, topic, 3)
    with (
        started("console-consumer", moldau_server, "--topic", topic, "--from-beginning") as reader,
        started("console-producer", moldau_server, "--topic", topic, "--timeout", "10") as writer,
    ):
        assert writer.stdin is not None
        for word in (b"first\n", b"second\n", b"third\n"):
            writer.stdin.write(word)
            writer.stdin.flush()
            assert read_lines(reader, 1) == [word]


def test_ctrl_c_ends_the_consumer_with_the_number_of_records(moldau_server: Node, topic: str) -> None:
    create(moldau_server, topic)
    run("console-producer", moldau_server, "--topic", topic, text=b"a\nb\n")
    with started("console-consumer", moldau_server, "--topic", topic, "--from-beginning") as reader:
        assert read_lines(reader, 2) == [b"a\n", b"b\n"]
        reader.send_signal(signal.SIGINT)
        _, said = reader.communicate(timeout=SECONDS)
        assert reader.returncode == 130
        assert said.splitlines()[1:] == [b"Processed a total of 2 messages"]


def test_sigterm_ends_the_consumer_as_ctrl_c_does(moldau_server: Node, topic: str) -> None:
    create(moldau_server, topic)
    run("console-producer", moldau_server, "--topic", topic, text=b"a\n")
    with started("console-consumer", moldau_server, "--topic", topic, "--from-beginning") as reader:
        assert read_lines(reader, 1) == [b"a\n"]
        reader.terminate()
        _, said = reader.communicate(timeout=SECONDS)
        assert reader.returncode == 143
        assert said.splitlines()[1:] == [b"Processed a total of 1 messages"]


def test_ctrl_c_in_the_producer_loses_nothing_that_was_typed(moldau_server: Node, topic: str) -> None:
    create(moldau_server, topic)
    with started("console-producer", moldau_server, "--topic", topic, "--timeout", "60000") as writer:
        assert writer.stdin is not None
        writer.stdin.write(b"typed\n")
        writer.stdin.flush()
        time.sleep(1.5)
        writer.send_signal(signal.SIGINT)
        out, said = writer.communicate(timeout=SECONDS)
        assert (writer.returncode, out, said) == (130, b"", b"")
    found = run("console-consumer", moldau_server, "--topic", topic, "--from-beginning", "--max-messages", "1")
    assert found.stdout == b"typed\n"


def test_a_broken_pipe_ends_the_consumer_quietly(moldau_server: Node, topic: str) -> None:
    create(moldau_server, topic)
    run("console-producer", moldau_server, "--topic", topic, text=b"some longer line\n" * 50_000)
    with started("console-consumer", moldau_server, "--topic", topic, "--from-beginning") as reader:
        assert read_lines(reader, 2) == [b"some longer line\n"] * 2
        assert reader.stdout is not None and reader.stderr is not None
        reader.stdout.close()
        said = reader.stderr.read()
        assert reader.wait(SECONDS) == 141
        assert b"Traceback" not in said and b"Error" not in said


def test_a_group_goes_on_where_it_was(moldau_server: Node, topic: str) -> None:
    create(moldau_server, topic, 2)
    group = ("--topic", topic, "--group", f"{topic}-group", "--from-beginning")
    run("console-producer", moldau_server, "--topic", topic, text=b"a\nb\nc\n")
    first = run("console-consumer", moldau_server, *group, "--max-messages", "2")
    rest = run("console-consumer", moldau_server, *group, "--timeout-ms", str(moment_ms(9_000)))
    assert first.stdout.count(b"\n") == 2
    assert sorted((first.stdout + rest.stdout).splitlines()) == [b"a", b"b", b"c"]
    assert rest.stderr.endswith(b"Processed a total of 1 messages\n")


def test_topics_that_match_are_read_and_new_ones_wait_for_nobody(moldau_server: Node, topic: str) -> None:
    for name in (f"{topic}-one", f"{topic}-two", f"x-{topic}"):
        create(moldau_server, name)
        run("console-producer", moldau_server, "--topic", name, text=name.encode() + b"\n")
    wanted = ("--include", f"{topic}-(one|two)", "--from-beginning", "--max-messages", "2")
    found = run("console-consumer", moldau_server, *wanted)
    assert sorted(found.stdout.splitlines()) == [f"{topic}-one".encode(), f"{topic}-two".encode()]


def test_somebody_else_at_the_port_is_no_traceback() -> None:
    """A server that answers everything with a sentence in HTTP."""
    listener = socket.create_server((HOST, 0))
    address = f"{HOST}:{listener.getsockname()[1]}"

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.recv(4096)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    threading.Thread(target=serve, daemon=True).start()
    try:
        for tool, more in (
            ("console-producer", ["--max-block-ms", str(moment_ms(1500))]),
            ("console-consumer", ["--timeout-ms", str(moment_ms(1500))]),
        ):
            words = [*MoldauNode.command(), f"kafka-{tool}", "--bootstrap-server", address, "--topic", "x", *more]
            done = subprocess.run(words, input=b"x\n", capture_output=True, timeout=SECONDS, env=environment())
            assert b"Traceback" not in done.stderr
            assert b"TimeoutException" in done.stderr or b"Exception" in done.stderr, done.stderr
    finally:
        listener.close()


def test_the_process_leaves_nothing_behind(moldau_server: Node, topic: str) -> None:
    """A consumer without a group of the user's leaves no group on the broker."""
    create(moldau_server, topic)
    run("console-producer", moldau_server, "--topic", topic, text=b"a\n")
    before = run("consumer-groups", moldau_server, "--list").stdout
    run("console-consumer", moldau_server, "--topic", topic, "--from-beginning", "--max-messages", "1")
    assert run("consumer-groups", moldau_server, "--list").stdout == before


def test_measurements_count_what_was_sent(moldau_server: Node, topic: str) -> None:
    create(moldau_server, topic)
    address = f"bootstrap.servers={moldau_server.bootstrap}"
    words = [*MoldauNode.command(), "kafka-producer-perf-test", "--topic", topic, "--num-records", "5000"]
    words += ["--record-size", "200", "--throughput", "-1", "--command-property", address]
    done = subprocess.run(words, capture_output=True, timeout=SECONDS, env=environment())
    assert done.stdout.startswith(b"5000 records sent, ") and done.returncode == 0
    read = run("consumer-perf-test", moldau_server, "--topic", topic, "--num-records", "5000", "--hide-header")
    cells = read.stdout.decode().split(", ")
    assert (cells[2], cells[4]) == (f"{5000 * 200 / 1024 / 1024:.4f}", "5000")
