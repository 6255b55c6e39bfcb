"""The plugin as pytest runs it: fixtures, several workers, faults that end with their test, and help for failures."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.pace import wait_until
from tests.testing.runs import command, environment, run_pytest

FIXTURES = """
import pytest
from moldau.client import Producer

names = []

def test_a_topic_of_its_own(kafka_topic, kafka_bootstrap_servers, kafka_broker):
    assert kafka_topic.startswith("test_a_topic_of_its_own-")
    assert kafka_bootstrap_servers == kafka_broker.bootstrap_servers
    with Producer(kafka_bootstrap_servers) as producer:
        producer.send(kafka_topic, "x")
    assert [r.value for r in kafka_topic.wait_for_records(1)] == [b"x"]
    names.append(kafka_topic)

@pytest.mark.parametrize("kafka_topic", [{"partitions": 3}], indirect=True)
def test_with_partitions(kafka_topic, kafka_broker):
    assert kafka_topic.partitions == 3
    assert kafka_broker.topics() == [kafka_topic], "the one before is deleted"

def test_that_leaves_a_mess(kafka_broker):
    kafka_broker.fail_next("Produce", "REQUEST_TIMED_OUT", times=None)
    kafka_broker.kill()

def test_after_it(kafka_broker, kafka_topic):
    assert kafka_broker.is_healthy
    with Producer(kafka_broker.bootstrap_servers) as producer:
        producer.send(kafka_topic, "x").result(600_000)
"""


def test_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FIXTURES)
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_it(kafka_cluster):\n"
        "    cluster = kafka_cluster(brokers=2)\n"
        "    topic = cluster.topic(replication_factor=2)\n"
        "    cluster.produce(topic, 'x')\n"
        "    assert len(cluster.records(topic)) == 1\n"
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout


def test_every_worker_has_a_broker_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import os, pathlib, pytest\n"
        "@pytest.mark.parametrize('n', range(6))\n"
        "def test_it(n, kafka_broker, kafka_topic):\n"
        "    kafka_topic.produce('x')\n"
        "    assert kafka_broker.topics() == [kafka_topic]\n"
        "    pathlib.Path(f'{os.getpid()}-{kafka_broker.port}.seen').touch()\n"
    )
    done = run_pytest(tmp_path, "-n", "2")
    assert done.returncode == 0, done.stdout
    seen = [path.stem.split("-") for path in tmp_path.glob("*.seen")]
    assert len({pid for pid, _ in seen}) == len({port for _, port in seen}) == len(seen)


def test_settings_from_the_ini_file(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmoldau_config =\n    num.partitions=7\n")
    (tmp_path / "test_it.py").write_text(
        "def test_it(kafka_broker):\n"
        "    kafka_broker.produce('made-by-itself', 'x')\n"
        "    assert len(kafka_broker._partitions('made-by-itself')) == 7\n"
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout


def test_a_failure_shows_the_log_of_the_broker(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_it(kafka_broker):\n    kafka_broker.fill_disk()\n    assert kafka_broker.topics() == ['orders']\n"
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 1
    assert "the broker's log" in done.stdout and "moldau.log.dir.free.bytes.min" in done.stdout


def test_a_broker_that_does_not_start_is_explained(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmoldau_config = log.retention.ms=soon\n")
    (tmp_path / "test_it.py").write_text("def test_it(kafka_topic):\n    pass\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 1
    assert "Invalid value soon for configuration log.retention.ms" in done.stdout


def test_nothing_is_left_of_a_run_that_was_killed(tmp_path: Path) -> None:
    """Neither a broker that runs nor one that is paused, nor their data."""
    (tmp_path / "test_it.py").write_text(
        "import pathlib, time\n"
        "from moldau.testing import Broker\n"
        "def test_it(kafka_broker):\n"
        "    with Broker() as other:\n"
        "        other.pause()\n"
        "        found = [kafka_broker.pid, other.pid, kafka_broker.data_dir, other.data_dir]\n"
        "        pathlib.Path('seen.tmp').write_text('\\n'.join(map(str, found)))\n"
        "        pathlib.Path('seen.tmp').rename('seen')\n"
        "        time.sleep(600)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    process = subprocess.Popen(
        command("-q"), cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: (tmp_path / "seen").exists(), 120)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    first, second, *folders = (tmp_path / "seen").read_text().split("\n")
    wait_until(lambda: not is_alive(int(first)) and not is_alive(int(second)), 120)
    wait_until(lambda: not any(os.path.exists(folder) for folder in folders), 120)


def is_alive(pid: int) -> bool:
    """A process that has ended may still wait for somebody who asks how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
