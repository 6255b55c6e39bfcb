"""`moldau log verify` finds each kind of damage in a data directory that a node wrote, and nothing in a whole one."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from crc32c import crc32c

from moldau.cli.root import root
from moldau.protocol.stored.metadata_records import FeatureLevelRecord, encode_metadata_record
from moldau.raft.snapshots import snapshot_bytes, snapshot_values
from moldau.records.builder import BatchBuilder, end_transaction_batch
from moldau.storage.producer_snapshots import CRC_END, decode_snapshot
from moldau.storage.txn_index import AbortedTransaction

FIRST = "00000000000000000000"
TIME = 1_700_000_000_000


@pytest.fixture
def data(written: Path, tmp_path: Path) -> Path:
    target = tmp_path / "data"
    for path in sorted(written.rglob("*")):
        there = target / path.relative_to(written)
        there.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            there.mkdir(exist_ok=True)
        else:
            there.write_bytes(path.read_bytes())
    return target


def findings(data: Path) -> tuple[int, list[tuple[str, str, str]]]:
    result = CliRunner().invoke(root, ["log", "verify", str(data), "--format", "json"])
    answer = json.loads(result.stdout)
    found = [
        (str(Path(each["path"]).relative_to(data)), each["severity"], each["message"]) for each in answer["findings"]
    ]
    assert answer["ok"] is (result.exit_code == 0)
    return result.exit_code, found


def test_a_directory_after_a_clean_stop_has_no_findings(data: Path) -> None:
    assert findings(data) == (0, [])
    snapshots = list((data / "__cluster_metadata-0").glob("*.checkpoint"))
    assert len(snapshots) > 1, "there is nothing to compare with the metadata log"
    assert len(list((data / "orders-0").glob("*.log"))) > 1


# Each damage: what is done to the directory, then file, severity and words of what must be found.


def last_log(data: Path) -> Path:
    return sorted((data / "orders-0").glob("*.log"))[-1]


def last_snapshot(data: Path) -> Path:
    return sorted((data / "orders-0").glob("*.snapshot"))[-1]


def metadata_snapshot(data: Path, which: int = -1) -> Path:
    return [path for path in sorted((data / "__cluster_metadata-0").glob("*.checkpoint")) if path.name[:20] != FIRST][
        which
    ]


def torn_tail(data: Path) -> str:
    path = last_log(data)
    path.write_bytes(path.read_bytes() + path.read_bytes()[:100])
    return str(path.relative_to(data))


def flip(data: Path, position: int) -> str:
    path = data / "orders-0" / f"{FIRST}.log"
    content = bytearray(path.read_bytes())
    content[position] ^= 16
    path.write_bytes(bytes(content))
    return f"orders-0/{FIRST}.log"


def flipped_bit_in_a_record(data: Path) -> str:
    return flip(data, 5000)


def flipped_bit_in_an_offset(data: Path) -> str:
    """The checksum does not cover it."""
    return flip(data, 6)


def index_out_of_order(data: Path) -> str:
    path = data / "orders-0" / f"{FIRST}.index"
    content = path.read_bytes()
    assert len(content) >= 16
    path.write_bytes(content[8:16] + content[:8] + content[16:])
    return f"orders-0/{FIRST}.index"


def index_that_points_astray(data: Path) -> str:
    path = data / "orders-0" / f"{FIRST}.index"
    offset, position = struct.unpack(">ii", path.read_bytes()[:8])
    path.write_bytes(struct.pack(">ii", offset, position + 1) + path.read_bytes()[8:])
    return f"orders-0/{FIRST}.index"


def time_index_out_of_order(data: Path) -> str:
    path = data / "orders-0" / f"{FIRST}.timeindex"
    content = path.read_bytes()
    assert len(content) >= 24
    path.write_bytes(content[12:24] + content[:12] + content[24:])
    return f"orders-0/{FIRST}.timeindex"


def missing_index(data: Path) -> str:
    (data / "orders-0" / f"{FIRST}.index").unlink()
    return f"orders-0/{FIRST}.index"


def missing_snapshot(data: Path) -> str:
    path = last_snapshot(data)
    path.unlink()
    return str(path.relative_to(data))


def damaged_snapshot(data: Path) -> str:
    path = last_snapshot(data)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    return str(path.relative_to(data))


def snapshot_of_other_producers(data: Path) -> str:
    """Whole, and still not what the log says: the broker would refuse the producer's next batch."""
    path = last_snapshot(data)
    content = path.read_bytes()
    (entry,) = decode_snapshot(content, path.name)
    batch = entry.batches[-1]
    known = struct.pack(">iq", batch.last_sequence, batch.last_offset)
    body = content[CRC_END:].replace(known, struct.pack(">iq", batch.last_sequence - 1, batch.last_offset - 1))
    path.write_bytes(content[:2] + struct.pack(">I", crc32c(body)) + body)
    return str(path.relative_to(data))


def partition_metadata_of_another_topic(data: Path) -> str:
    (data / "orders-0" / "partition.metadata").write_bytes((data / "payments-0" / "partition.metadata").read_bytes())
    return "orders-0/partition.metadata"


