"""Builds the container image and tries it with podman or docker: read-only and alone, then as testcontainers use it.

    python3 tools/try_image.py                       the wheel in dist/ on python:…-slim of the same version
    python3 tools/try_image.py --debian bookworm     on a base of Debian's packages, where no registry can be had

A base that mmdebstrap makes has Debian's own Python, which the wheel has to fit. With `testcontainers` and
`confluent-kafka` in this Python and DOCKER_HOST set, their KafkaContainer is started from the image too, with KRaft and
without. Prints what it sees; ends with an error at the first thing that is not as it should be.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYER_MEGABYTES_MAX = 60
READY = "Transitioning from RECOVERY to RUNNING"
OWN_DIRECTORIES = ("opt/moldau", "opt/kafka", "etc/kafka", "etc/confluent", "var/lib/appuser")


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the container image and try it.")
    parser.add_argument("--wheel", type=Path, help="default: the one in dist/")
    parser.add_argument("--debian", metavar="RELEASE", help="make the base with mmdebstrap instead of fetching one")
    parser.add_argument("--tag", default="localhost/moldau:8.0.0", help="the number is one that testcontainers accept")
    parser.add_argument("--build-option", action="append", default=[], help="for `build`, such as --network=host")
    options = parser.parse_args()
    options.wheel = options.wheel or next((ROOT / "dist").glob("*.whl"), None)
    if options.wheel is None:
        raise SystemExit("there is no wheel in dist/: run `make wheel` first")
    engine = next((name for name in ("podman", "docker") if shutil.which(name)), None)
    if engine is None:
        raise SystemExit("neither podman nor docker is here")
    with tempfile.TemporaryDirectory(prefix="moldau-image-") as directory:
        build(engine, options, Path(directory))
    measure(engine, options.tag)
    try_alone(engine, options.tag)
    try_with_testcontainers(options.tag)
    return 0


def build(engine: str, options: argparse.Namespace, directory: Path) -> None:
    shutil.copytree(ROOT / "deploy", directory / "deploy")
    (directory / "dist").mkdir()
    shutil.copy(options.wheel, directory / "dist")
    arguments = list(options.build_option)
    if options.debian:
        base = directory / "base.tar"
        packages = "python3,python3-venv,python3-pip,ca-certificates"
        run(["mmdebstrap", "--variant=minbase", f"--include={packages}", options.debian, str(base)])
        run([engine, "import", str(base), "localhost/debian-python:latest"])
        base.unlink()
        arguments += ["--build-arg", "BASE=localhost/debian-python:latest"]
    elif version := re.search(r"-cp3(\d+)-", options.wheel.name):
        arguments += ["--build-arg", f"BASE=python:3.{version[1]}-slim-bookworm"]
    if engine == "podman":
        arguments += ["--format", "docker"]  # the other one has no health check
    began = time.monotonic()
    run([engine, "build", *arguments, "-f", str(directory / "deploy/Containerfile"), "-t", options.tag, str(directory)])
    print(f"built in {time.monotonic() - began:.0f} s")


def measure(engine: str, tag: str) -> None:
    """What the image adds to its base."""
    tar = subprocess.Popen(
        [engine, "run", "--rm", "--entrypoint", "tar", tag, "-C", "/", "-c", *OWN_DIRECTORIES],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert tar.stdout is not None
    plain = tar.stdout.read()
    if tar.wait():
        raise SystemExit("the image's directories cannot be read")
    megabytes = len(gzip.compress(plain, 6)) / 1e6
    print(f"beside the base: {len(plain) / 1e6:.1f} MB, {megabytes:.1f} MB compressed")
    if megabytes > LAYER_MEGABYTES_MAX:
        raise SystemExit(f"that is more than {LAYER_MEGABYTES_MAX} MB")


def try_alone(engine: str, tag: str) -> None:
    """Nothing set, a root that cannot be written to, no capabilities; Kafka's tools inside; an orderly stop."""
    confined = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    name = f"moldau-try-{os.getpid()}"
    run([engine, "run", "--detach", "--name", name, *confined, tag])
    try:
        wait_for(engine, name, READY)
        print(inside(engine, name, "/opt/kafka/bin/healthcheck"))
        inside(
            engine,
            name,
            "bash",
            "-c",
            "echo hello | kafka-console-producer --bootstrap-server localhost:9092 --topic t",
        )
        read = "/opt/kafka/bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic t"
        text = inside(engine, name, *read.split(), "--from-beginning", "--max-messages", "1")
        if "hello" not in text.split():
            raise SystemExit(f"read something else: {text}")
        if inside(engine, name, "id", "-u") == "0":
            raise SystemExit("it runs as root")
        began = time.monotonic()
        run([engine, "stop", "--time", "60", name])
        print(f"alone: ready, healthy, a record went through; stopped in {time.monotonic() - began:.1f} s")
        wait_for(engine, name, "node 1 has stopped")
    finally:
        run([engine, "rm", "--force", name])


def wait_for(engine: str, name: str, line: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        logs = subprocess.run(
            [engine, "logs", name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ).stdout
        if line in logs:
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"no {line!r} in:\n{logs}")
        time.sleep(0.1)


def inside(engine: str, name: str, *command: str) -> str:
    ended = subprocess.run([engine, "exec", name, *command], capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
    return ended.stdout.strip()


def try_with_testcontainers(tag: str) -> None:
    try:
        from confluent_kafka import Consumer, Producer
        from testcontainers.community.kafka import KafkaContainer
    except ImportError as error:
        print(f"not tried with testcontainers: {error}")
        return
    for mode in ("with KRaft", "as it is"):
        container = KafkaContainer(tag)
        if mode == "with KRaft":
            container = container.with_kraft()
        began = time.monotonic()
        with container as kafka:
            address = kafka.get_bootstrap_server()
            took = time.monotonic() - began
            failures: list[object] = []
            producer = Producer({"bootstrap.servers": address, "log_level": 0})
            producer.produce("t", b"hello", callback=lambda error, _, failures=failures: failures.append(error))
            producer.flush(30)
            consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
            consumer.subscribe(["t"])
            record = consumer.poll(30)
            consumer.close()
            if failures != [None] or record is None or record.value() != b"hello":
                raise SystemExit(f"testcontainers {mode}: no record went through")
        print(f"testcontainers {mode}: ready after {took:.1f} s, a record went through")


def run(command: list[str]) -> None:
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout[-3000:]}")


if __name__ == "__main__":
    sys.exit(main())
