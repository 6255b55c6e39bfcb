"""A real Apache Kafka 4.3.1 and its real tools, run from the jars that tools/fetch_kafka.sh puts into the cache."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.interop.class_archive import ClassArchive
from tests.interop.nodes import Node
from tests.pace import patience

VERSION = "4.3.1"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"apache-kafka-{VERSION}"
LIBS = CACHE / "libs"
# The quick start matters here, not the peak: these processes live for seconds.
QUICK_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true"]

TOOL_CLASSES = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "compaction-tester": "org.apache.kafka.tools.LogCompactionTester",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "storage": "kafka.tools.StorageTool",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


@functools.cache
def missing() -> str | None:
    """Why Apache Kafka cannot be run here, or None when it can."""
    java = shutil.which("java")
    if java is None:
        return "Java is missing: install a Java 17 (or newer) runtime and put it on PATH"
    banner = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', banner)
    if version is None or int(version[1]) < 17:
        return f"Java 17 or newer is needed, not {banner.splitlines()[0] if banner else 'an unknown one'}"
    if not (LIBS / f"kafka_2.13-{VERSION}.jar").exists():
        return f"Apache Kafka {VERSION} is not in {LIBS}: run tools/fetch_kafka.sh"
    return None


@functools.cache
def logging_file() -> Path:
    """A log4j2 setting beside the jars: warnings to the error output, as the tools of the distribution do."""
    path = CACHE / "moldau-interop-log4j2.properties"
    lines = [
        "status = error",
        "appender.err.type = Console",
        "appender.err.name = err",
        "appender.err.target = SYSTEM_ERR",
        "appender.err.layout.type = PatternLayout",
        "appender.err.layout.pattern = [%d] %p %m (%c)%n",
        "rootLogger.level = ${sys:interop.level:-WARN}",
        "rootLogger.appenderRef.err.ref = err",
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def java_command(class_name: str, *arguments: str, heap: str = "256M", level: str = "WARN") -> list[str]:
    logging = [f"-Dlog4j2.configurationFile={logging_file()}", f"-Dinterop.level={level}"]
    options = [f"-Xmx{heap}", *QUICK_JVM, *class_archive().options(), *logging]
    return ["java", *options, "-cp", f"{LIBS}/*", class_name, *arguments]


@functools.cache
def class_archive() -> ClassArchive:
    return ClassArchive(CACHE, LIBS, [*QUICK_JVM, f"-Dlog4j2.configurationFile={logging_file()}"])


def run_tool(
    name: str, *arguments: str, text: str = "", seconds: int = 60, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a tool by its name in the distribution, without `kafka-`; `text` is its standard input."""
    return subprocess.run(
        java_command(TOOL_CLASSES[name], *arguments),
        input=text,
        capture_output=True,
        text=True,
        timeout=patience(seconds),
        cwd=folder,
    )


class KafkaNode(Node):
    """Apache Kafka itself, with the same server.properties that Moldau gets."""

    name = "kafka"

    def format_command(self) -> list[str]:
        return java_command(TOOL_CLASSES["storage"], "format", "-t", self.cluster_id, "-c", str(self.properties))

    def server_command(self) -> list[str]:
        return java_command("kafka.Kafka", str(self.properties), heap="512M", level="INFO")

    def ready(self) -> bool:
        return "Kafka Server started" in self.output() and super().ready()
