"""The scripts of the container image as real processes, outside of a container: testcontainers' own command sequences.

The image's folders are laid out below a temporary root. What testcontainers copy into a container and run there is run
here with that root in front of the paths; a record is produced and read with confluent-kafka.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.nodes import HOST, free_ports, random_cluster_id
from tests.pace import patience

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(shutil.which("bash") is None, reason="the scripts are bash's"),
]
confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

DEPLOY = Path(__file__).resolve().parents[2] / "deploy" / "container"
SECONDS_MAX = patience(60)
FORMAT = "kafka-storage format --ignore-formatted"


class Container:
    """A file system like the image's, and one process in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.broker_port, self.inner_port, self.controller_port = free_ports(3)
        shutil.copytree(DEPLOY / "apache", root / "etc/kafka/docker")
        shutil.copytree(DEPLOY / "confluent", root / "etc/confluent/docker")
        shutil.copytree(DEPLOY / "bin", root / "usr/bin")
        for folder in ("opt/kafka/config", "var/lib/kafka/data", "dev/shm", "home"):
            (root / folder).mkdir(parents=True)
        storage = root / "usr/bin/kafka-storage"
        storage.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m moldau.cli.main kafka-storage "$@"\n')
        storage.chmod(0o755)
        sources = os.environ.get("PYTHONPATH", "")
        if os.environ.get("MOLDAU_EXPECT_COMPILED") != "1":
            sources = os.pathsep.join([str(DEPLOY.parents[1] / "src"), sources]).rstrip(os.pathsep)
        self.environment = {
            "PATH": f"{root}/usr/bin:{os.environ['PATH']}",
            "PYTHONPATH": sources,
            "MOLDAU_PYTHON": sys.executable,
            "MOLDAU_CONTAINER_ROOT": str(root),
        }

    def run(self, command: list[str], **variables: str) -> None:
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                command,
                env={**self.environment, **variables},
                cwd=self.root / "home",
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def finish(self, command: list[str], **variables: str) -> tuple[int, str]:
        self.run(command, **variables)
        assert self.process is not None
        return self.process.wait(SECONDS_MAX), self.text()

    def call(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A script of the image beside the process that runs."""
        command = [str(self.root / "usr/bin" / name), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True)

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for(self, line: str) -> str:
        deadline = time.monotonic() + SECONDS_MAX
        while line not in self.text():
            assert self.process is not None
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.text()}"
            assert time.monotonic() < deadline, f"no {line!r} in:\n{self.text()}"
            time.sleep(0.05)
        return self.text()

    def stop(self) -> int:
        """As the container's engine does: SIGTERM to the first process, which the broker has become."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS_MAX)

    def end(self) -> None:
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait(SECONDS_MAX)

    def script(self, text: str) -> str:
        """A starter as testcontainers copy it in, with this root in front of the paths."""
        path = self.root / "starter.sh"
        for folder in ("/etc/confluent/", "/etc/kafka/"):
            text = text.replace(folder, f"{self.root}{folder}")
        path.write_text(text)
        path.chmod(0o777)
        return str(path)

    def listeners(self) -> dict[str, str]:
        """Two for clients, as testcontainers have them, and the controller's."""
        return {
            "KAFKA_LISTENERS": f"PLAINTEXT://{HOST}:{self.broker_port},BROKER://{HOST}:{self.inner_port}",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
            "KAFKA_BROKER_ID": "1",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
            "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "10000000",
            "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        }

    def quorum(self) -> dict[str, str]:
        listeners = self.listeners()
        return {
            **listeners,
            "CLUSTER_ID": random_cluster_id(),
            "KAFKA_NODE_ID": "1",
            "KAFKA_PROCESS_ROLES": "broker,controller",
            "KAFKA_LISTENERS": f"{listeners['KAFKA_LISTENERS']},CONTROLLER://{HOST}:{self.controller_port}",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": f"1@{HOST}:{self.controller_port}",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        }

    def advertised(self) -> str:
        return f"PLAINTEXT://{HOST}:{self.broker_port},BROKER://{HOST}:{self.inner_port}"

    def check_record_goes_through(self) -> None:
        address = f"{HOST}:{self.broker_port}"
        failures: list[object] = []
        producer = confluent_kafka.Producer({"bootstrap.servers": address})
        producer.produce("things", b"hello", callback=lambda error, _: failures.append(error))
        assert producer.flush(SECONDS_MAX) == 0 and failures == [None]
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": address, "group.id": "readers", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["things"])
        deadline = time.monotonic() + SECONDS_MAX
        record = None
        while record is None and time.monotonic() < deadline:
            record = consumer.poll(1.0)
        consumer.close()
        assert record is not None and record.value() == b"hello"


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    made = Container(tmp_path / "image")
    yield made
    made.end()


def test_java_runs_the_script_of_apache_kafka(container: Container) -> None:
    """testcontainers-java: KafkaContainer exports the advertised listeners and runs /etc/kafka/docker/run."""
    script = container.script(
        f"#!/bin/bash\nexport KAFKA_ADVERTISED_LISTENERS={container.advertised()}\n/etc/kafka/docker/run \n"
    )
    container.run([script], **container.quorum())
    container.wait_for("Transitioning from RECOVERY to RUNNING")
    container.check_record_goes_through()
    address = f"PLAINTEXT://{HOST}:{container.broker_port}"
    ready = container.call("cub", "kafka-ready", "-b", address, "1", str(round(SECONDS_MAX)))
    assert (ready.returncode, ready.stderr) == (0, "")
    missing = container.call("ub", "kafka-ready", "2", "0.1", "-b", address)
    assert (missing.returncode, missing.stderr) == (1, "Not ready after 0.1 s: 1 of 2 brokers are there\n")
    health = container.call("healthcheck")
    assert (health.returncode, health.stdout) == (0, f"PLAINTEXT on {HOST}:{container.broker_port} responds.\n")


def test_go_appends_to_configure_and_empties_ensure(container: Container) -> None:
    """testcontainers-go formats in `configure`, with an id of its own, and skips `ensure`."""
    script = container.script(
        f"""#!/bin/bash
source /etc/confluent/docker/bash-config
export KAFKA_ADVERTISED_LISTENERS="{container.advertised()}"
echo Starting Kafka KRaft mode
sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
echo '{FORMAT} -t "$(kafka-storage random-uuid)" -c /etc/kafka/kafka.properties' >> /etc/confluent/docker/configure
echo '' > /etc/confluent/docker/ensure
/etc/confluent/docker/configure
/etc/confluent/docker/launch"""
    )
    container.run(["bash", script], **container.quorum())
    container.wait_for("Transitioning from RECOVERY to RUNNING")
    container.check_record_goes_through()


@pytest.mark.parametrize("with_kraft", [True, False])
def test_python_sources_the_settings_of_bash_in_sh(container: Container, with_kraft: bool) -> None:
    """testcontainers-python: with KRaft, and with the ZooKeeper that it starts unless told otherwise."""
    if with_kraft:
        variables, line = container.quorum(), "Kafka Server started"
        boot = (
            "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure\n"
            f"echo '{FORMAT} -t {variables['CLUSTER_ID']} -c /etc/kafka/kafka.properties'"
            " >> /etc/confluent/docker/configure"
        )
    else:
        variables, line = container.listeners(), "[KafkaServer id=1] started"
        boot = (
            "echo 'clientPort=2181' > zookeeper.properties\n"
            "zookeeper-server-start zookeeper.properties &\n"
            "export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'"
        )
    script = container.script(
        f"""#!/bin/bash
{boot}
export KAFKA_ADVERTISED_LISTENERS={container.advertised()}
. /etc/confluent/docker/bash-config
/etc/confluent/docker/configure
/etc/confluent/docker/launch"""
    )
    if not with_kraft:  # its controller's port is always the same in a container of its own
        variables["KAFKA_CONTROLLER_LISTENER_NAMES"] = "CONTROLLER"
        variables["KAFKA_LISTENERS"] += f",CONTROLLER://{HOST}:{container.controller_port}"
    container.run(["sh", script], **variables)
    container.wait_for(line)
    container.check_record_goes_through()


def test_a_stopped_container_starts_again_with_its_data(container: Container) -> None:
    """With the image's own entry: SIGTERM reaches the broker, and the second start finds everything formatted."""
    variables = {**container.quorum(), "KAFKA_ADVERTISED_LISTENERS": container.advertised()}
    run = str(container.root / "etc/confluent/docker/run")
    container.run([run], **variables)
    container.wait_for("Kafka Server started")
    container.check_record_goes_through()
    assert container.stop() == 0
    container.run([run], **variables)
    assert "Formatting" not in container.wait_for("Kafka Server started")
    consumer = confluent_kafka.Consumer({"bootstrap.servers": f"{HOST}:{container.broker_port}", "group.id": "x"})
    low, high = consumer.get_watermark_offsets(confluent_kafka.TopicPartition("things", 0), timeout=SECONDS_MAX)
    consumer.close()
    assert (low, high) == (0, 1)
    assert container.stop() == 0
    code, text = container.finish([run], **{**variables, "CLUSTER_ID": random_cluster_id()})
    assert code == 1 and "Invalid cluster.id" in text


def test_a_file_that_was_changed_after_configure_counts(container: Container) -> None:
    """Some starters edit the properties before they launch; the environment must not win over that."""
    environment = {
        **container.quorum(),
        "KAFKA_ADVERTISED_LISTENERS": container.advertised(),
        "KAFKA_NUM_PARTITIONS": "2",
    }
    script = container.script(
        "#!/bin/bash\n. /etc/kafka/docker/bash-config\n"
        ". /etc/kafka/docker/configureDefaults\n. /etc/kafka/docker/configure\n"
        f"sed -i 's/^num.partitions=2$/num.partitions=5/' {container.root}/opt/kafka/config/server.properties\n"
        ". /etc/kafka/docker/launch\n"
    )
    container.run([script], **environment)
    container.wait_for("Kafka Server started")
    producer = confluent_kafka.Producer({"bootstrap.servers": f"{HOST}:{container.broker_port}"})
    producer.produce("things", b"hello")
    assert producer.flush(SECONDS_MAX) == 0
    assert len(producer.list_topics("things", timeout=SECONDS_MAX).topics["things"].partitions) == 5


def test_a_cluster_needs_an_id_in_confluents_layout_and_has_one_in_apaches(container: Container) -> None:
    variables = {**container.quorum(), "KAFKA_ADVERTISED_LISTENERS": container.advertised()}
    del variables["CLUSTER_ID"]
    code, text = container.finish([str(container.root / "etc/confluent/docker/run")], **variables)
    assert code == 1 and "CLUSTER_ID environment variable not set" in text
    container.run([str(container.root / "etc/kafka/docker/run"), "KAFKA_NUM_PARTITIONS=4"], **variables)
    text = container.wait_for("Kafka Server started")
    assert "for cluster 5L6g3nShT-eMCtK--X86sw" in text
    assert "num.partitions=4\n" in (container.root / "opt/kafka/config/server.properties").read_text()


def test_kafka_server_start_and_stop(container: Container) -> None:
    variables = {**container.quorum(), "KAFKA_ADVERTISED_LISTENERS": container.advertised()}
    scripts = container.root / "etc/confluent/docker"
    code, text = container.finish(["bash", "-c", f"{scripts}/configure && {scripts}/ensure"], **variables)
    assert code == 0, text
    code, text = container.finish(["kafka-server-start", "-daemon", "x"])
    assert code == 1 and "no -daemon here" in text
    properties = str(container.root / "etc/kafka/kafka.properties")
    container.run(["kafka-server-start", properties, "--override", "num.partitions=3"], KAFKA_NUM_PARTITIONS="9")
    container.wait_for("Kafka Server started")
    assert container.call("kafka-server-stop").returncode == 0
    assert container.process is not None and container.process.wait(SECONDS_MAX) == 0
    nobody = container.call("kafka-server-stop")
    assert (nobody.returncode, nobody.stderr) == (1, "No kafka server to stop\n")
