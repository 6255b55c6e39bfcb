"""Checkpoint files, partition.metadata and meta.properties: what is written, and what damage does."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.protocol.uuids import uuid_from_text
from moldau.server.posix_disk import PosixDisk
from moldau.storage.checkpoints import DamagedCheckpoint, read_offsets, write_offsets
from moldau.storage.meta_properties import (
    DamagedMetaProperties,
    MetaProperties,
    parse_meta_properties,
    read_meta_properties,
    write_meta_properties,
)
from moldau.storage.partition_metadata import DamagedPartitionMetadata, parse_topic_id, read_topic_id, write_topic_id


def test_offsets_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    path = str(tmp_path / "recovery-point-offset-checkpoint")
    offsets = {("__consumer_offsets", 0): 2, ("clean", 0): 6}
    write_offsets(PosixDisk(), path, offsets)
    assert Path(path).read_bytes() == b"0\n2\n__consumer_offsets 0 2\nclean 0 6\n"
    assert read_offsets(PosixDisk(), path) == offsets


def test_missing_and_empty_files_have_no_entries(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    assert read_offsets(PosixDisk(), str(path)) == {}
    path.write_bytes(b"")
    assert read_offsets(PosixDisk(), str(path)) == {}
    path.write_bytes(b"0\n0\n")
    assert read_offsets(PosixDisk(), str(path)) == {}


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        b"\xff\xfe\x00",
        b"1\n0\n",
        b"0\n2\na 0 1\n",
        b"0\n0\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na x 1\n",
        b"0\n1\na 0 -1\n",
        b"0\n",
    ],
)
def test_a_damaged_checkpoint_says_so(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(data)
    with pytest.raises(DamagedCheckpoint):
        read_offsets(PosixDisk(), str(path))


def test_partition_metadata_has_no_newline_at_its_end(tmp_path: Path) -> None:
    topic_id = uuid_from_text("BzW8Lc6sQDKv_wMwQO1hQg")
    write_topic_id(PosixDisk(), str(tmp_path), topic_id)
    data = (tmp_path / "partition.metadata").read_bytes()
    assert data == b"version: 0\ntopic_id: BzW8Lc6sQDKv_wMwQO1hQg"
    assert len(data) == 43
    assert read_topic_id(PosixDisk(), str(tmp_path)) == topic_id


@pytest.mark.parametrize(
    "data",
    [b"", b"version: 0", b"version: 1\ntopic_id: BzW8Lc6sQDKv_wMwQO1hQg", b"version: 0\ntopic_id: short", bytes(43)],
)
def test_damaged_partition_metadata_says_so(data: bytes) -> None:
    with pytest.raises(DamagedPartitionMetadata):
        parse_topic_id(data, "partition.metadata")


def test_meta_properties_are_read_back(tmp_path: Path) -> None:
    disk = PosixDisk()
    assert read_meta_properties(disk, str(tmp_path)) is None
    properties = MetaProperties("g1tFX2EzQza4123C1x0zcg", 1, uuid_from_text("ALtMucztd-1b-dNFbu_UjA"))
    write_meta_properties(disk, str(tmp_path), properties, "Sun Nov 15 03:31:12 UTC 2026")
    assert (tmp_path / "meta.properties").read_bytes() == (
        b"#\n#Sun Nov 15 03:31:12 UTC 2026\nnode.id=1\ndirectory.id=ALtMucztd-1b-dNFbu_UjA\nversion=1\n"
        b"cluster.id=g1tFX2EzQza4123C1x0zcg\n"
    )
    assert read_meta_properties(disk, str(tmp_path)) == properties


def test_meta_properties_in_any_order_and_without_directory_id() -> None:
    parsed = parse_meta_properties(b"cluster.id=abc\nversion=1\n\nnode.id = 3\n", "meta.properties")
    assert (parsed.cluster_id, parsed.node_id, parsed.directory_id) == ("abc", 3, None)


@pytest.mark.parametrize("data", [b"version=1\nnode.id=1\n", b"version=2\nnode.id=1\ncluster.id=x\n", b"nonsense\n"])
def test_damaged_meta_properties_say_so(data: bytes) -> None:
    with pytest.raises(DamagedMetaProperties):
        parse_meta_properties(data, "meta.properties")
