"""`moldau consume`: prints the records of topics, by partition and offset or time, or as a member of a group."""

from __future__ import annotations

import sys
import time

import click

from moldau.cli import positions
from moldau.cli.completion import complete_groups, complete_share_groups, complete_topics
from moldau.cli.consume_output import Ends, Output
from moldau.cli.options import CONSUMER, SHARE_CONSUMER, Connection, connected
from moldau.cli.output import print_note
from moldau.cli.positions import Position, check_partitions, parse_partitions, parse_position
from moldau.cli.progress import WorkBar
from moldau.cli.record_filter import RecordFilter, filter_options
from moldau.client.results import TopicPartition
from moldau.client.text_consumer import TextConsumer
from moldau.client.wiring import wired

POLL_MS = 1_000
# Where an end is near, it may be one that no record stands before: a transaction's marker, or a hole of compaction.
POLL_TO_END_MS = 200
# Whole topics are read here, not one event after the other: larger fetches than a program's default.
PARTITION_FETCH_BYTES = 4 * 1024 * 1024


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topics)
@click.option(
    "-o",
    "--offset",
    default=None,
    metavar="WHERE",
    help=f"Where to start in each partition: {positions.HELP}. Default: beginning; with --group, where the group is.",
)
@click.option("--from-beginning", "offset", flag_value="beginning", help="The same as -o beginning.")
@click.option("--last", type=click.IntRange(min=0), metavar="N", help="The same as -o -N.")
@click.option(
    "-u", "--until", metavar="WHERE", help="Where to stop, written as for -o; the record there is not printed any more."
)
@click.option("-p", "--partitions", metavar="N[,N...]", help="Only these partitions, as in 0,2 or 0-3. Default: all.")
@click.option("-n", "--count", type=click.IntRange(min=0), metavar="N", help="Stop after N records.")
@click.option("-F", "--follow", is_flag=True, help="Wait for more at the end. Default: stop there.")
@click.option(
    "-g", "--group", metavar="NAME", shell_complete=complete_groups, help="Read as a member of this consumer group."
)
@click.option(
    "--share",
    metavar="NAME",
    shell_complete=complete_share_groups,
    help="Take records from this share group, which is done with them then; stops when nothing more comes.",
)
@click.option(
    "--ack",
    type=click.Choice(["accept", "release", "reject"]),
    help="With --share, what becomes of records that were printed: accept, they are done; release, they are delivered"
    " again; reject, nobody needs to try them again. Default: accept.",
)
@filter_options
@click.option(
    "-f",
    "--format",
    "text_format",
    default="auto",
    show_default=True,
    metavar="FORMAT",
    help="value, json, hex, pretty, or a format string as kcat has them: %s value, %k key, %h headers, %t topic,"
    " %p partition, %o offset, %T timestamp, %S and %K sizes, \\n \\t \\xHH; %s{hex}, %s{base64}, %T{iso}."
    " auto: pretty on a terminal, value elsewhere.",
)
@click.option("--null-marker", default="", metavar="TEXT", help="What to print for a null key or value.")
@click.option("--read-committed", is_flag=True, help="Leave out records of open and aborted transactions.")
@connected
def consume(
    connection: Connection,
    topics: tuple[str, ...],
    offset: str | None,
    last: int | None,
    until: str | None,
    partitions: str | None,
    count: int | None,
    follow: bool,
    group: str | None,
    share: str | None,
    ack: str | None,
    text_format: str,
    null_marker: str,
    read_committed: bool,
    greps: tuple[str, ...],
    key_greps: tuple[str, ...],
    header_greps: tuple[str, ...],
) -> None:
    """Print the records of topics, up to where they end now.

    \b
    Examples:
      moldau consume orders
      moldau consume orders --follow -o end
      moldau consume orders --last 10 -f '%p:%o %k=%s\\n'
      moldau consume orders -o @-1h -u @-30m -f json
      moldau consume orders --grep 'card.*declined' -n 20
      moldau consume orders --share workers -n 1
    """
    if share is not None:
        from moldau.cli.consume_share import check_options

        given = {"offset": offset, "last": last, "group": group, "partitions": partitions, "until": until}
        unfit = {name: value is not None for name, value in given.items()}
        filters = bool(greps or key_greps or header_greps)
        check_options(share, topics, {**unfit, "read_committed": read_committed, "filters": filters})
    elif ack is not None:
        raise click.UsageError("--ack says what becomes of records of a share group: say which with --share NAME.")
    if offset is not None and last is not None:
        raise click.UsageError("--last says where to start already: leave --offset out.")
    start = Position(positions.LAST, last) if last is not None else parse_position("--offset", offset or "beginning")
    stop = None if until is None else parse_position("--until", until)
    if stop is not None and follow and stop.kind != positions.AT:
        raise click.UsageError("--follow reads on into the future: --until can be an offset then, nothing else.")
    wanted = None if partitions is None else parse_partitions(partitions)
    chosen_records = RecordFilter(greps, key_greps, header_greps)
    output = Output(
        text_format,
        null_marker.encode(),
        chosen_records,
        with_topic=len(topics) > 1,
        one_by_one=share is not None or (group is not None and count is not None),
    )
    if share is not None:
        _consume_shared(connection, share, topics, ack=ack or "accept", count=count, follow=follow, output=output)
        return
    config = connection.config(
        CONSUMER,
        allow_auto_create_topics="false",
        auto_offset_reset="earliest",
        isolation_level="read_committed" if read_committed else "read_uncommitted",
        default_api_timeout_ms=connection.timeout_ms,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
    )
    if group is not None:
        from moldau.cli.consume_group import check_start, consume_as_member

        if wanted is not None or stop is not None or last is not None:
            raise click.UsageError(
                "A group hands out the partitions and remembers offsets: leave -p, -u and --last out."
            )
        check_start(start)
        config["auto.offset.reset"] = "latest" if start.kind == positions.END else "earliest"
        consume_as_member(config, group, topics, count, follow, output, connection.timeout_s)
        return
    with TextConsumer(config=wired(config, first_contact_ms=0)) as consumer:
        chosen: list[TopicPartition] = []
        for topic in dict.fromkeys(topics):
            chosen += choose_partitions(topic, consumer.partitions_for(topic), wanted)
        ends = place(consumer, chosen, start, stop, follow)
        Reading(consumer, output, ends, count, connection.timeout_s).run()


