"""`cub kafka-ready` and `ub kafka-ready`: wait until so many brokers are there, as scripts around cp-kafka do."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from moldau.client import Admin
from moldau.client.errors import ClientError, ConfigError
from moldau.server.config_file import read_properties

PAUSE_S = 0.5


def wait_for_brokers(arguments: Sequence[str]) -> int:
    """0 when the cluster has that many brokers, 1 when the time is over."""
    parser = argparse.ArgumentParser(prog="kafka-ready", description="Wait until a cluster has so many brokers.")
    parser.add_argument("brokers", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("-b", "--bootstrap-servers", "--bootstrap_broker_list", dest="servers")
    parser.add_argument("-c", "--config", help="client settings")
    parser.add_argument("-s", "--security-protocol", "--security_protocol", help="other than PLAINTEXT needs --config")
    options = parser.parse_args(list(arguments))
    settings = read_properties(options.config) if options.config else {}
    if options.servers:
        settings["bootstrap.servers"] = _addresses(options.servers)
    if "bootstrap.servers" not in settings:
        parser.error("-b names no address")
    deadline = time.monotonic() + options.seconds
    found, problem = 0, ""
    while True:
        try:
            found = _count_brokers(settings, max(1.0, deadline - time.monotonic()))
            problem = f"{found} of {options.brokers} brokers are there"
        except ConfigError as error:
            print(str(error), file=sys.stderr)
            return 1
        except (ClientError, OSError) as error:
            problem = str(error)
        if found >= options.brokers:
            return 0
        if time.monotonic() >= deadline:
            print(f"Not ready after {options.seconds:g} s: {problem}", file=sys.stderr)
            return 1
        time.sleep(PAUSE_S)


def _addresses(servers: str) -> str:
    """Without the name of a listener in front, which the originals let stand there."""
    return ",".join(server.strip().rpartition("//")[2] for server in servers.split(","))


def _count_brokers(settings: dict[str, str], seconds: float) -> int:
    with Admin({**settings, "default.api.timeout.ms": str(int(min(seconds, 10.0) * 1000))}) as admin:
        return len(admin.describe_cluster().brokers)
