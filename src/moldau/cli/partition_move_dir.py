"""`moldau partition move-dir`: moves replicas to another log directory of the same broker."""

from __future__ import annotations

import time

import click

from moldau.cli.completion import complete_brokers
from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import finish, plural, print_error, say
from moldau.cli.partition import names_argument
from moldau.cli.partition_names import find_partitions, ids_text
from moldau.cli.positions import DurationType
from moldau.cli.progress import WorkBar
from moldau.client.admin import Admin, LogDirectory, TopicPartitionReplica
from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition

LOOK_S = 0.5


@click.command("move-dir")
@names_argument
@click.option(
    "--broker",
    "broker_id",
    required=True,
    metavar="ID",
    type=click.IntRange(min=0),
    shell_complete=complete_brokers,
    help="The broker whose replicas move.",
)
@click.option("--to", "target", required=True, metavar="DIRECTORY", help="One of its log.dirs, as an absolute path.")
@click.option(
    "--from", "source", metavar="DIRECTORY", help="Only replicas that are in this one; then no topic is needed."
)
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until everything has moved.")
@click.option("--wait-timeout", type=DurationType(), metavar="DURATION", help="Wait no longer than this, such as 10m.")
@format_option
@connected
def move_dir(
    connection: Connection,
    names: tuple[str, ...],
    broker_id: int,
    target: str,
    source: str | None,
    wait: bool,
    wait_timeout: float | None,
    output_format: str,
) -> None:
    """Move replicas to another log directory of their broker, while they are read and written.

    \b
    Examples:
      moldau partition move-dir orders:0-3 --broker 1 --to /disks/b
      moldau partition move-dir --from /disks/old --to /disks/new --broker 1

    At most replica.alter.log.dirs.io.max.bytes.per.second are copied; `moldau broker describe ID` names directories.
    """
    if not names and source is None:
        raise click.UsageError("Name the partitions, as in orders or orders:0,2; or say --from which directory.")
    with open_admin(connection) as admin:
        directories = admin.describe_log_dirs([broker_id])[broker_id].get()
        _check_directories(directories, broker_id, target, source)
        keys = _to_move(admin, names, broker_id, directories, target, source)
        outcomes = admin.alter_replica_log_dirs(
            {TopicPartitionReplica(key.topic, key.partition, broker_id): target for key in keys}
        )
        failed = {
            TopicPartition(item.topic, item.partition): outcome.error
            for item, outcome in outcomes.items()
            if outcome.error is not None
        }
        good = [key for key in keys if key not in failed]
        total = sum(item.size for directory in directories for item in directory.replicas if item.partition in good)
        done = _wait(admin, broker_id, good, target, wait_timeout, total) if wait and good else False
    _tell(keys, failed, broker_id, target, done, output_format)


def _check_directories(directories: list[LogDirectory], broker_id: int, target: str, source: str | None) -> None:
    there = [item.path for item in directories]
    for path in (target, *(() if source is None else (source,))):
        if path not in there:
            raise click.ClickException(f"Broker {broker_id} has no log directory {path}; it has {', '.join(there)}.")


def _to_move(
    admin: Admin,
    names: tuple[str, ...],
    broker_id: int,
    directories: list[LogDirectory],
    target: str,
    source: str | None,
) -> list[TopicPartition]:
    place = {replica.partition: item.path for item in directories for replica in item.replicas if not replica.is_future}
    if not names:
        return sorted(key for key, path in place.items() if path == source and path != target)
    wanted = [TopicPartition(item.topic, item.partition) for item in find_partitions(admin, names)]
    missing = [key for key in wanted if key not in place]
    if missing:
        raise click.ClickException(f"Broker {broker_id} has no replica of {ids_text_of(missing)}.")
    return [key for key in wanted if place[key] != target and source in (None, place[key])]


def ids_text_of(keys: list[TopicPartition]) -> str:
    topic = keys[0].topic
    return f"{topic}:{ids_text(key.partition for key in keys if key.topic == topic)}"


def _wait(
    admin: Admin, broker_id: int, keys: list[TopicPartition], target: str, limit_s: float | None, total: int
) -> bool:
    """Shows a bar until all replicas are where they were sent; False when the time is over before."""
    deadline = None if limit_s is None else time.monotonic() + limit_s
    wanted = set(keys)
    with WorkBar(f"moving {plural(len(keys), 'replica')}", max(total, 1)) as bar:
        while True:
            there = admin.describe_log_dirs([broker_id], keys)[broker_id].get()
            sizes: dict[tuple[TopicPartition, bool], int] = {}
            arrived = set()
            for directory in there:
                for replica in directory.replicas:
                    sizes[replica.partition, replica.is_future] = replica.size
                    if directory.path == target and not replica.is_future:
                        arrived.add(replica.partition)
            if wanted <= arrived:
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
            done = sum(sizes.get((key, key not in arrived), 0) for key in keys)
            bar.update(done, None, done)
            time.sleep(LOOK_S)


def _tell(
    keys: list[TopicPartition],
    failed: dict[TopicPartition, ClientError],
    broker_id: int,
    target: str,
    done: bool,
    output_format: str,
) -> None:
    rows: list[dict[str, object]] = []
    for key in keys:
        error = failed.get(key)
        row: dict[str, object] = {"topic": key.topic, "partition": key.partition, "broker": broker_id, "to": target}
        row |= {"done": done and error is None, "error": None if error is None else error.name}
        if error is not None:
            print_error(f"Partition {key}: {explain(error) or error.message}")
        rows.append(row)
    count = plural(len(keys) - len(failed), "replica")
    if not keys:
        say(output_format, f"Everything is in {target} already.")
    elif len(failed) < len(keys):
        text = f"Moved {count} to {target}." if done else f"Started to move {count} to {target}."
        say(output_format, text)
    finish(output_format, rows, bool(failed))
