"""Where the records of `moldau consume` go, and how they look there."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from moldau.cli.record_filter import RecordFilter
from moldau.cli.record_text import compile_format, fast_writer
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition
from moldau.client.text_consumer import TextConsumer
from moldau.facts.record_json import BadFormat, to_json_line
from moldau.records.text_writer import NO_LIMIT, TextWriter

POLL_RECORDS = 5_000
POLL_ROWS = 50_000

Renderer = Callable[[ConsumerRecord], bytes]
Ends = dict[TopicPartition, int]


class Output:
    """Prints records: with the compiled writer if that can do it, else one at a time."""

    def __init__(
        self, text_format: str, null: bytes, chosen: RecordFilter, with_topic: bool, one_by_one: bool = False
    ) -> None:
        """one_by_one: no more than is printed may be taken; the compiled writer takes whole batches."""
        terminal = sys.stdout.isatty()
        if text_format == "auto":
            text_format = "pretty" if terminal else "value"
        self.filter = chosen
        self.writer: TextWriter | None = None
        self.render: Renderer = to_json_line
        self.rows = 0
        self.bytes = 0
        self._out = sys.stdout.buffer
        try:
            if text_format == "pretty":
                from moldau.cli.record_view import PrettyRenderer

                self.render = PrettyRenderer(with_topic, terminal and click.get_current_context().color is not False)
            elif text_format == "hex":
                from moldau.cli.record_view import render_hex

                self.render = render_hex
            else:
                self.writer = None if chosen or one_by_one else fast_writer(text_format, null)
                if self.writer is None and text_format != "json":
                    self.render = compile_format("%s\\n" if text_format == "value" else text_format, null)
        except BadFormat as error:
            raise click.UsageError(str(error)) from None

    def poll(self, consumer: TextConsumer, timeout_ms: int, remaining: int | None, ends: Ends | None) -> int:
        """Prints what arrived and is wanted; returns how many records were printed."""
        if self.writer is not None:
            rows = self._poll_text(self.writer, consumer, timeout_ms, remaining)
        else:
            rows = self._poll_records(consumer, timeout_ms, remaining, ends)
        self.rows += rows
        return rows

    def _poll_text(self, writer: TextWriter, consumer: TextConsumer, timeout_ms: int, remaining: int | None) -> int:
        before = int(writer.rows)
        writer.limit = NO_LIMIT if remaining is None else before + remaining
        consumer.poll_text(writer, timeout_ms, POLL_ROWS)
        self.bytes = int(writer.record_bytes)
        self._write(writer.take())
        return int(writer.rows) - before

    def _poll_records(self, consumer: TextConsumer, timeout_ms: int, remaining: int | None, ends: Ends | None) -> int:
        limit = POLL_RECORDS if remaining is None or self.filter else min(POLL_RECORDS, remaining)
        records = consumer.poll(timeout_ms, limit)
        if ends is not None:
            records = [item for item in records if item.offset < ends[TopicPartition(item.topic, item.partition)]]
        if self.filter:
            records = [record for record in records if self.filter.matches(record)]
        if remaining is not None:
            records = records[:remaining]
        self._render(records)
        return len(records)

    def print_records(self, records: list[ConsumerRecord]) -> None:
        """Prints records that came from elsewhere."""
        self._render(records)
        self.rows += len(records)

    def _render(self, records: list[ConsumerRecord]) -> None:
        texts = [self.render(record) for record in records]
        self.bytes += sum(len(text) for text in texts)
        self._write(b"".join(texts))

    def _write(self, text: bytes) -> None:
        if text:
            self._out.write(text)
            self._out.flush()
