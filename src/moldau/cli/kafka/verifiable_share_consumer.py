"""`kafka-verifiable-share-consumer`: reads in a share group and tells as JSON what came and what was acknowledged."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.options import JavaFailure
from moldau.cli.kafka.subcommands import CommandParser
from moldau.cli.kafka.verifiable_producer import now_ms

if TYPE_CHECKING:
    from moldau.cli.stopping import Stopping
    from moldau.client.errors import ClientError
    from moldau.client.record import ConsumerRecord
    from moldau.client.results import TopicPartition

LOGGER = "org.apache.kafka.tools.VerifiableShareConsumer"
POLL_MS = 5_000
AUTO, SYNC, ASYNC = "AUTO", "SYNC", "ASYNC"
BY_DURATION = "by_duration:"


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="verifiable-share-consumer", description="Reads in a share group and tells of each step as JSON."
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--bootstrap-server", metavar="HOST1:PORT1[,HOST2:PORT2[...]]", required=True, help="The brokers."
    )
    add = parser.add_argument
    add("--topic", metavar="TOPIC", required=True, help="The topic.")
    add("--group-id", metavar="GROUP-ID", required=True, help="The share group.")
    add("--max-messages", metavar="MAX-MESSAGES", type=int, default=-1, help="How many; -1: without end.")
    add("--verbose", action="store_true", help="Tell of each record.")
    add(
        "--acknowledgement-mode",
        metavar="ACKNOWLEDGEMENT-MODE",
        default="auto",
        help="How records are accepted: auto (by the next poll), sync or async.",
    )
    add(
        "--offset-reset-strategy",
        metavar="OFFSET-RESET-STRATEGY",
        default="",
        help="Sets where the group begins if it is new: earliest or latest.",
    )
    add("--command-config", metavar="CONFIG-FILE", help="A file with settings of the consumer.")
    return parser


def main(arguments: list[str]) -> int:
    from moldau.cli.kafka.admin_tools import read_config
    from moldau.cli.stopping import Stopping

    parser = _parser()
    if not arguments:
        parser.print_help()
        return 0
    options = parser.parse_args(arguments)
    mode = options.acknowledgement_mode.upper()
    if mode not in (AUTO, SYNC, ASYNC):
        sentence = f"No enum constant {LOGGER}.AcknowledgementMode.{mode}"
        raise JavaFailure("java.lang.IllegalArgumentException", sentence)
    given: dict[str, str] = {}
    try:
        given = {} if options.command_config is None else read_config(options.command_config)
    except JavaFailure as failure:
        parser.error(str(failure.message))
    config = {**given, "bootstrap.servers": options.bootstrap_server, "group.id": options.group_id}
    with Stopping() as stop:
        return Run(options, mode, config, stop).run()


class Run:
    """Reads until enough was acknowledged or somebody ends it."""

    def __init__(self, options: Any, mode: str, config: dict[str, str], stop: Stopping) -> None:
        from moldau.cli.kafka.share_reading import new_share_consumer

        self._options = options
        self._mode = mode
        self._acknowledged = 0
        self._consumer = new_share_consumer(config, self._on_acknowledged)
        self._stop = stop
        stop.interrupt = self._consumer.interrupt_poll

    def run(self) -> int:
        from moldau.cli.kafka.java_client import client_failure
        from moldau.cli.kafka.java_log import write_log
        from moldau.client.errors import ClientError

        self._tell(name="startup_complete")
        try:
            if self._options.offset_reset_strategy:
                self._set_reset_strategy(self._options.offset_reset_strategy)
            self._consumer.subscribe([self._options.topic])
            while not self._stop.requested and not self._is_enough():
                self._step()
            if self._stop.requested:
                self._tell(name="shutdown_requested")
                # What was told of is done, also where the next poll() would have accepted it.
                self._consumer.commit()
        except (ClientError, JavaFailure) as error:
            failure = error if isinstance(error, JavaFailure) else client_failure(error, self._options.topic)
            write_log("ERROR", "Error during processing, terminating share consumer process: ", LOGGER, failure)
        finally:
            self._consumer.close()
            self._tell(name="shutdown_complete")
        return self._stop.exit_code

    def _set_reset_strategy(self, strategy: str) -> None:
        from moldau.cli.kafka.admin_tools import connect, get_all
        from moldau.client.admin import GROUP, ConfigChange, ConfigResource

        kind = "by_duration" if strategy.startswith(BY_DURATION) else strategy
        if kind not in ("earliest", "latest", "by_duration"):
            sentence = f"Unknown auto offset reset strategy: {strategy}"
            raise JavaFailure("java.lang.IllegalArgumentException", sentence)
        group = ConfigResource(GROUP, self._options.group_id)
        changes = {group: [ConfigChange("share.auto.offset.reset", strategy)]}
        with connect(self._options.bootstrap_server, self._options.command_config) as admin:
            get_all("incrementalAlterConfigs", lambda: admin.incremental_alter_configs(changes))
        self._tell(name="offset_reset_strategy_set", offsetResetStrategy=kind)

    def _is_enough(self) -> bool:
        wanted = int(self._options.max_messages)
        return wanted >= 0 and self._acknowledged >= wanted

    def _step(self) -> None:
        from moldau.cli.kafka.java_log import write_log

        records = self._consumer.poll(POLL_MS)
        if not records:
            return
        self._tell_records(records)
        if self._mode == ASYNC:
            self._consumer.commit_async()
        elif self._mode == SYNC:
            for partition, error in self._consumer.commit().items():
                if error is not None:
                    sentence = f"Failed to commit offset synchronously for topic partition: {partition}"
                    write_log("ERROR", sentence, LOGGER)

    def _tell_records(self, records: list[ConsumerRecord]) -> None:
        partitions: dict[tuple[str, int], list[ConsumerRecord]] = {}
        for record in records:
            partitions.setdefault((record.topic, record.partition), []).append(record)
        if self._options.verbose:
            for found in partitions.values():
                for record in found:
                    self._tell_record(record)
        shown = [_offsets(*key, [int(record.offset) for record in found]) for key, found in partitions.items()]
        self._tell(name="records_consumed", count=len(records), partitions=shown)

    def _tell_record(self, record: ConsumerRecord) -> None:
        where = {"topic": record.topic, "partition": record.partition, "offset": int(record.offset)}
        self._tell(name="record_data", key=_text(record.key), value=_text(record.value), **where)

    def _on_acknowledged(self, offsets: dict[TopicPartition, set[int]], error: ClientError | None) -> None:
        from moldau.cli.kafka.java_client import client_failure

        count = sum(len(found) for found in offsets.values())
        shown = [_offsets(item.topic, item.partition, list(found)) for item, found in offsets.items()]
        more = {} if error is None else {"error": client_failure(error).message}
        self._tell(name="offsets_acknowledged", count=count, partitions=shown, success=error is None, **more)
        if error is None:
            self._acknowledged += count
            if self._is_enough():
                # A poll() that sent these need not wait for others.
                self._consumer.interrupt_poll()

    def _tell(self, **fields: object) -> None:
        line = json.dumps({"timestamp": now_ms(), **fields}, separators=(",", ":"), ensure_ascii=False)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _offsets(topic: str, partition: int, offsets: list[int]) -> dict[str, object]:
    return {"topic": topic, "partition": partition, "count": len(offsets), "offsets": sorted(offsets)}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
