"""What `moldau storage info` shows of the log directories of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moldau.cli.output import Styled, plural, print_fields, print_title
from moldau.protocol.uuids import uuid_to_text

if TYPE_CHECKING:
    from moldau.server.storage_report import DirectoryReport, StorageReport


def report_json(report: StorageReport) -> dict[str, object]:
    return {
        "node_id": report.node_id,
        "metadata_directory": report.metadata_directory,
        "features": report.features,
        "metadata_offset": report.metadata_offset,
        "can_be_opened": all(each.can_be_opened for each in report.directories),
        "directories": [_directory_json(each) for each in report.directories],
    }


def _directory_json(directory: DirectoryReport) -> dict[str, object]:
    own = directory.properties
    directory_id = None if own is None or own.directory_id is None else uuid_to_text(own.directory_id)
    return {
        "path": directory.path,
        "formatted": own is not None,
        "cluster_id": None if own is None else own.cluster_id,
        "node_id": None if own is None else own.node_id,
        "directory_id": directory_id,
        "partitions": directory.partitions,
        "has_metadata": directory.has_metadata,
        "written_by": directory.written_by,
        "moldau_version": directory.moldau_version,
        "clean_stop": directory.clean_stop,
        "in_use": directory.in_use,
        "can_be_opened": directory.can_be_opened,
        "problems": directory.problems,
    }


def print_report(report: StorageReport) -> None:
    from moldau.server.storage_format import level_text

    for directory in report.directories:
        print_title(directory.path)
        fields: list[tuple[str, object]] = []
        own = directory.properties
        if own is not None:
            fields += [("cluster", own.cluster_id), ("node", own.node_id)]
            fields += [("directory id", uuid_to_text(own.directory_id))] if own.directory_id is not None else []
            fields += [("written by", writer_text(directory)), ("last stop", _stop_text(directory))]
            fields += [("holds", _content_text(directory))]
        if directory.has_metadata:
            levels = [level_text(name, level) for name, level in sorted(report.features.items())]
            fields += [("features" if not number else "", text) for number, text in enumerate(levels)]
        if directory.in_use:
            fields.append(("can be opened", Styled("not now: a running node has it", fg="yellow")))
        elif not directory.problems:
            fields.append(("can be opened", Styled("yes", fg="green")))
        for number, problem in enumerate(directory.problems):
            fields.append(("can be opened" if not number else "", Styled(f"no: {problem}", fg="red", bold=True)))
        print_fields(fields)
    if not report.directories:
        click.echo("The configuration names no log directory.", err=True)


def writer_text(directory: DirectoryReport) -> str:
    from moldau.server.storage_report import KAFKA

    moldau = f"Moldau {directory.moldau_version}"
    if not directory.was_opened:
        formatter = moldau if directory.moldau_version is not None else KAFKA
        return f"{formatter}, which formatted it; no node has opened it yet"
    if directory.written_by == KAFKA:
        return KAFKA if directory.moldau_version is None else f"{KAFKA}, after {moldau}"
    return moldau


def _stop_text(directory: DirectoryReport) -> str:
    if directory.in_use:
        return "it is running"
    if not directory.was_opened:
        return "never started"
    return "clean" if directory.clean_stop else "not clean: the next start checks the logs"


def _content_text(directory: DirectoryReport) -> str:
    partitions = plural(directory.partitions, "partition")
    return f"{partitions}, and the metadata log" if directory.has_metadata else partitions
