"""The process as the system sees it, under the names that Prometheus' own client libraries use; and what was built."""

from __future__ import annotations

import os
import platform
import resource
from functools import cache
from pathlib import Path

from moldau import __version__
from moldau.build_info import is_compiled
from moldau.server.metrics.metric import COUNTER, GAUGE, Metric

OWN = Path("/proc/self")
SYSTEM = Path("/proc/stat")
DISK_BYTES = (
    ("read_bytes", "linux_disk_read_bytes", "Bytes that this process had read from disks"),
    ("write_bytes", "linux_disk_write_bytes", "Bytes that this process had written to disks"),
)


def process_metrics() -> list[Metric]:
    """Less of it where there is no `/proc`."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = round(usage.ru_utime + usage.ru_stime, 3)
    metrics = [Metric("process_cpu_seconds_total", COUNTER, "CPU time of this process", cpu_s)]
    if OWN.is_dir():
        pages = int((OWN / "statm").read_text().split()[1])
        resident = pages * os.sysconf("SC_PAGE_SIZE")
        metrics += [
            Metric("process_resident_memory_bytes", GAUGE, "Resident memory", resident),
            Metric("process_open_fds", GAUGE, "Open file descriptors", len(os.listdir(OWN / "fd"))),
            Metric("process_start_time_seconds", GAUGE, "When this process started, since 1970", started_s()),
            *disk_metrics(),
        ]
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    metrics.append(Metric("process_max_fds", GAUGE, "How many file descriptors it may open", soft))
    return [*metrics, build_metric()]


def started_s() -> float:
    """Ticks since the machine started, and when that was."""
    after_name = (OWN / "stat").read_text().rpartition(")")[2].split()
    ticks = int(after_name[19])
    for line in SYSTEM.read_text().splitlines():
        if line.startswith("btime "):
            return round(int(line.split()[1]) + ticks / os.sysconf("SC_CLK_TCK"), 2)
    return 0.0


def disk_metrics() -> list[Metric]:
    try:
        lines = (OWN / "io").read_text().splitlines()
    except OSError:
        return []  # a container may keep it from us
    found = dict(line.split(": ", 1) for line in lines if ": " in line)
    prefix = "kafka_server_kafkaserver"
    return [
        Metric(f"{prefix}_{name}", COUNTER, about, int(found[key])) for key, name, about in DISK_BYTES if key in found
    ]


@cache
def build_metric() -> Metric:
    built = Metric("moldau_build_info", GAUGE, "1 with the version of Moldau and of Python, and whether it is compiled")
    built.values[
        ("version", __version__),
        ("compiled", str(is_compiled()).lower()),
        ("python", platform.python_version()),
    ] = 1
    return built
