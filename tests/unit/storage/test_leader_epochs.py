"""Leader epochs: what may follow what, where an epoch ended, cuts at both ends, the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.server.posix_disk import PosixDisk
from moldau.storage.checkpoints import DamagedCheckpoint
from moldau.storage.leader_epochs import LeaderEpochs


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    return LeaderEpochs(PosixDisk(), str(tmp_path))


def filled(epochs: LeaderEpochs) -> LeaderEpochs:
    for epoch, offset in ((2, 0), (4, 10), (7, 30)):
        epochs.assign(epoch, offset)
    return epochs


def write_synced(epochs: LeaderEpochs) -> None:
    epochs.write()
    epochs.on_synced(epochs.changes)


def test_each_epoch_is_noted_once_and_written(epochs: LeaderEpochs, tmp_path: Path) -> None:
    assert epochs.assign(1, 0)
    assert not epochs.assign(1, 5)
    assert epochs.assign(2, 2092)
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n1 0\n2 2092\n"
    assert (epochs.latest_epoch, epochs.previous_epoch()) == (2, 1)
    again = LeaderEpochs(PosixDisk(), str(tmp_path))
    again.load((tmp_path / "leader-epoch-checkpoint").read_bytes())
    assert again.entries() == [(1, 0), (2, 2092)]


def test_a_new_epoch_of_an_empty_log_replaces_the_old_one(epochs: LeaderEpochs) -> None:
    epochs.assign(0, 0)
    epochs.assign(2, 0)
    assert epochs.entries() == [(2, 0)]


def test_entries_that_contradict_a_new_one_go(epochs: LeaderEpochs) -> None:
    filled(epochs).assign(5, 8)
    assert epochs.entries() == [(2, 0), (5, 8)]


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, (-1, -1)), (1, (1, 0)), (2, (2, 10)), (3, (2, 10)), (4, (4, 30)), (6, (4, 30)), (7, (7, 99)), (8, (-1, -1))],
)
def test_the_end_of_an_epoch_is_the_start_of_the_next(
    epochs: LeaderEpochs, epoch: int, expected: tuple[int, int]
) -> None:
    assert filled(epochs).end_offset_for_epoch(epoch, 99) == expected


def test_nothing_is_said_about_epochs_of_an_empty_cache(epochs: LeaderEpochs) -> None:
    assert epochs.end_offset_for_epoch(3, 99) == (-1, -1)
    assert epochs.epoch_for_offset(0) == -1


def test_the_epoch_of_an_offset(epochs: LeaderEpochs) -> None:
    filled(epochs)
    assert [epochs.epoch_for_offset(offset) for offset in (0, 9, 10, 29, 30, 1000)] == [2, 2, 4, 4, 7, 7]


def test_cutting_the_end_drops_epochs_that_start_there(epochs: LeaderEpochs, tmp_path: Path) -> None:
    filled(epochs).truncate_from_end(30)
    assert epochs.entries() == [(2, 0), (4, 10)]
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n2 0\n4 10\n"
    epochs.truncate_from_end(0)
    assert epochs.entries() == []
    assert epochs.latest_epoch == -1


def test_cutting_the_start_moves_the_epoch_that_covers_it(epochs: LeaderEpochs) -> None:
    filled(epochs).truncate_from_start(12)
    assert epochs.entries() == [(4, 12), (7, 30)]
    epochs.truncate_from_start(30)
    assert epochs.entries() == [(7, 30)]
    epochs.truncate_from_start(50)
    assert epochs.entries() == [(7, 50)]


@pytest.mark.parametrize("data", [b"x", b"0\n1\n1\n", b"0\n2\n2 0\n1 5\n", b"0\n1\n-1 0\n", b"0\n1\n1 2 3\n"])
def test_a_damaged_file_says_so(epochs: LeaderEpochs, data: bytes) -> None:
    with pytest.raises(DamagedCheckpoint):
        epochs.load(data)


def test_a_change_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    epochs = LeaderEpochs(PosixDisk(), str(tmp_path / "missing"))
    epochs.assign(1, 0)
    assert epochs.unsynced
    (tmp_path / "missing").mkdir()
    write_synced(epochs)
    assert not epochs.unsynced
    assert (tmp_path / "missing" / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n1 0\n"


# Epochs that begin without records stay in memory


def file_of(tmp_path: Path) -> bytes:
    return (tmp_path / "leader-epoch-checkpoint").read_bytes()


def saved(epochs: LeaderEpochs) -> LeaderEpochs:
    """Epoch 2 from offset 0 on, durable."""
    epochs.assign(2, 0)
    write_synced(epochs)
    return epochs


def test_the_first_epoch_of_a_log_makes_its_file(epochs: LeaderEpochs, tmp_path: Path) -> None:
    epochs.begin(0, 0)
    assert file_of(tmp_path) == b"0\n1\n0 0\n"
    assert epochs.needs_sync(0)


def test_an_epoch_that_begins_is_known_and_not_written(epochs: LeaderEpochs, tmp_path: Path) -> None:
    saved(epochs).begin(3, 10)
    assert epochs.entries() == [(2, 0), (3, 10)] and epochs.latest_epoch == 3
    assert file_of(tmp_path) == b"0\n1\n2 0\n"
    assert not epochs.needs_sync(10), "there is nothing of it that could be lost"


def test_its_first_record_makes_the_file_wanted(epochs: LeaderEpochs, tmp_path: Path) -> None:
    saved(epochs).begin(3, 10)
    assert not epochs.assign(3, 10), "an append in the epoch that began changes nothing"
    assert epochs.needs_sync(11)
    write_synced(epochs)
    assert not epochs.needs_sync(11)
    assert file_of(tmp_path) == b"0\n2\n2 0\n3 10\n"


def test_epochs_that_follow_each_other_without_records_leave_one(epochs: LeaderEpochs) -> None:
    saved(epochs).begin(3, 10)
    epochs.begin(4, 10)
    epochs.begin(6, 10)
    assert epochs.entries() == [(2, 0), (6, 10)]
    assert not epochs.needs_sync(10)


def test_an_epoch_with_records_is_still_wanted_when_the_next_begins(epochs: LeaderEpochs, tmp_path: Path) -> None:
    saved(epochs).begin(3, 10)
    epochs.begin(4, 15)
    assert epochs.entries() == [(2, 0), (3, 10), (4, 15)]
    assert epochs.needs_sync(15), "epoch 3 wrote offsets 10 to 14"
    write_synced(epochs)
    assert file_of(tmp_path) == b"0\n3\n2 0\n3 10\n4 15\n"


def test_what_changes_while_the_file_is_synced_stays_unsynced(epochs: LeaderEpochs) -> None:
    epochs.assign(1, 0)
    before = epochs.changes
    epochs.assign(2, 5)
    epochs.on_synced(before)
    assert epochs.unsynced
    epochs.on_synced(epochs.changes)
    assert not epochs.unsynced


def test_what_was_unsynced_before_stays_so(epochs: LeaderEpochs) -> None:
    epochs.assign(2, 0)
    epochs.begin(3, 10)
    assert epochs.needs_sync(10)


def test_an_epoch_that_began_is_no_longer_wanted_after_a_cut(epochs: LeaderEpochs, tmp_path: Path) -> None:
    saved(epochs).begin(3, 10)
    epochs.truncate_from_end(8)
    assert epochs.entries() == [(2, 0)]
    write_synced(epochs)
    assert not epochs.needs_sync(8)
    assert file_of(tmp_path) == b"0\n1\n2 0\n"


def test_epochs_without_records_are_dropped_when_a_log_is_loaded(epochs: LeaderEpochs, tmp_path: Path) -> None:
    epochs.load(b"0\n3\n2 0\n3 10\n4 15\n")
    epochs.drop_empty(15)
    assert epochs.entries() == [(2, 0), (3, 10)] and epochs.latest_epoch == 3
    epochs.drop_empty(0)
    assert epochs.entries() == [] and epochs.latest_epoch == -1
    assert not epochs.needs_sync(0)


def test_an_epoch_of_the_file_without_records_gives_way_to_the_next(epochs: LeaderEpochs, tmp_path: Path) -> None:
    write_synced(filled(epochs))
    again = LeaderEpochs(PosixDisk(), str(tmp_path))
    again.load(file_of(tmp_path))
    again.drop_empty(30)
    again.begin(9, 30)
    assert again.entries() == [(2, 0), (4, 10), (9, 30)]
    write_synced(again)
    assert file_of(tmp_path) == b"0\n3\n2 0\n4 10\n9 30\n"
