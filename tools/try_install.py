"""Tries the Moldau that is installed beside this Python: version, broker, client and tools, as a user would.

    python try_install.py --compiled       fails unless the hot modules are compiled
    python try_install.py --interpreted    fails if they are

Run it from anywhere: it works in a temporary directory and never imports the sources of a checkout.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

MOLDAU = [sys.executable, "-m", "moldau"]
SECONDS = 60
LINES = ["a spring", "a stream", "a river"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Try the installed Moldau.")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--compiled", action="store_const", const="compiled", dest="kind")
    kind.add_argument("--interpreted", action="store_const", const="interpreted", dest="kind")
    wanted = parser.parse_args().kind
    os.environ.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory(prefix="moldau-try-") as directory:
        os.chdir(directory)
        version = run("--version")
        print(version)
        if f"({wanted}," not in version:
            print(f"this is not {wanted}")
            return 1
        broker, address, seconds = start()
        try:
            print(f"broker ready after {seconds:.2f} s on {address}")
            use(address)
        finally:
            broker.terminate()
            code = broker.wait(SECONDS)
        print("stopped" if code == 0 else f"the broker ended with code {code}")
        return 0 if code == 0 else 1


def run(*arguments: str, text: str | None = None) -> str:
    ended = subprocess.run([*MOLDAU, *arguments], input=text, capture_output=True, text=True, timeout=SECONDS)
    if ended.returncode:
        raise SystemExit(f"moldau {' '.join(arguments)} ended with {ended.returncode}: {ended.stderr}{ended.stdout}")
    return ended.stdout.strip()


def start() -> tuple[subprocess.Popen[str], str, float]:
    began = time.perf_counter()
    broker = subprocess.Popen([*MOLDAU, "server", "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert broker.stdout is not None
    line = broker.stdout.readline()
    port = re.search(r":(\d+)", line)
    if port is None:
        broker.kill()
        broker.wait()
        raise SystemExit(f"the broker did not start: {line!r}")
    return broker, f"127.0.0.1:{port[1]}", time.perf_counter() - began


def use(address: str) -> None:
    """Records there and back: with the commands, with Kafka's tools by name, and with the client."""
    run("topic", "create", "river", "--partitions", "1", "-b", address)
    run("produce", "river", "-b", address, text="".join(f"{line}\n" for line in LINES))
    read = run("consume", "river", "-n", str(len(LINES)), "-b", address)
    missing = [line for line in LINES if line not in read]
    if missing:
        raise SystemExit(f"consume did not show {missing}: {read}")
    described = run("kafka-topics", "--bootstrap-server", address, "--describe", "--topic", "river")
    if "PartitionCount: 1" not in described:
        raise SystemExit(f"kafka-topics says {described}")
    from moldau.client import Consumer, Producer, TopicPartition

    with Producer(address) as producer:
        producer.send("river", b"the sea").result(SECONDS * 1000)
    with Consumer(address) as consumer:
        consumer.assign([TopicPartition("river", 0)])
        consumer.seek_to_beginning()
        values: list[bytes | None] = []
        deadline = time.monotonic() + SECONDS
        while len(values) < len(LINES) + 1 and time.monotonic() < deadline:
            values += [record.value for record in consumer.poll(1000)]
    if values != [line.encode() for line in [*LINES, "the sea"]]:
        raise SystemExit(f"the client read {values}")
    print(f"{len(values)} records through commands, Kafka's tools and the client")


if __name__ == "__main__":
    sys.exit(main())
