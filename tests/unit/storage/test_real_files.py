"""Files that a real Apache Kafka left behind are opened, served and written the same way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moldau.server.posix_disk import PosixDisk
from moldau.storage.checkpoints import read_offsets
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.recovery import load_log
from tests.unit.storage.helpers import NOW_MS, config, read_all

FACTS = Path(__file__).parents[2] / "data" / "kafka-facts"


def hex_block(lines: list[str], start: int) -> bytes:
    text = ""
    for line in lines[start:]:
        if not line or any(character not in "0123456789abcdef" for character in line):
            break
        text += line
    return bytes.fromhex(text)


def file_of_one_node(name: str) -> bytes:
    lines = (FACTS / "files-of-one-node.txt").read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith(f"-- {name} ("):
            return hex_block(lines, number + 1)
    raise AssertionError(f"{name} is not in the facts")


def file_of_cluster(name: str) -> bytes:
    lines = (FACTS / "files-of-a-cluster.txt").read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith(f"== $DATA/{name} ("):
            if line.endswith("hex"):
                return hex_block(lines, number + 1)
            end = next(index for index in range(number + 1, len(lines)) if lines[index].startswith("== "))
            return ("\n".join(lines[number + 1 : end - 1]) + "\n").encode()
    raise AssertionError(f"{name} is not in the facts")


def folder(tmp_path: Path, files: dict[str, bytes | int]) -> Path:
    """A partition with these files; a number stands for a sparse file of that size."""
    path = tmp_path / "topic-0"
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data if isinstance(data, bytes) else b"")
        if isinstance(data, int):
            os.truncate(path / name, data)
    return path


def load(path: Path, clean: bool = False, recovery_point: int = 0) -> Log:
    directory = LogDirectory(str(path.parent))
    return load_log(
        PosixDisk(),
        directory,
        str(path),
        "topic",
        0,
        config=config(),
        now_ms=NOW_MS,
        recovery_point=recovery_point,
        clean=clean,
    )


def test_a_transactional_log_is_recovered_to_the_bytes_kafka_wrote(tmp_path: Path) -> None:
    base, end = f"{3:020d}", f"{8:020d}"
    path = folder(
        tmp_path,
        {
            f"{base}.log": file_of_one_node(f"disk1/txn-0/{base}.log"),
            f"{base}.index": 10485760,
            f"{base}.timeindex": 10485756,
            "leader-epoch-checkpoint": b"0\n1\n0 3\n",
        },
    )
    log = load(path)
    assert (log.log_start_offset, log.log_end_offset) == (3, 8)
    assert log.aborted_transactions(3, 8) == [(8, 4)]
    assert log.last_stable_offset(8) == 7
    assert [value for _, value in read_all(log)] == [b"abort0", b"abort1", b"open"]
    log.close(NOW_MS)
    assert (path / f"{base}.txnindex").read_bytes() == file_of_one_node(f"disk1/txn-0/{base}.txnindex")
    assert (path / f"{base}.timeindex").read_bytes() == file_of_one_node(f"disk1/txn-0/{base}.timeindex")
    assert (path / f"{end}.snapshot").read_bytes() == file_of_one_node(f"disk1/txn-0/{end}.snapshot")
    assert (path / f"{base}.index").read_bytes() == b""


def test_a_longer_transactional_log_has_the_same_aborted_transactions(tmp_path: Path) -> None:
    base = f"{3:020d}"
    snapshot = file_of_cluster(f"node1/txn-0/{base}.snapshot")
    path = folder(
        tmp_path,
        {f"{base}.log": file_of_cluster(f"node1/txn-0/{base}.log"), f"{base}.snapshot": snapshot},
    )
    log = load(path)
    assert (path / f"{base}.txnindex").read_bytes() == file_of_cluster(f"node1/txn-0/{base}.txnindex")
    log.close(NOW_MS)
    newest = file_of_cluster(f"node3/txn-0/{19:020d}.snapshot")
    assert (path / f"{19:020d}.snapshot").read_bytes() == newest


def test_a_compacted_log_with_emptied_batches_is_served(tmp_path: Path) -> None:
    first, second = f"{0:020d}", f"{6:020d}"
    path = folder(
        tmp_path,
        {
            f"{first}.log": file_of_one_node(f"disk2/clean-0/{first}.log"),
            f"{second}.log": file_of_one_node(f"disk2/clean-0/{second}.log"),
            f"{second}.snapshot": file_of_one_node(f"disk2/clean-0/{second}.snapshot"),
            f"{8:020d}.snapshot": file_of_one_node(f"disk2/clean-0/{8:020d}.snapshot"),
            "leader-epoch-checkpoint": b"0\n1\n0 0\n",
        },
    )
    for clean in (True, False):
        log = load(path, clean, recovery_point=8)
        assert log.log_end_offset == 8
        assert [value for _, value in read_all(log)] == [b"2", b"2", b"3", b"3"]
        assert sorted(log.producers.entries) == [1, 3, 5, 7]
    log = load(path, recovery_point=0)
    log.close(NOW_MS)
    for name in (second, f"{8:020d}"):
        assert (path / f"{name}.snapshot").read_bytes() == file_of_one_node(f"disk2/clean-0/{name}.snapshot")


def test_sparse_indexes_of_a_killed_broker_are_built_anew(tmp_path: Path) -> None:
    name = f"{0:020d}"
    path = folder(
        tmp_path,
        {
            f"{name}.log": file_of_cluster(f"node1/orders-0/{name}.log"),
            f"{name}.index": 10485760,
            f"{name}.timeindex": 10485756,
            "leader-epoch-checkpoint": file_of_cluster("node1/orders-0/leader-epoch-checkpoint"),
            "partition.metadata": file_of_cluster("node1/orders-0/partition.metadata")[:-1],
        },
    )
    log = load(path)
    assert log.log_end_offset == 2
    assert log.topic_id.hex() == "b3444b59c6dc48818b951f2c7f9aef6c"
    log.close(NOW_MS)
    assert (path / f"{name}.index").stat().st_size == 0
    assert (path / f"{name}.timeindex").stat().st_size == 12


@pytest.mark.parametrize(
    ("name", "count"), [("recovery-point-offset-checkpoint", 165), ("log-start-offset-checkpoint", 6)]
)
def test_checkpoints_of_a_real_broker_are_read(tmp_path: Path, name: str, count: int) -> None:
    path = tmp_path / name
    path.write_bytes(file_of_cluster(f"node1/{name}"))
    offsets = read_offsets(PosixDisk(), str(path))
    assert len(offsets) == count