def _consume_shared(
    connection: Connection,
    group: str,
    topics: tuple[str, ...],
    *,
    ack: str,
    count: int | None,
    follow: bool,
    output: Output,
) -> None:
    from moldau.cli.consume_share import consume_shared

    timeout_ms, timeout_s = connection.timeout_ms, connection.timeout_s
    config = connection.config(SHARE_CONSUMER, allow_auto_create_topics="false", default_api_timeout_ms=timeout_ms)
    consume_shared(config, group, topics, ack=ack, count=count, follow=follow, output=output, timeout_s=timeout_s)


class Reading:
    """One run over partitions: until their ends, or for ever, or until enough was printed."""

    def __init__(
        self, consumer: TextConsumer, output: Output, ends: Ends | None, count: int | None, timeout_s: float
    ) -> None:
        self.consumer = consumer
        self.output = output
        self.ends = ends
        self.count = count
        self.timeout_s = timeout_s
        self._starts = {item: consumer.position(item) for item in consumer.assignment()}

    def run(self) -> None:
        ends = self.ends
        if ends is not None and self.output.writer is not None:
            for item, end in ends.items():
                self.output.writer.set_end(item.topic, item.partition, end)
        # The bar would stand in the middle of records that are printed to the same terminal.
        total = None if ends is None else sum(max(0, end - self._starts[item]) for item, end in ends.items())
        with WorkBar("reading", total, wanted=not sys.stdout.isatty()) as bar:
            self._loop(bar)
        if self.output.rows == 0 and self.count != 0 and sys.stdout.isatty():
            print_note("No records." if not self.output.filter else "No record matches.")

    def _loop(self, bar: WorkBar) -> None:
        told = progress = time.monotonic()
        positions_before = -1
        if self.ends is None and sys.stdout.isatty():
            print_note("Waiting for records; Ctrl-C ends.")
        while (remaining := self._remaining()) is None or remaining > 0:
            if self.ends is not None and _pause_finished(self.consumer, self.ends):
                return
            timeout_ms = POLL_MS if self.ends is None else POLL_TO_END_MS
            rows = self.output.poll(self.consumer, timeout_ms, remaining, self.ends)
            now = time.monotonic()
            if rows or self.output.filter or now - told > 1:
                # Records that are filtered out are progress too.
                read = sum(self.consumer.position(item) - start for item, start in self._starts.items())
                bar.update(read, self.output.rows, self.output.bytes)
                told = now
                if rows or read != positions_before:
                    progress = now
                positions_before = read
            if self.ends is not None and now - progress > self.timeout_s:
                raise click.ClickException(
                    f"Nothing arrived for {self.timeout_s:g} seconds although the end is not reached."
                    " Is the broker still there?"
                )

    def _remaining(self) -> int | None:
        return None if self.count is None else self.count - self.output.rows


def _pause_finished(consumer: TextConsumer, ends: Ends) -> bool:
    """Partitions that are read to their end are left alone; True when all are."""
    finished = [item for item in consumer.assignment() if consumer.position(item) >= ends[item]]
    consumer.pause(finished)
    return len(finished) == len(ends)


def choose_partitions(topic: str, found: list[TopicPartition], wanted: list[int] | None) -> list[TopicPartition]:
    if wanted is None:
        return found
    check_partitions(topic, [item.partition for item in found], wanted)
    return [TopicPartition(topic, number) for number in wanted]


def place(
    consumer: TextConsumer, chosen: list[TopicPartition], start: Position, stop: Position | None, follow: bool
) -> Ends | None:
    """Assigns the partitions, seeks, and returns where to stop in each; None: never."""
    begins = consumer.beginning_offsets(chosen)
    ends = consumer.end_offsets(chosen)
    consumer.assign(chosen)
    if start.kind == positions.AT and all(not begins[item] <= start.number <= ends[item] for item in chosen):
        have = "; ".join(f"{item} has {begins[item]} to {ends[item]}" for item in chosen[:3])
        raise click.ClickException(f"Offset {start.number} is not there: {have}.")
    for item, offset in find_offsets(consumer, start, begins, ends).items():
        consumer.seek(item, min(max(offset, begins[item]), ends[item]))
    if stop is not None:
        found = find_offsets(consumer, stop, begins, ends)
        return found if follow else {item: min(offset, ends[item]) for item, offset in found.items()}
    return None if follow else ends


def find_offsets(consumer: TextConsumer, where: Position, begins: Ends, ends: Ends) -> Ends:
    """The offset of a place in each partition."""
    if where.kind == positions.TIME:
        times = consumer.offsets_for_times(dict.fromkeys(ends, where.number))
        return {item: ends[item] if found is None else found.offset for item, found in times.items()}
    if where.kind == positions.LAST:
        return {item: end - where.number for item, end in ends.items()}
    if where.kind == positions.AT:
        return dict.fromkeys(ends, where.number)
    return dict(ends) if where.kind == positions.END else dict(begins)
