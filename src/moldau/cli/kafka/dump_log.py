"""`kafka-dump-log`: prints logs, indexes, snapshots and metadata, letter for letter as the real tool does."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import TextIO

from moldau.cli.kafka.dump_index import (
    IndexMismatches,
    TimeIndexErrors,
    absolute,
    dump_index,
    dump_time_index,
    file_records,
)
from moldau.cli.kafka.dump_producers import dump_snapshot, dump_transactions
from moldau.cli.kafka.files import ReadOnlyDisk
from moldau.cli.kafka.java_order import hash_map_order
from moldau.cli.kafka.options import (
    OPTIONAL_VALUE,
    VALUE,
    JavaFailure,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_required,
)
from moldau.protocol.primitives import DecodeError
from moldau.records.batch import CURRENT_MAGIC
from moldau.records.walk import Record
from moldau.storage.inspect.batches import Batch, BatchReader, RecordReader, Unreadable
from moldau.storage.inspect.index import base_offset_of
from moldau.storage.inspect.json_text import java_text

ABOUT = (
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly"
    " corrupt log segment."
)
ALL_BYTES = 2**31 - 1
STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"
NO_BASE = -1

PARSER = OptionParser(
    [
        Option("cluster-metadata-decoder", "Read the records as those of the cluster's metadata."),
        Option("deep-iteration", "Show the records of each batch too; --print-data-log implies it."),
        Option(
            "files", "REQUIRED: The files to print, with commas between them.", VALUE, "String", "file1, file2, ..."
        ),
        Option("index-sanity-check", "Only check indexes, as a broker does when it starts."),
        Option("key-decoder-class", "How keys are read.", OPTIONAL_VALUE, default=STRING_DECODER),
        Option("max-bytes", "Read no more than this of each log.", VALUE, "Integer", "size", ALL_BYTES),
        Option("max-message-size", "The largest batch there can be.", VALUE, "Integer", "size", 5_242_880),
        Option("offsets-decoder", "Read the records as those of __consumer_offsets."),
        Option("print-data-log", "Show keys and values; every decoder option implies it."),
        Option("remote-log-metadata-decoder", "Read the records as those of __remote_log_metadata."),
        Option("share-group-state-decoder", "Read the records as those of __share_group_state."),
        Option("skip-record-metadata", "Of records show keys and values alone, of control records nothing."),
        Option("transaction-log-decoder", "Read the records as those of __transaction_state."),
        Option("value-decoder-class", "How values are read.", OPTIONAL_VALUE, default=STRING_DECODER),
        Option("verify-index-only", "Compare indexes with their logs without printing them."),
    ]
)
DECODER_OPTIONS = (
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "remote-log-metadata-decoder",
    "share-group-state-decoder",
    "value-decoder-class",
    "key-decoder-class",
)

Decoder = Callable[[Record], tuple[str | None, str | None]]


def main(arguments: list[str]) -> int:
    options = PARSER.parse(arguments)
    check_help_or_version(options, ABOUT)
    check_required(options, "files")
    return Dump(options, sys.stdout, sys.stderr).run()


class Dump:
    """One run over some files; what does not fit together is gathered and said at the end."""

    def __init__(self, options: Options, out: TextIO, err: TextIO) -> None:
        self.options = options
        self.out = out
        self.err = err
        self.disk = ReadOnlyDisk()
        self.index_mismatches = IndexMismatches()
        self.time_errors = TimeIndexErrors()
        self.gaps: dict[str, dict[int, int]] = {}
        self.prints_data = options.has("print-data-log") or any(options.has(name) for name in DECODER_OPTIONS)

    def run(self) -> int:
        for name in split_names(self.options.text("files") or ""):
            path = java_path(name)
            self.out.write(f"Dumping {path}\n")
            try:
                self.dump(path)
            except Unreadable as error:
                raise JavaFailure(error.kafka_class, str(error)) from error
            except BrokenPipeError:
                raise  # that is the output, not a file
            except FileNotFoundError as error:
                raise JavaFailure("java.nio.file.NoSuchFileException", str(error.filename)) from error
            except PermissionError as error:
                raise JavaFailure("java.nio.file.AccessDeniedException", str(error.filename)) from error
            except OSError as error:
                raise JavaFailure("java.io.IOException", error.strerror) from error
        self.out.flush()
        self.index_mismatches.print(self.err)
        self.time_errors.print(self.err)
        for path in hash_map_order(self.gaps):
            self.err.write(f"Non-consecutive offsets in {path}\n")
            for first, second in sorted(self.gaps[path].items()):
                self.err.write(f"  {first} is followed by {second}\n")
        return 0

    def dump(self, path: str) -> None:
        suffix = os.path.splitext("x" + os.path.basename(path))[1]
        options = self.options
        if suffix in (".log", ".checkpoint"):
            self.dump_log(path)
        elif suffix == ".index":
            sanity, verify = options.has("index-sanity-check"), options.has("verify-index-only")
            size = options.integer("max-message-size") or 0
            dump_index(self.disk, path, self.out, sanity, verify, size, self.index_mismatches)
        elif suffix == ".timeindex":
            sanity, verify = options.has("index-sanity-check"), options.has("verify-index-only")
            dump_time_index(self.disk, path, self.out, sanity, verify, self.time_errors)
        elif suffix == ".snapshot":
            dump_snapshot(self.disk, path, self.out, self.err)
        elif suffix == ".txnindex":
            dump_transactions(self.disk, path, self.out)
        else:
            self.err.write(f"Ignoring unknown file {path}\n")

    def dump_log(self, path: str) -> None:
        decoder = choose_decoder(self.options)
        bytes_max = self.options.integer("max-bytes")
        assert bytes_max is not None
        self.out.write(title_of(os.path.basename(path)) + "\n")
        deep = self.options.has("deep-iteration") or self.prints_data
        file = self.disk.open(path)
        try:
            if bytes_max < 0:
                message = f"Invalid size: {bytes_max} in read from {file_records(file)}"
                raise JavaFailure("java.lang.IllegalArgumentException", message)
            reader = BatchReader(file, 0, bytes_max)
            write = self.out.write
            lines = LogLines(decoder if self.prints_data else None, self.options.has("skip-record-metadata"), write)
            last_offset = NO_BASE
            while (batch := reader.next()) is not None:
                write(batch_line(batch))
                write(batch_place(batch))
                if not deep:
                    continue
                records = RecordReader(batch)
                for record in records.records:
                    if record.offset != last_offset + 1:
                        self.gaps.setdefault(absolute(path), {})[last_offset] = record.offset
                    last_offset = record.offset
                    lines.write_record(batch, record)
                if records.failure is not None:
                    raise records.failure
            trailing = reader.end - reader.position
            if trailing > 0 and bytes_max == ALL_BYTES:
                write(f"Found {trailing} invalid bytes at the end of {os.path.basename(path)}\n")
        finally:
            file.close()


def split_names(text: str) -> list[str]:
    """As Java splits: empty names at the end are dropped, but no name at all is an empty one."""
    names = text.split(",")
    while text and names and not names[-1]:
        names.pop()
    return names


def java_path(name: str) -> str:
    """As java.io.File shows it: single slashes, none at the end."""
    plain = re.sub(r"/+", "/", name)
    return plain if plain == "/" else plain.rstrip("/")


def title_of(name: str) -> str:
    if name.endswith(".log"):
        return f"Log starting offset: {base_offset_of(name)}"
    if name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    offset, epoch = name[:20], name[21:31]
    if len(name) < 20:
        message = f"begin 0, end 20, length {len(name)}"
        raise JavaFailure("java.lang.StringIndexOutOfBoundsException", message)
    if not offset.isdigit() or not epoch.isdigit():
        text = epoch if offset.isdigit() else offset
        raise JavaFailure("java.lang.NumberFormatException", f'For input string: "{text}"')
    return f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}"


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def flag(value: bool) -> str:
    return "true" if value else "false"


def batch_line(batch: Batch) -> str:
    """What a batch says of itself; batch_place() ends the line."""
    header = batch.header
    if header.magic < CURRENT_MAGIC:
        return f"offset: {header.last_offset}"
    horizon = optional_long(header.base_timestamp if header.has_delete_horizon else None)
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.records_count}"
        f" baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} producerId: {header.producer_id}"
        f" producerEpoch: {header.producer_epoch} partitionLeaderEpoch: {header.partition_leader_epoch}"
        f" isTransactional: {flag(header.is_transactional)} isControl: {flag(header.is_control)}"
        f" deleteHorizonMs: {horizon}"
    )


def batch_place(batch: Batch) -> str:
    header = batch.header
    return (
        f" position: {batch.position} {time_type(batch)}: {header.max_timestamp} size: {header.size}"
        f" magic: {header.magic} compresscodec: {batch.codec_name()} crc: {header.crc}"
        f" isvalid: {flag(batch.is_valid())}\n"
    )


def time_type(batch: Batch) -> str:
    if batch.header.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if batch.header.is_log_append_time else "CreateTime"


class LogLines:
    """Writes the lines of records: `decoder` is None where keys and values are not shown."""

    def __init__(self, decoder: Decoder | None, skips_metadata: bool, write: Callable[[str], object]) -> None:
        self.decoder = decoder
        self.skips_metadata = skips_metadata
        self.write = write

    def write_record(self, batch: Batch, record: Record) -> None:
        parts: list[str] = []
        try:
            self._show(batch, record, parts)
        except (Unreadable, JavaFailure, DecodeError):
            self.write("".join(parts))
            raise
        parts.append("\n")
        self.write("".join(parts))

    def _show(self, batch: Batch, record: Record, parts: list[str]) -> None:
        indent = "| "
        is_control = batch.header.is_control
        if not self.skips_metadata:
            key_size = -1 if record.key is None else len(record.key)
            value_size = -1 if record.value is None else len(record.value)
            names = ",".join([name for name, _ in record.headers])
            parts.append(
                f"| offset: {record.offset} {time_type(batch)}: {record.timestamp} keySize: {key_size}"
                f" valueSize: {value_size} sequence: {batch.sequence_of(record)} headerKeys: [{names}]"
            )
            indent = " "
            if is_control:
                from moldau.storage.inspect.stored import control_text

                parts.append(f" {control_text(record)}")
        if self.decoder is not None and not is_control:
            key, value = self.decoder(record)
            if key is not None:
                parts.append(f"{indent}key: {key}")
                indent = " "
            if value is not None:
                parts.append(f"{indent}payload: {value}")


def choose_decoder(options: Options) -> Decoder:
    for name in DECODER_OPTIONS[:5]:
        if options.has(name):
            from moldau.cli.kafka.dump_decoders import stored_decoder

            return stored_decoder(name)
    key, value = options.text("key-decoder-class"), options.text("value-decoder-class")
    if key == value == STRING_DECODER:
        return decode_text
    from moldau.cli.kafka.dump_decoders import class_decoder

    return class_decoder(key or "", value or "")


def decode_text(record: Record) -> tuple[str | None, str | None]:
    return (
        None if record.key is None else java_text(record.key),
        None if record.value is None else java_text(record.value),
    )
