"""Writes docs/MAP.md from the module docstrings, docs/COMPATIBILITY.md from the API registry and the config tables, and
docs/client-metric-names.md from the catalogue of the client's metrics.

`--check` fails when one of them is stale.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "moldau"
sys.path.insert(0, str(ROOT / "src"))

DIRECTORIES = {
    "protocol": "what travels: primitives, headers, message classes, API keys, errors",
    "config": "every broker, topic and group setting: type, default, validation, where it may change",
    "records": "record batch v2: header, record walk, builder, codecs",
    "storage": "one partition on disk: segments, indexes, recovery, retention, checkpoints",
    "quota": "rates, token buckets, and what clients may use of a broker",
    "metrics": "what is counted on the way of requests and records, for whoever serves it",
    "security": "who clients are and what they may do, without sockets and files",
    "raft": "the metadata quorum as a pure state machine (KRaft)",
    "metadata": "the cluster as every node sees it: image and delta",
    "controller": "decides: topics, placement, leaders, brokers, configs",
    "replication": "one partition's replicas: leader state, high watermark",
    "coordinator": "event-sourced coordinators: groups, transactions",
    "telemetry": "metrics that clients push (KIP-714), without sockets and clocks",
    "node": "joins the above into a broker and a controller",
    "api": "what each request means, one file per family",
    "net": "listener, connection, frames",
    "server": "the process: config files, POSIX disk, clock, main",
    "client": "Moldau's own client",
    "spark": "Spark's data source `moldau`: batch and streaming reads, the sink",
    "lake": "topics to lake tables and back: loads, commits, maintenance, changelogs, replay, pipelines",
    "facts": "what people want to know about a cluster, for command line and console alike",
    "actions": "what people and agents look at and change, for console and `moldau mcp` alike",
    "console": "the web console",
    "mcp": "the same actions as tools for agents, over the Model Context Protocol",
    "cli": "the `moldau` command",
    "testing": "brokers for other people's tests: pytest plugin, clusters, faults",
    "sim": "the simulated world: clock, network, disk, faults, checkers",
}
# What is not in a package: who looks for it, by the directory below the project's root.
BESIDE = {
    "src": "beside the packages: `python -m moldau`, and the name by which Spark finds its data source",
    "bench": "measurements; each says at its head what it measures and how it is run",
    "tools": "what `make` runs",
    "examples": "programs to begin with",
}


def first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return docstring.split("\n")[0]


def name_in_map(path: Path) -> str:
    """A directory inside a package stands for its __init__.py, in front of its modules."""
    return f"{path.parent}/" if path.name == "__init__.py" else str(path)


def file_map() -> str:
    lines = [
        "# File map",
        "",
        "Written by `make docs` from the first line of each module and directory. Imports go downward only; everything",
        "above `net` is below the line: synchronous, deterministic, no clock, no socket, no file of its own.",
        "",
    ]
    for directory, subject in DIRECTORIES.items():
        if directory == "net":
            lines += ["---", ""]
        lines += [f"## `{directory}/` — {subject}", ""]
        modules = sorted(p for p in (SOURCE / directory).rglob("*.py") if p != SOURCE / directory / "__init__.py")
        generated = [p for p in modules if p.name != "__init__.py" and "enerated" in first_line(p)]
        for path in modules:
            if path not in generated:
                lines.append(f"- `{name_in_map(path.relative_to(SOURCE / directory))}`: {first_line(path)}")
        if generated:
            lines.append(f"- {len(generated)} generated modules, one per message or group of stored records.")
        lines.append("")
    lines += ["---", ""]
    for directory, subject in BESIDE.items():
        lines += [f"## `{directory}/` — {subject}", ""]
        for path in modules_beside(ROOT / directory):
            lines.append(f"- `{path.relative_to(ROOT / directory)}`: {first_line(path)}")
        lines.append("")
    return "\n".join(lines)


def modules_beside(directory: Path) -> list[Path]:
    """Modules that say what they are and are in none of the packages above."""
    found = sorted(path for path in directory.rglob("*.py") if SOURCE not in path.parents or path.parent == SOURCE)
    return [path for path in found if first_line(path)]


def api_table() -> list[str]:
    from moldau.api.registry import BROKER_HANDLERS, CONTROLLER_HANDLERS
    from moldau.protocol.api_keys import APIS

    lines = ["| key | API | versions | broker listener | controller listener |", "|---|---|---|---|---|"]
    served = {"broker": 0, "controller": 0}
    for api in APIS:
        cells = []
        for name, exists, handlers in (
            ("broker", api.on_broker, BROKER_HANDLERS),
            ("controller", api.on_controller, CONTROLLER_HANDLERS),
        ):
            if not exists:
                cells.append("–")
            elif api.key in handlers:
                served[name] += 1
                cells.append("yes" if api.advertised_by_default else "where it is switched on")
            else:
                cells.append("not yet")
        lines.append(
            f"| {api.key} | {api.name} | {api.lowest_version}–{api.highest_stable_version} | {' | '.join(cells)} |"
        )
    head = [
        f"{served['broker']} APIs on broker listeners, {served['controller']} on controller listeners. An API that is",
        "not served yet is not offered in ApiVersions, so clients know before they ask.",
        "",
    ]
    return head + lines


def config_lists() -> list[str]:
    from moldau.config.broker_keys import BROKER_KEYS
    from moldau.config.honoured import HONOURED_TOPIC_KEYS, honoured_broker_keys
    from moldau.config.topic_keys import TOPIC_KEYS

    lines: list[str] = []
    for title, keys, honoured in (
        ("Topic settings", TOPIC_KEYS.names(), HONOURED_TOPIC_KEYS),
        ("Broker settings", BROKER_KEYS.names(), honoured_broker_keys()),
    ):
        waiting = [name for name in keys if name not in honoured]
        lines += [
            f"### {title}",
            "",
            f"All {len(keys)} keys are accepted, validated and described.",
            f"{len(keys) - len(waiting)} are honoured; without effect yet:",
            "",
            ", ".join(f"`{name}`" for name in sorted(waiting)) + ".",
            "",
        ]
    return lines


def compatibility() -> str:
    differences = (ROOT / "docs" / "differences.md").read_text().rstrip()
    lines = [
        "# Compatibility with Apache Kafka 4.3",
        "",
        "Written by `make docs` from the API registry, the config tables and `docs/differences.md`.",
        "",
        "## Differences one can notice",
        "",
        differences,
        "",
        "## APIs",
        "",
        *api_table(),
        "",
        "## Settings",
        "",
        *config_lists(),
    ]
    return "\n".join(lines).rstrip() + "\n"


def metric_names() -> str:
    from moldau.client.metrics.catalogue import KINDS, known_metrics

    lines = [
        "# Names of the client's metrics",
        "",
        "Written by `make docs` from `client/metrics/catalogue.py`. Every metric has the tag `client-id` too.",
        "*Lately* is in the last 30 to 60 seconds, see [client-metrics.md](client-metrics.md).",
        "",
    ]
    for kind in KINDS:
        lines += [f"## {kind.capitalize()}", ""]
        before: tuple[str, tuple[str, ...]] | None = None
        for row in known_metrics(kind):
            if (row.group, row.tags) != before:
                before = (row.group, row.tags)
                tags = f" by {', '.join(f'`{tag}`' for tag in row.tags)}" if row.tags else ""
                lines += ["", f"### `{row.group}`{tags}", "", "| name | |", "|---|---|"]
            lines.append(f"| `{row.name}` | {row.about} |")
        lines.append("")
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    pages = {
        "MAP.md": file_map().rstrip() + "\n",
        "COMPATIBILITY.md": compatibility(),
        "client-metric-names.md": metric_names(),
    }
    for name, text in pages.items():
        path = ROOT / "docs" / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not check:
                path.write_text(text)
    if check and stale:
        print(f"stale: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
