"""All logs of a node: placement, restart, deletion, checkpoints, failing directories."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from moldau.config.log_config import LogConfig
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.uuids import uuid_from_text, uuid_to_text
from moldau.server.posix_disk import PosixDisk
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.log_manager import CannotStart, LogManager, parse_partition_name
from moldau.storage.meta_properties import MetaProperties, write_meta_properties
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, FaultyDisk, append, config, read_all


class Numbers:
    """Counts up, in place of random numbers."""

    def __init__(self) -> None:
        self.next = 0

    def below(self, limit: int) -> int:
        self.next += 1
        return self.next % limit


def manager(
    tmp_path: Path, disk: PosixDisk | None = None, settings: LogConfig | None = None, load: bool = True
) -> LogManager:
    settings = settings if settings is not None else config()
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    result = LogManager(disk if disk is not None else PosixDisk(), paths, lambda topic: settings, Numbers().below)
    if load:
        result.load(NOW_MS)
    return result


def high_watermark_of(log: Log) -> int:
    return log.log_end_offset


def test_new_partitions_go_where_there_are_fewest(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    for number in range(5):
        logs.create("t", number, TOPIC_ID, NOW_MS)
    assert sorted(path.name for path in (tmp_path / "one").glob("t-*")) == ["t-0", "t-2", "t-4"]
    assert sorted(path.name for path in (tmp_path / "two").glob("t-*")) == ["t-1", "t-3"]
    logs.create("t", 9, TOPIC_ID, NOW_MS, logs.directories[0])
    assert (tmp_path / "one" / "t-9").is_dir()
    assert logs.create("t", 0, TOPIC_ID, NOW_MS) is logs.get("t", 0)


def test_a_clean_stop_and_start(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    for number in range(3):
        append(logs.create("t", number, TOPIC_ID, NOW_MS), b"%d" % number)
    append(logs.create("a-b.c_d", 12, TOPIC_ID, NOW_MS))
    log = logs.get("t", 0)
    assert log is not None
    append(log)
    log.advance_log_start(1)
    logs.shutdown(NOW_MS, 71, {("t", 0): 2, ("t", 1): 1})
    assert (tmp_path / "one" / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":71}'
    assert not (tmp_path / "one" / ".lock").exists()
    assert (tmp_path / "one" / "log-start-offset-checkpoint").read_bytes() == b"0\n1\nt 0 1\n"
    assert (tmp_path / "two" / "recovery-point-offset-checkpoint").read_bytes() == b"0\n2\nt 1 1\na-b.c_d 12 1\n"
    again = manager(tmp_path)
    assert again.runs.previous_broker_epoch() == 71
    assert not again.runs.loaded_unclean
    assert sorted(again.logs) == [("a-b.c_d", 12), ("t", 0), ("t", 1), ("t", 2)]
    assert again.checkpoints.high_watermarks == {("t", 0): 2, ("t", 1): 1}
    assert again.logs[("t", 0)].log_start_offset == 1
    assert read_all(again.logs[("t", 1)]) == [(0, b"1")]
    assert not (tmp_path / "one" / ".kafka_cleanshutdown").exists()


def test_a_start_after_a_crash_recovers(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    append(logs.create("t", 0, TOPIC_ID, NOW_MS), b"x")
    with open(tmp_path / "one" / "t-0" / f"{0:020d}.log", "ab") as file:
        file.write(b"torn")
    logs.disk.unlock_directory(str(tmp_path / "one"))
    logs.disk.unlock_directory(str(tmp_path / "two"))
    again = manager(tmp_path)
    assert again.runs.loaded_unclean
    assert again.runs.previous_broker_epoch() == -1
    assert read_all(again.logs[("t", 0)]) == [(0, b"x")]


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        "cleaner-offset-checkpoint",
    ],
)
def test_damaged_checkpoints_cost_a_longer_recovery_only(tmp_path: Path, name: str) -> None:
    logs = manager(tmp_path)
    append(logs.create("t", 0, TOPIC_ID, NOW_MS), b"x")
    logs.shutdown(NOW_MS)
    (tmp_path / "one" / name).write_bytes(b"\x00garbage")
    assert read_all(manager(tmp_path).logs[("t", 0)]) == [(0, b"x")]


def test_a_deleted_log_is_renamed_and_removed_later(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, b"old")
    log.roll(NOW_MS)
    logs.checkpoints.write()
    logs.delete("t", 0, NOW_MS)
    assert logs.get("t", 0) is None
    (name,) = [name for name in os.listdir(tmp_path / "one") if name.startswith("t-0")]
    assert name == f"t-0.{1:032x}-delete"
    with pytest.raises(KafkaError):
        append(log)
    new = logs.create("t", 0, TOPIC_ID, NOW_MS, logs.directories[0])
    assert new.log_end_offset == 0
    assert "t 0 1" not in (tmp_path / "one" / "recovery-point-offset-checkpoint").read_text()
    logs.housekeeping(NOW_MS + 59_999)
    assert (tmp_path / "one" / name).exists()
    logs.housekeeping(NOW_MS + 60_000)
    assert not (tmp_path / "one" / name).exists()
    assert (tmp_path / "one" / "t-0").exists()


def test_deletions_are_finished_at_the_next_start(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.create("t", 0, TOPIC_ID, NOW_MS)
    logs.delete("t", 0, NOW_MS)
    logs.shutdown(NOW_MS)
    again = manager(tmp_path)
    assert again.logs == {}
    again.housekeeping(NOW_MS)
    assert [name for name in os.listdir(tmp_path / "one") if "delete" in name] == []


def test_names_of_deleted_folders_have_at_most_255_characters(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.create("t" * 249, 3, TOPIC_ID, NOW_MS)
    logs.delete("t" * 249, 3, NOW_MS)
    (name,) = [name for name in os.listdir(tmp_path / "one") if name.startswith("t")]
    assert len(name) == 255
    assert name.endswith(f"-3.{1:032x}-delete")


def test_strays_are_kept_and_not_loaded_again(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    append(logs.create("lost", 0, TOPIC_ID, NOW_MS))
    logs.rename_to_stray("lost", 0)
    logs.shutdown(NOW_MS)
    again = manager(tmp_path)
    assert again.logs == {}
    again.housekeeping(NOW_MS + 10**9)
    assert (tmp_path / "one" / f"lost-0.{1:032x}-stray").is_dir()


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    for name in ("__cluster_metadata-0", "lost+found", "notapartition", "x-y"):
        (tmp_path / "one" / name).mkdir(parents=True)
    assert manager(tmp_path).logs == {}
    assert parse_partition_name("a-b-3") == ("a-b", 3)
    assert parse_partition_name("a-b") is None


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every folder and file below, with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize(
    "content", [[], [".DS_Store"], ["beach.jpg"], ["00000000000000000000.jpg"], ["1.log", "x.index"]]
)
def test_a_folder_that_is_only_named_like_a_replica_is_left_alone(
    tmp_path: Path, content: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    photos = tmp_path / "one" / "photos-2024"
    (photos / "album-1").mkdir(parents=True)
    for name in content:
        (photos / name).write_text("mine")
    if not content:
        (photos / "album-1").rmdir()
    before = tree(photos)
    logs = manager(tmp_path)
    assert logs.logs == {}
    logs.shutdown(NOW_MS)
    assert tree(photos) == before
    told = [record for record in caplog.records if "photos-2024" in record.getMessage()]
    assert len([record for record in told if record.levelname == "WARNING"]) == (1 if content else 0)


@pytest.mark.parametrize(
    "name",
    ["partition.metadata", "00000000000000000000.log", "00000000000000000007.index", "00000000000000000000.log.swap"],
)
def test_one_file_of_a_log_makes_a_folder_a_replica(tmp_path: Path, name: str) -> None:
    (tmp_path / "one" / "t-3").mkdir(parents=True)
    (tmp_path / "one" / "t-3" / name).write_bytes(b"")
    assert list(manager(tmp_path).logs) == [("t", 3)]


def test_a_replica_is_made_in_the_empty_folder_that_a_crash_left_and_not_in_that_of_others(tmp_path: Path) -> None:
    for name in ("t-0", "t-1"):
        (tmp_path / "one" / name).mkdir(parents=True)
    (tmp_path / "one" / "t-1" / "notes.txt").write_text("mine")
    logs = manager(tmp_path)
    append(logs.create("t", 0, TOPIC_ID, NOW_MS, logs.directories[0]), b"kept")
    with pytest.raises(KafkaError, match="holds something else"):
        logs.create("t", 1, TOPIC_ID, NOW_MS, logs.directories[0])
    logs.shutdown(NOW_MS)
    assert read_all(manager(tmp_path).logs[("t", 0)]) == [(0, b"kept")]
    assert tree(tmp_path / "one" / "t-1") == {"notes.txt": b"mine"}


def test_a_partition_in_two_directories_stops_the_start(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "t-0").mkdir(parents=True)
        (tmp_path / name / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_to_text(TOPIC_ID)}")
    with pytest.raises(CannotStart, match="remove one of the two"):
        manager(tmp_path)


def test_a_directory_in_use_stops_the_start(tmp_path: Path) -> None:
    disk = PosixDisk()
    manager(tmp_path, disk)
    with pytest.raises(CannotStart, match="in use"):
        manager(tmp_path, disk)


def test_directories_know_their_ids(tmp_path: Path) -> None:
    directory_id = uuid_from_text("ALtMucztd-1b-dNFbu_UjA")
    (tmp_path / "two").mkdir()
    write_meta_properties(PosixDisk(), str(tmp_path / "two"), MetaProperties("c", 1, directory_id), "today")
    logs = manager(tmp_path)
    assert logs.directory_by_id(directory_id) is logs.directories[1]


def test_a_directory_that_fails_takes_only_its_own_logs_offline(tmp_path: Path) -> None:
    disk = FaultyDisk()
    logs = manager(tmp_path, disk)
    failed: list[LogDirectory] = []
    logs.on_directory_failed = failed.append
    first, second = logs.create("t", 0, TOPIC_ID, NOW_MS), logs.create("t", 1, TOPIC_ID, NOW_MS)
    append(first, b"kept")
    disk.bytes_left, disk.error = 0, errno.EIO
    with pytest.raises(KafkaError):
        append(first)
    disk.bytes_left = None
    assert failed == [logs.directories[0]]
    with pytest.raises(KafkaError) as caught:
        first.read(0, 100, 1, True)
    assert caught.value.code == errors.KAFKA_STORAGE_ERROR
    append(second, b"fine")
    third = logs.create("t", 2, TOPIC_ID, NOW_MS)
    assert third.log_directory is logs.directories[1]
    logs.housekeeping(NOW_MS + 10**6, high_watermark_of)
    logs.shutdown(NOW_MS, 3)
    assert not (tmp_path / "one" / ".kafka_cleanshutdown").exists()
    assert json.loads((tmp_path / "two" / ".kafka_cleanshutdown").read_bytes())["brokerEpoch"] == 3
    assert read_all(manager(tmp_path).logs[("t", 0)]) == [(0, b"kept")]


def test_a_directory_that_cannot_be_made_is_offline_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"a file is in the way")
    logs = manager(tmp_path)
    assert [directory.failed for directory in logs.directories] == [True, False]
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "one").write_bytes(b"")
    (tmp_path / "both" / "two").write_bytes(b"")
    with pytest.raises(CannotStart):
        manager(tmp_path / "both")


def test_housekeeping_applies_retention_and_writes_checkpoints(tmp_path: Path) -> None:
    logs = manager(tmp_path, settings=config(segment_bytes=100, retention_ms=1000))
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    for _ in range(3):
        append(log)
    logs.housekeeping(NOW_MS + 29_999, high_watermark_of)
    assert log.log_start_offset == 0
    logs.housekeeping(NOW_MS + 30_000, high_watermark_of)
    assert log.log_start_offset == 3
    logs.housekeeping(NOW_MS + 90_000, high_watermark_of)
    assert not [name for name in os.listdir(log.directory) if name.endswith(".deleted")]
    text = (tmp_path / "one" / "recovery-point-offset-checkpoint").read_text()
    assert text == "0\n1\nt 0 3\n"


def test_each_kind_of_housekeeping_has_its_own_interval(tmp_path: Path) -> None:
    """Retention (and when it first comes), recovery points, log starts, producers that are forgotten."""
    logs = manager(tmp_path, settings=config(segment_bytes=300, retention_ms=1000), load=False)
    logs.checkpoint_interval_ms = 100_000
    logs.log_start_checkpoint_interval_ms = 7_000
    logs.first_retention_delay_ms = 3_000
    logs.retention_interval_ms = 20_000
    logs.expiration_interval_ms = 9_000
    logs.producer_expiration_ms = 1
    logs.load(NOW_MS)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, bytes(100), bytes(100), producer_id=5, epoch=0, sequence=0)
    append(log, bytes(100), bytes(100), timestamp=NOW_MS + 15_000)
    log.advance_log_start(3)

    def housekeeping_at(after_ms: int) -> None:
        logs.housekeeping(NOW_MS + after_ms, high_watermark_of)

    def content_of(name: str) -> bytes:
        path = Path(log.log_directory.path) / f"{name}-checkpoint"
        return path.read_bytes() if path.exists() else b""

    housekeeping_at(2_999)
    assert len(log.segments) == 2
    housekeeping_at(3_000)
    assert len(log.segments) == 1, "the first retention run"
    housekeeping_at(6_999)
    assert b"t 0" not in content_of("log-start-offset")
    housekeeping_at(7_000)
    assert b"t 0 3\n" in content_of("log-start-offset")
    housekeeping_at(8_999)
    assert list(log.producers.entries) == [5]
    housekeeping_at(9_000)
    assert list(log.producers.entries) == []
    housekeeping_at(22_999)
    assert log.base_offsets == [2]
    housekeeping_at(23_000)
    assert log.base_offsets == [4], "the next retention run"
    append(log, bytes(100))
    log.flush()
    housekeeping_at(99_999)
    assert b"t 0" not in content_of("recovery-point-offset")
    housekeeping_at(100_000)
    assert b"t 0 5\n" in content_of("recovery-point-offset")


def test_new_settings_reach_the_logs_of_a_topic(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    other = logs.create("u", 0, TOPIC_ID, NOW_MS)
    logs.set_config("t", config(max_message_bytes=10))
    with pytest.raises(KafkaError) as caught:
        append(log)
    assert caught.value.code == errors.MESSAGE_TOO_LARGE
    append(other)


def test_a_topic_id_can_be_given_later(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    log = logs.create("t", 0, bytes(16), NOW_MS)
    assert not (tmp_path / "one" / "t-0" / "partition.metadata").exists()
    logs.set_topic_id(log, TOPIC_ID)
    logs.shutdown(NOW_MS)
    assert manager(tmp_path).logs[("t", 0)].topic_id == TOPIC_ID
