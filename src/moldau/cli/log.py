"""`moldau log`: looks into the files of a data directory, without a server and without changing anything."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from moldau.cli.output import plural, print_error, print_json, print_note

if TYPE_CHECKING:
    from moldau.storage.inspect.partition import Finding

FORMATS = click.Choice(["text", "json"])


@click.command("dump")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-r", "--records", is_flag=True, help="Show the records of each batch too.")
@click.option("--format", "output", type=FORMATS, default="text", show_default=True, help="json: one line per entry.")
def dump(files: tuple[str, ...], records: bool, output: str) -> None:
    """Print logs, indexes, producer snapshots, transaction indexes and metadata snapshots.

    Records of the cluster's own topics are decoded by the directory they are in. `moldau kafka-dump-log` prints the
    same files as Kafka's tool does.

    \b
    Examples:
      moldau log dump data/orders-0/*.log --records
      moldau log dump data/__cluster_metadata-0/00000000000000000000.log --records --format json
    """
    from moldau.cli.kafka.files import ReadOnlyDisk
    from moldau.storage.inspect.file import NotReadable, describe_file
    from moldau.storage.inspect.json_text import json_text

    disk = ReadOnlyDisk()
    failed = False
    for path in files:
        if output == "text" and len(files) > 1:
            click.secho(path, bold=True)
        try:
            for entry in describe_file(disk, path, records):
                if output == "json":
                    line = json_text({"file": path, **entry} if len(files) > 1 else entry)
                else:
                    line = text_line(entry)
                sys.stdout.write(line + "\n")
        except BrokenPipeError:
            raise  # that is the output, not a file
        except (NotReadable, OSError) as error:
            sys.stdout.flush()
            said = f"{error.strerror}" if isinstance(error, OSError) else str(error)
            print_error(f"{said}." if said.startswith(path) else f"{path}: {said}.")
            failed = True
    if failed:
        raise click.exceptions.Exit(1)


def time_text(timestamp: object) -> str:
    if not isinstance(timestamp, int) or timestamp < 0:
        return "no time"
    try:
        moment = datetime.fromtimestamp(timestamp / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{timestamp} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{timestamp % 1000:03d}"


def text_line(entry: dict[str, object]) -> str:
    kind = entry["kind"]
    if kind == "batch":
        return _batch_text(entry)
    if kind == "record":
        if "control" in entry:
            shown = str(entry["control"])
        else:
            shown = f"{_shown(entry['key'])} = {_shown(entry['value'])}"
        headers = entry.get("headers")
        if isinstance(headers, list):
            shown += "  [" + ", ".join(f"{name}={_shown(value)}" for name, value in headers) + "]"
        return f"  {entry['offset']}  {time_text(entry['timestamp'])}  {shown}"
    if kind == "index":
        return f"offset {entry['offset']}  position {entry['position']}"
    if kind == "time":
        return f"{time_text(entry['timestamp'])}  offset {entry['offset']}"
    named = "  ".join(f"{name.replace('_', ' ')} {value}" for name, value in entry.items() if name != "kind")
    return f"{kind}  {named}"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        from moldau.storage.inspect.json_text import json_text

        return json_text(value)
    return "null" if value is None else str(value)


def _batch_text(entry: dict[str, object]) -> str:
    parts = [
        f"{entry['base_offset']}..{entry['last_offset']}",
        f"{entry['records']} records",
        f"{entry['size']} bytes at {entry['position']}",
        str(entry["codec"]),
        time_text(entry["max_timestamp"]),
        f"epoch {entry['leader_epoch']}",
    ]
    if "producer_id" in entry:
        parts.append(f"producer {entry['producer_id']}/{entry['producer_epoch']} from {entry['base_sequence']}")
    parts += [name for name in ("transactional", "control") if entry.get(name)]
    if not entry["valid"]:
        parts.append(click.style("WRONG CHECKSUM", fg="red", bold=True))
    return "  ".join(parts)


@click.command("verify")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.option("--quick", is_flag=True, help="Checksums, offsets and indexes alone; do not read the records.")
@click.option("--format", "output", type=FORMATS, default="text", show_default=True)
def verify(directory: str, quick: bool, output: str) -> None:
    """Check every file of a data directory, or of one partition in it, and how they fit together.

    That is checksums, offsets, records; indexes, epochs, transactions and producers against the log; checkpoints; the
    metadata log against its snapshots, and the partitions against what the metadata says of them.

    Ends with 1 when there is an error. The server should be stopped: what it has not written yet looks like damage.
    Files that a running server writes later, such as indexes of the segments it appends to, are not reported.
    """
    from moldau.cli.log_progress import watched_disk
    from moldau.server.metadata_check import check_metadata
    from moldau.server.storage_report import is_locked
    from moldau.storage.inspect.directory import check_directory
    from moldau.storage.inspect.partition import ERROR

    directory = directory.rstrip("/") or "/"
    with watched_disk("checking", directory) as disk:
        findings, partitions = check_directory(disk, directory, with_records=not quick)
        check_metadata(disk, directory, partitions, findings)
    # A partition's directory lies in the one that the server has locked.
    running = is_locked(directory) or is_locked(f"{directory}/..")
    late = [finding for finding in findings.found if running and _is_written_later(finding)]
    findings.found = [finding for finding in findings.found if finding not in late]
    if running:
        left_out = f" {plural(len(late), 'file')} that it writes later left out." if late else ""
        print_note(f"A server has this directory open: run this again when it is stopped, to be sure.{left_out}")
    errors = sum(finding.severity == ERROR for finding in findings.found)
    if output == "json":
        print_json(
            {
                "ok": errors == 0,
                "files": findings.files,
                "batches": findings.batches,
                "records": findings.records,
                "bytes": findings.bytes,
                "findings": [vars(finding) for finding in findings.found],
            }
        )
    else:
        for finding in findings.found:
            colour = "red" if finding.severity == ERROR else "yellow"
            click.secho(f"{finding.severity}: ", fg=colour, bold=True, nl=False)
            click.echo(f"{finding.path}: {finding.message}")
        records = "" if quick else f", {findings.records:,} records"
        warnings = len(findings.found) - errors
        click.echo(
            f"{findings.files:,} files, {findings.bytes:,} bytes, {findings.batches:,} batches{records}:"
            f" {plural(errors, 'error')}, {plural(warnings, 'warning')}."
        )
    if errors:
        raise click.exceptions.Exit(1)


def _is_written_later(finding: Finding) -> bool:
    """Whether it is about a file of the segment that a server appends to, and which it writes when that is closed."""
    if not finding.message.startswith("missing; a start"):
        return False
    directory, name = os.path.split(finding.path)
    newest = max((other for other in os.listdir(directory) if other.endswith(".log")), default="")
    return not name[0].isdigit() or name[:20] >= newest[:20]
