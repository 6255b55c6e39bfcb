"""The part of `kafka-dump-log` that prints offset and time indexes and compares them with their log."""

from __future__ import annotations

import os
from typing import TextIO

from moldau.cli.kafka.java_order import hash_map_order
from moldau.cli.kafka.options import JavaFailure
from moldau.records.batch import NO_TIMESTAMP
from moldau.records.walk import max_timestamp_record
from moldau.storage.disk import Disk, File
from moldau.storage.inspect.batches import Batch, BatchReader
from moldau.storage.inspect.index import OffsetEntries, TimeEntries, base_offset_of

Pairs = dict[str, list[tuple[int, int]]]


def absolute(path: str) -> str:
    """As Java makes a path absolute: `..` and `.` stay in it."""
    return os.path.join(os.getcwd(), path)


def _print_pairs(err: TextIO, title: str, found: Pairs, line: str) -> None:
    for path in hash_map_order(found):
        err.write(f"{title} :{path}\n")
        for first, second in found[path]:
            err.write(line.format(first, second) + "\n")


class IndexMismatches:
    """Entries of offset indexes that point to a batch with another last offset."""

    def __init__(self) -> None:
        self.found: dict[str, dict[int, int]] = {}

    def add(self, path: str, index_offset: int, log_offset: int) -> None:
        self.found.setdefault(absolute(path), {})[index_offset] = log_offset

    def print(self, err: TextIO) -> None:
        # The largest first, as in the real tool.
        pairs = {path: sorted(found.items(), reverse=True) for path, found in self.found.items()}
        _print_pairs(err, "Mismatches in", pairs, "  Index offset: {}, log offset: {}")


class TimeIndexErrors:
    """Entries of time indexes that are wrong, by what is wrong."""

    def __init__(self) -> None:
        self.mismatches: Pairs = {}
        self.out_of_order: Pairs = {}
        self.not_found: Pairs = {}

    def add(self, found: Pairs, path: str, first: int, second: int) -> None:
        found.setdefault(absolute(path), []).append((first, second))

    def print(self, err: TextIO) -> None:
        _print_pairs(err, "Found timestamp mismatch in", self.mismatches, "  Index timestamp: {}, log timestamp: {}")
        _print_pairs(
            err,
            "Found out of order timestamp in",
            self.out_of_order,
            "  Index timestamp: {}, Previously indexed timestamp: {}",
        )
        _print_pairs(
            err,
            "The following indexed offsets are not found in",
            self.not_found,
            "Indexed offset: {}, found log offset: {}",
        )


def beside(path: str, suffix: str) -> str:
    """The file of the same segment with another suffix, as an absolute path."""
    directory, name = os.path.split(absolute(path))
    return os.path.join(directory, name.split(".")[0] + suffix)


def dump_index(
    disk: Disk, path: str, out: TextIO, sanity_only: bool, verify_only: bool, size_max: int, mismatches: IndexMismatches
) -> None:
    base_offset = base_offset_of(os.path.basename(path))
    log = disk.open(beside(path, ".log"))
    try:
        index = OffsetEntries(disk, path, base_offset)
        if not index.entries:
            out.write(f"{path} is empty.\n")
            return
        if sanity_only:
            index.check_sanity()
            out.write(f"{path} passed sanity check.\n")
            return
        for number, (offset, position) in enumerate(index.entries):
            if offset == base_offset and number > 0:
                return  # preallocated space that was never written
            last_offset = int(_first_batch(log, position, size_max).header.last_offset)
            if last_offset != offset:
                mismatches.add(path, offset, last_offset)
            if not verify_only:
                out.write(f"offset: {offset} position: {position}\n")
    finally:
        log.close()


def _first_batch(log: File, position: int, size_max: int) -> Batch:
    check_slice(log, position)
    batch = BatchReader(log, position, position + size_max).next()
    if batch is None:
        raise JavaFailure("java.util.NoSuchElementException", None)
    return batch


def file_records(log: File) -> str:
    """As the real tool names an open log."""
    return f"FileRecords(size={log.size()}, file={log.path}, start=0, end=2147483647)"


def check_slice(log: File, position: int) -> None:
    if position > log.size():
        message = f"Slice from position {position} exceeds end position of {file_records(log)}"
        raise JavaFailure("java.lang.IllegalArgumentException", message)


def dump_time_index(
    disk: Disk, path: str, out: TextIO, sanity_only: bool, verify_only: bool, errors: TimeIndexErrors
) -> None:
    base_offset = base_offset_of(os.path.basename(path))
    log = disk.open(beside(path, ".log"))
    try:
        index = OffsetEntries(disk, beside(path, ".index"), base_offset)
        times = TimeEntries(disk, path, base_offset)
        if sanity_only:
            times.check_sanity()
            out.write(f"{path} passed sanity check.\n")
            return
        previous = NO_TIMESTAMP
        for number, (timestamp, offset) in enumerate(times.entries):
            if offset == base_offset and number > 0:
                return  # preallocated space that was never written
            batch = _batch_with(log, index.lookup(offset), offset)
            if batch is None:
                errors.add(errors.not_found, path, offset, -1)
            elif batch.header.last_offset != offset:
                errors.add(errors.not_found, path, offset, int(batch.header.last_offset))
            else:
                found = max_timestamp_record(batch.data, batch.header)
                largest = NO_TIMESTAMP if found is None else max(found[0], NO_TIMESTAMP)
                if largest != timestamp:
                    errors.add(errors.mismatches, path, timestamp, largest)
                if previous >= timestamp:
                    errors.add(errors.out_of_order, path, timestamp, previous)
            if not verify_only:
                out.write(f"timestamp: {timestamp} offset: {offset}\n")
            previous = timestamp
    finally:
        log.close()


def _batch_with(log: File, position: int, offset: int) -> Batch | None:
    """The first batch from the position on that ends at the offset or later."""
    check_slice(log, position)
    reader = BatchReader(log, position)
    while (batch := reader.next()) is not None:
        if batch.header.last_offset >= offset:
            return batch
    return None
