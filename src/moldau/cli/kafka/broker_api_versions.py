"""`kafka-broker-api-versions`: the apis of each broker and the versions that can be used with it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import ask, java_text, read_config
from moldau.cli.kafka.options import VALUE, JavaFailure, Option, OptionParser, check_help_or_version, check_required

if TYPE_CHECKING:
    from moldau.client.connection.cluster import Broker

TIMEOUT_MS = 60_000

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server(s) to use"),
        Option("command-config", "A file with settings for the client.", VALUE, described_as="config file"),
    ]
)


def main(arguments: list[str]) -> int:
    try:
        options = PARSER.parse(arguments)
        check_help_or_version(options, "Show the apis of brokers and their versions.")
        check_required(options, "bootstrap-server")
        where, config = options.text("bootstrap-server") or "", options.text("command-config")
        for broker, versions in ask("listNodes", lambda: _find_versions(where, config)):
            print("\n".join(broker_lines(broker, versions)))
    except JavaFailure as failure:
        sys.stdout.flush()
        sys.stderr.write(f"{failure.message}\n{java_text(failure)}\n\n")
        return 1
    return 0


def _find_versions(where: str, config_file: str | None) -> list[tuple[Broker, dict[int, tuple[int, int]]]]:
    from moldau import __version__
    from moldau.client.config import ADMIN, ClientConfig
    from moldau.client.connection.cluster import Cluster
    from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
    from moldau.protocol.messages.api_versions_response import ApiVersionsResponse

    given = {} if config_file is None else read_config(config_file)
    known = {name: value for name, value in given.items() if name in ADMIN}
    cluster = Cluster(ClientConfig(ADMIN, {**known, "bootstrap.servers": where}))
    try:
        cluster.refresh([], TIMEOUT_MS)
        found = []
        # The real tool shows brokers as their responses come in.
        for broker in sorted(cluster.brokers.values()):
            request = ApiVersionsRequest(client_software_name="moldau", client_software_version=__version__)
            response = cluster.call(request, ApiVersionsResponse, TIMEOUT_MS, broker.id)
            found.append((broker, {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}))
        return found
    finally:
        cluster.close()


def broker_lines(broker: Broker, versions: dict[int, tuple[int, int]]) -> list[str]:
    """The apis of one broker by number; apis that it does not have are shown as unsupported."""
    from moldau.protocol.api_keys import APIS, BY_KEY

    rack = "null" if broker.rack is None else broker.rack
    rows = []
    for key in sorted({*versions, *(api.key for api in APIS if api.on_broker)}):
        api = BY_KEY.get(key)
        name = "UNKNOWN" if api is None else api.name
        if key not in versions:
            rows.append(f"\t{name}({key}): UNSUPPORTED")
            continue
        low, high = versions[key]
        shown = f"\t{name}({key}): {low if low == high else f'{low} to {high}'}"
        if api is not None:
            usable = min(high, api.highest_stable_version)
            if usable >= max(low, api.lowest_version):
                shown += f" [usable: {usable}]"
            else:
                shown += f" [unusable: node too {'old' if high < api.lowest_version else 'new'}]"
        rows.append(shown)
    head = f"{broker.host}:{broker.port} (id: {broker.id} rack: {rack} isFenced: false) -> ("
    return [head, *(row + "," for row in rows[:-1]), *rows[-1:], ")"]
