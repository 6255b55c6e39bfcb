"""`moldau consume --share`: takes records from a share group, prints them, and says what became of them."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from moldau.cli.output import print_note
from moldau.cli.share_printing import print_and_acknowledge
from moldau.cli.stopping import Stopping
from moldau.client.consumer import Consumer
from moldau.client.share.acknowledgements import AcknowledgeType
from moldau.client.share_consumer import ShareConsumer
from moldau.client.wiring import wired

if TYPE_CHECKING:
    from moldau.cli.consume_output import Output
    from moldau.client.errors import ClientError
    from moldau.client.record import ConsumerRecord
    from moldau.client.results import TopicPartition

POLL_MS = 500
# A share group has no end that its members know of: it is taken for reached when nothing came for so long.
IDLE_S = 3.0
RECORDS_MAX = 500
ACKNOWLEDGE_TYPES = {
    "accept": AcknowledgeType.ACCEPT,
    "release": AcknowledgeType.RELEASE,
    "reject": AcknowledgeType.REJECT,
}
DONE = {"accept": "accepted", "release": "released", "reject": "rejected"}

# Options that make no sense in a share group, and what to do instead.
_UNFIT = {
    "offset": "A share group begins where its setting share.auto.offset.reset says, and goes on from there: leave -o"
    " and --from-beginning out. `moldau config alter group {group} --set share.auto.offset.reset=earliest` has a new"
    " group begin with the first record, `moldau share reset {group} -t {topic} --to WHERE` moves one.",
    "last": "A share group hands out what nobody has done yet: leave --last out. `moldau share reset {group} -t"
    " {topic} --to WHERE` moves the group.",
    "group": "--group is for consumer groups, --share for share groups: leave one of them out.",
    "partitions": "A share group hands out records of all partitions: leave -p out.",
    "until": "A share group knows no place to stop at: leave -u out, and say with -n how many records to take.",
    "read_committed": "What members see of transactions is a setting of the share group: leave --read-committed out."
    " `moldau config alter group {group} --set share.isolation.level=read_committed` turns it on.",
    "filters": "A share group would be done with records that are not printed: leave --grep, --grep-key and --header"
    " out. `moldau consume {topic}` without --share looks at all records and takes none.",
}


def check_options(group: str, topics: tuple[str, ...], given: dict[str, bool]) -> None:
    """given: which of the options that do not fit were used."""
    for name, sentence in _UNFIT.items():
        if given[name]:
            raise click.UsageError(sentence.format(group=group, topic=topics[0]))


def consume_shared(
    config: dict[str, object],
    group: str,
    topics: tuple[str, ...],
    *,
    ack: str,
    count: int | None,
    follow: bool,
    output: Output,
    timeout_s: float,
) -> None:
    """Joins, prints, acknowledges, leaves."""
    with Consumer(config=wired(_asking(config), first_contact_ms=0)) as asking:
        for topic in dict.fromkeys(topics):
            asking.partitions_for(topic)  # one that is not there is an error here, and not waited for
    config = {**config, "group.id": group, "share.acknowledgement.mode": "explicit"}
    if count is not None:
        # Nobody else is to wait for records that are not printed here.
        config |= {"share.acquire.mode": "record_limit", "max.poll.records": max(1, min(count, RECORDS_MAX))}
    with Stopping() as stop:
        with ShareConsumer(config=wired(config, first_contact_ms=0)) as consumer:
            stop.interrupt = consumer.interrupt_poll
            consumer.subscribe(topics)
            Sharing(
                consumer, group, ack=ack, output=output, count=count, follow=follow, timeout_s=timeout_s, stop=stop
            ).run()
        stop.raise_requested()


def _asking(config: dict[str, object]) -> dict[str, object]:
    from moldau.client import config as settings

    return {name: value for name, value in config.items() if name.replace("_", ".") in settings.CONSUMER}


class Sharing:
    """One stay in a share group."""

    def __init__(
        self,
        consumer: ShareConsumer,
        group: str,
        *,
        ack: str,
        output: Output,
        count: int | None,
        follow: bool,
        timeout_s: float,
        stop: Stopping,
    ) -> None:
        self.consumer = consumer
        self.group = group
        self.ack = ack
        self.output = output
        self.count = count
        self.follow = follow
        self.timeout_s = timeout_s
        self.stop = stop
        # Records that were printed and released, which come again for as long as the group's limit lets them.
        self._released: set[tuple[str, int, int]] = set()
        self._refused = 0
        self._reason: ClientError | None = None
        consumer.set_acknowledgement_callback(self._on_acknowledged)

    def run(self) -> None:
        try:
            self._loop()
        finally:
            # What was printed is printed, also when somebody ends the command.
            self.consumer.commit()
        if self._reason is not None:
            raise click.ClickException(
                f"{self._refused} of the records above were not {DONE[self.ack]}, the group delivers them again:"
                f" {self._reason}"
            )
        if self.output.rows == 0 and self.count != 0 and sys.stdout.isatty() and not self.stop.requested:
            print_note(
                f"Share group {self.group} has nothing to hand out. A new one begins at the end of its topics, unless"
                f" `moldau config alter group {self.group} --set share.auto.offset.reset=earliest` was said before."
            )

    def _loop(self) -> None:
        if self.follow and sys.stdout.isatty():
            print_note("Waiting for records; Ctrl-C ends.")
        waiting_since = time.monotonic()
        joined = False
        while not self.stop.requested and (self.count is None or self.output.rows < self.count):
            records = self.consumer.poll(POLL_MS)
            now = time.monotonic()
            if records:
                if not self._take(records):
                    return
                waiting_since = now
            elif not joined and self.consumer.assignment():
                joined, waiting_since = True, now
            if self.follow:
                continue
            if not records and joined and now - waiting_since > IDLE_S:
                return
            if not joined and not records and now - waiting_since > self.timeout_s:
                raise click.ClickException(
                    f"Share group {self.group} gave this member no partitions within {self.timeout_s:g} seconds."
                    " Are share groups turned on (`moldau kafka-features describe`), and is there room for a member?"
                )

    def _take(self, records: list[ConsumerRecord]) -> bool:
        """Prints, then says what became of it; False: only what was printed before comes."""
        wanted = records
        if self.ack == "release" and not self.follow:
            wanted = [record for record in wanted if _place(record) not in self._released]
            self._released.update(map(_place, wanted))
        if self.count is not None:
            wanted = wanted[: self.count - self.output.rows]
        for record in records:
            self.consumer.acknowledge(record, AcknowledgeType.RELEASE)
        kind = ACKNOWLEDGE_TYPES[self.ack]
        print_and_acknowledge(self.consumer, wanted, kind, lambda: self.output.print_records(wanted))
        return bool(wanted)

    def _on_acknowledged(self, offsets: dict[TopicPartition, set[int]], error: ClientError | None) -> None:
        if error is not None:
            self._refused += sum(len(found) for found in offsets.values())
            self._reason = error


def _place(record: ConsumerRecord) -> tuple[str, int, int]:
    return record.topic, record.partition, int(record.offset)