def garbage_partition_metadata(data: Path) -> str:
    (data / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: what\n")
    return "orders-0/partition.metadata"


def unknown_topic(data: Path) -> str:
    folder = data / "strange-0"
    folder.mkdir()
    for path in (data / "payments-1").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AR9q14ED9XEw7GCLqVZieQ")
    return "strange-0"


def missing_partition(data: Path) -> str:
    folder = data / "payments-1"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (data / name).write_text("0\n0\n")
    return "payments-1"


def garbage_checkpoint(name: str) -> Callable[[Path], str]:
    def damage(data: Path) -> str:
        (data / name).write_text("0\n3\norders 0\n")
        return name

    damage.__name__ = f"garbage_{name}"
    return damage


def checkpoint_behind_the_end(data: Path) -> str:
    (data / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 61\n")
    return "recovery-point-offset-checkpoint"


def epochs_out_of_order(data: Path) -> str:
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n3 0\n2 10\n")
    return "orders-0/leader-epoch-checkpoint"


def epochs_that_contradict_the_log(data: Path) -> str:
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 5\n")
    return "orders-0/leader-epoch-checkpoint"


def torn_transaction_index(data: Path) -> str:
    (data / "orders-0" / f"{FIRST}.txnindex").write_bytes(b"\x00" * 33)
    return f"orders-0/{FIRST}.txnindex"


def snapshot_that_contradicts_the_metadata_log(data: Path) -> str:
    path = metadata_snapshot(data)
    values = snapshot_values(path.read_bytes(), path.name)
    values.append(encode_metadata_record(FeatureLevelRecord("group.version", 0), 0))
    path.chmod(0o600)
    path.write_bytes(snapshot_bytes(values, int(path.name[21:31]), TIME, 0, None, TIME))
    return str(path.relative_to(data))


def snapshot_of_another_epoch(data: Path) -> str:
    path = metadata_snapshot(data)
    other = path.with_name(f"{path.name[:20]}-0000000099.checkpoint")
    path.rename(other)
    return str(other.relative_to(data))


def snapshot_without_its_end(data: Path) -> str:
    path = metadata_snapshot(data)
    content = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(content[: len(content) - 60])
    return str(path.relative_to(data))


def metadata_log_that_begins_too_late(data: Path) -> str:
    folder = data / "__cluster_metadata-0"
    for path in [*folder.glob("*.checkpoint"), *folder.glob(f"{FIRST}.*")]:
        path.unlink()
    builder = BatchBuilder(5000)
    builder.append(TIME, None, encode_metadata_record(FeatureLevelRecord("metadata.version", 30), 0))
    (folder / "00000000000000005000.log").write_bytes(builder.build(partition_leader_epoch=1))
    return "__cluster_metadata-0"


def garbage_quorum_state(data: Path) -> str:
    (data / "__cluster_metadata-0" / "quorum-state").write_text('{"leaderId":')
    return "__cluster_metadata-0/quorum-state"


def quorum_state_of_the_past(data: Path) -> str:
    path = data / "__cluster_metadata-0" / "quorum-state"
    path.write_text(json.dumps({**json.loads(path.read_text()), "leaderEpoch": 0}))
    return "__cluster_metadata-0/quorum-state"


def missing_quorum_state(data: Path) -> str:
    (data / "__cluster_metadata-0" / "quorum-state").unlink()
    return "__cluster_metadata-0/quorum-state"


def garbage_identity(data: Path) -> str:
    (data / "meta.properties").write_text("version=1\n")
    return "meta.properties"


def damaged_bootstrap(data: Path) -> str:
    path = data / "bootstrap.checkpoint"
    path.write_bytes(path.read_bytes()[:-3])
    return "bootstrap.checkpoint"


DAMAGES: list[tuple[Callable[[Path], str], str, str]] = [
    (torn_tail, "error", "are no whole batch"),
    (flipped_bit_in_a_record, "error", "wrong checksum"),
    (flipped_bit_in_an_offset, "error", "should start at"),
    (index_out_of_order, "error", "comes after that for"),
    (index_that_points_astray, "error", "where no batch starts"),
    (time_index_out_of_order, "error", "comes after that for"),
    (missing_index, "warning", "a start builds it from the log"),
    (missing_snapshot, "warning", "missing although 1 producers wrote"),
    (damaged_snapshot, "error", "wrong checksum"),
    (snapshot_of_other_producers, "error", "the log has offset 59 with sequence 59"),
    (partition_metadata_of_another_topic, "error", "a start renames the directory to -stray"),
    (garbage_partition_metadata, "error", "is not 'version: N' and 'topic_id: ID'"),
    (unknown_topic, "error", "the metadata does not know"),
    (missing_partition, "error", "the metadata says that the partition is in this directory"),
    (garbage_checkpoint("recovery-point-offset-checkpoint"), "error", "promises 3 entries"),
    (garbage_checkpoint("replication-offset-checkpoint"), "error", "promises 3 entries"),
    (garbage_checkpoint("log-start-offset-checkpoint"), "error", "promises 3 entries"),
    (garbage_checkpoint("cleaner-offset-checkpoint"), "error", "promises 3 entries"),
    (checkpoint_behind_the_end, "error", "its log ends at 60"),
    (epochs_out_of_order, "error", "comes after epoch"),
    (epochs_that_contradict_the_log, "error", "which it lets end at 5"),
    (torn_transaction_index, "error", "not a multiple of"),
    (snapshot_that_contradicts_the_metadata_log, "error", "contradicts the log"),
    (snapshot_of_another_epoch, "error", "is of epoch 99, the log has epoch"),
    (snapshot_without_its_end, "error", "it is not complete"),
    (metadata_log_that_begins_too_late, "error", "what lies between is missing"),
    (garbage_quorum_state, "error", "cannot be read"),
    (quorum_state_of_the_past, "error", "is of epoch 0, the log has records of epoch"),
    (missing_quorum_state, "error", "may vote twice"),
    (garbage_identity, "error", "has no cluster.id"),
    (damaged_bootstrap, "error", "no whole batch"),
]


@pytest.mark.parametrize("damage, severity, words", DAMAGES, ids=[each[0].__name__ for each in DAMAGES])
def test_each_kind_of_damage_is_found_where_it_is(
    data: Path, damage: Callable[[Path], str], severity: str, words: str
) -> None:
    where = damage(data)
    code, found = findings(data)
    assert code == (1 if severity == "error" else 0)
    assert [each for each in found if each[0] == where and each[1] == severity and words in each[2]], found
    # Damage is not blamed on files that have nothing to do with it.
    elsewhere = {each[0].partition("/")[0] for each in found} - {where.partition("/")[0]}
    assert elsewhere <= {"recovery-point-offset-checkpoint", "replication-offset-checkpoint"} or "metadata" in where


def test_epochs_of_deleted_records_are_forgotten(data: Path) -> None:
    """The log starts at 20, its first segment and the epoch file's first entry do not agree on less."""
    (data / "log-start-offset-checkpoint").write_text("0\n1\norders 0 20\n")
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 20\n")
    assert findings(data) == (0, [])
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 21\n")
    assert "offsets 20 to 59 are of epoch 0, which it lets start at 21" in findings(data)[1][0][2]


def test_after_a_crash_small_files_that_lag_are_no_error(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    last_snapshot(data).unlink()
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n0\n")
    code, found = findings(data)
    assert code == 0
    assert [each[:2] for each in found] == [("orders-0/leader-epoch-checkpoint", "warning")]


# Transactions, in a folder of one partition that is made by hand.


def transactional_batch(base_offset: int, sequence: int) -> bytes:
    builder = BatchBuilder(base_offset)
    builder.append(TIME, b"k", b"v")
    builder.append(TIME, b"k", b"v")
    return builder.build(
        producer_id=9, producer_epoch=0, base_sequence=sequence, partition_leader_epoch=0, transactional=True
    )


@pytest.fixture
def transactions(tmp_path: Path) -> Path:
    """Offsets 0 and 1 aborted by the marker at 2, 3 and 4 committed at 5."""
    folder = tmp_path / "paid-0"
    folder.mkdir()
    log = transactional_batch(0, 0) + end_transaction_batch(2, 0, TIME, 9, 0, False, 1)
    log += transactional_batch(3, 2) + end_transaction_batch(5, 0, TIME, 9, 0, True, 1)
    (folder / f"{FIRST}.log").write_bytes(log)
    (folder / f"{FIRST}.index").write_bytes(b"")
    (folder / f"{FIRST}.timeindex").write_bytes(b"")
    (folder / f"{FIRST}.txnindex").write_bytes(AbortedTransaction(9, 0, 2, 3).encode())
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AR9q14ED9XEw7GCLqVZieQ")
    return folder


@pytest.mark.parametrize(
    "entries, words",
    [
        ([], "does not name the transaction of producer 9 from 0, aborted at 2"),
        ([AbortedTransaction(9, 0, 2, 3), AbortedTransaction(9, 3, 4, 4)], "where the log has records of one"),
        ([AbortedTransaction(9, 0, 2, 900)], "whose offsets make no sense"),
        ([AbortedTransaction(9, 0, 2, 3), AbortedTransaction(9, 6, 70, 6)], "is not in its segment"),
    ],
)
def test_a_transaction_index_is_held_against_the_markers(
    transactions: Path, entries: list[AbortedTransaction], words: str
) -> None:
    assert findings(transactions) == (0, [])
    path = transactions / f"{FIRST}.txnindex"
    path.write_bytes(b"".join(entry.encode() for entry in entries))
    code, found = findings(transactions)
    assert code == 1 and {each[0] for each in found} == {path.name}
    assert any(words in each[2] for each in found), found


def test_a_missing_transaction_index_is_missed(transactions: Path) -> None:
    (transactions / f"{FIRST}.txnindex").unlink()
    assert "does not name the transaction" in findings(transactions)[1][0][2]
