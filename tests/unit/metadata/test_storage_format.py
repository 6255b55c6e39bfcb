"""`storage format` and its kin: files, lines and errors as Apache Kafka's kafka-storage has them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from moldau.protocol.stored.metadata_records import (
    FeatureLevelRecord,
    UserScramCredentialRecord,
    decode_metadata_record,
)
from moldau.raft.batches import control_records, parse_control
from moldau.raft.snapshots import snapshot_values
from moldau.server import storage_format
from moldau.server.storage_format import FormatError, FormatOptions, format_storage, storage_info
from moldau.sim.kernel.disk import SimDisk
from moldau.storage.meta_properties import read_meta_properties

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
DYNAMIC = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19192",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:19192",
    "log.dirs": "/a",
}
STATIC = {**DYNAMIC, "controller.quorum.voters": "1@127.0.0.1:19192", "log.dirs": "/b"}
del STATIC["controller.quorum.bootstrap.servers"]
NOW_MS = 1794714608000


def run(values: dict[str, str], disk: SimDisk | None = None, **flags: Any) -> tuple[list[str], SimDisk]:
    disk = disk if disk is not None else SimDisk()
    lines = format_storage(values, CLUSTER, disk, FormatOptions(**flags), NOW_MS)
    return lines, disk


def test_a_standalone_controller_gets_identity_bootstrap_and_voters() -> None:
    lines, disk = run(DYNAMIC, standalone=True)
    assert lines[0].startswith(
        "Bootstrap metadata: BootstrapMetadata(records=[ApiMessageAndVersion(FeatureLevelRecord("
        "name='metadata.version', featureLevel=30) at version 0), "
    )
    assert lines[0].endswith("metadataVersionLevel=30, source=format command)")
    assert lines[1:] == ["Formatting dynamic metadata voter directory /a with metadata.version 4.3-IV0."]
    properties = read_meta_properties(disk, "/a")
    assert properties is not None and properties.cluster_id == CLUSTER and properties.node_id == 1
    assert disk.size("/a/bootstrap.checkpoint") == 411
    assert disk.size("/a/meta.properties") == 122
    snapshot = "/a/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
    assert disk.size(snapshot) == 241
    voters = [parse_control(kind, value)[1] for _, kind, value in control_records(disk.read_file(snapshot))]
    voter_set = next(found for found in voters if found is not None)
    voter = voter_set.get(1)
    assert voter is not None and voter.endpoints == (("CONTROLLER", "127.0.0.1", 19192),)
    assert voter.key.directory_id == properties.directory_id


def test_bootstrap_records_are_the_feature_levels_of_the_release() -> None:
    _, disk = run(STATIC)
    values = snapshot_values(disk.read_file("/b/bootstrap.checkpoint"), "b")
    records = [decode_metadata_record(value) for value in values]
    assert records == [
        FeatureLevelRecord("metadata.version", 30),
        FeatureLevelRecord("eligible.leader.replicas.version", 1),
        FeatureLevelRecord("group.version", 1),
        FeatureLevelRecord("share.version", 1),
        FeatureLevelRecord("streams.version", 1),
        FeatureLevelRecord("transaction.version", 2),
    ]
    assert not disk.exists("/b/__cluster_metadata-0")


def test_an_older_release_has_fewer_features() -> None:
    lines, disk = run(DYNAMIC, standalone=True, release_version="3.9-IV0")
    assert lines[-1] == "Formatting dynamic metadata voter directory /a with metadata.version 3.9-IV0."
    assert disk.size("/a/bootstrap.checkpoint") == 249


def test_several_directories_have_ids_of_their_own() -> None:
    lines, disk = run({**DYNAMIC, "log.dirs": "/two1,/two2"}, no_initial_controllers=True)
    assert lines[1:] == [
        "Formatting data directory /two2 with metadata.version 4.3-IV0.",
        "Formatting metadata directory /two1 with metadata.version 4.3-IV0.",
    ]
    first, second = read_meta_properties(disk, "/two1"), read_meta_properties(disk, "/two2")
    assert first is not None and second is not None and first.directory_id != second.directory_id


def test_initial_controllers_name_the_directory() -> None:
    controllers = "1@127.0.0.1:19192:AAAAAAAAAAAAAAAAAAAAAQ"
    _, disk = run(DYNAMIC, initial_controllers=controllers, features=["transaction.version=1"])
    properties = read_meta_properties(disk, "/a")
    assert properties is not None and properties.directory_id == bytes(15) + b"\x01"


def test_a_credential_is_stored_with_the_first_records() -> None:
    lines, disk = run(STATIC, add_scram=["SCRAM-SHA-256=[name=alice,password=alice-secret]"])
    record = decode_metadata_record(snapshot_values(disk.read_file("/b/bootstrap.checkpoint"), "b")[-1])
    assert isinstance(record, UserScramCredentialRecord)
    assert (record.name, record.mechanism, record.iterations, len(record.stored_key)) == ("alice", 1, 4096, 32)
    assert "alice-secret" not in lines[0]


@pytest.mark.parametrize(
    ("values", "flags", "message"),
    [
        (DYNAMIC, {}, "Because controller.quorum.voters is not set on this controller, you must specify one of the following: --standalone, --initial-controllers, or --no-initial-controllers."),  # noqa: E501
        (STATIC, {"standalone": True}, "You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify controller.quorum.bootstrap.servers instead."),  # noqa: E501
        (STATIC, {"release_version": "3.5-IV1", "add_scram": ["SCRAM-SHA-256=[name=alice,password=x]"]}, "SCRAM is only supported in metadata.version 3.5-IV2 or later."),  # noqa: E501
        (STATIC, {"release_version": "9.9"}, "Unknown metadata.version '9.9'. Supported metadata.version are: 3.3-IV3, 3.4-IV0, 3.5-IV0, 3.5-IV1, 3.5-IV2, 3.6-IV0, 3.6-IV1, 3.6-IV2, 3.7-IV0, 3.7-IV1, 3.7-IV2, 3.7-IV3, 3.7-IV4, 3.8-IV0, 3.9-IV0, 4.0-IV0, 4.0-IV1, 4.0-IV2, 4.0-IV3, 4.1-IV0, 4.1-IV1, 4.2-IV0, 4.2-IV1, 4.3-IV0"),  # noqa: E501
    ],
)  # fmt: skip
def test_flags_that_do_not_fit_are_refused(values: dict[str, str], flags: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError) as failure:
        run(values, **flags)
    assert str(failure.value) == message


def test_a_formatted_directory_is_left_alone() -> None:
    _, disk = run(DYNAMIC, standalone=True)
    with pytest.raises(FormatError) as failure:
        run(DYNAMIC, disk, standalone=True)
    assert str(failure.value) == (
        "Log directory /a is already formatted. Use --ignore-formatted to ignore this directory and format the others."
    )
    lines, _ = run(DYNAMIC, disk, standalone=True, ignore_formatted=True)
    assert lines == ["All of the log directories are already formatted."]
    with pytest.raises(FormatError, match=r"Invalid cluster\.id in: /a/meta\.properties\. Expected other, but read Mk"):
        format_storage(DYNAMIC, "other", disk, FormatOptions(standalone=True), NOW_MS)


def test_info_tells_what_is_there_and_what_is_wrong() -> None:
    disk = SimDisk()
    assert storage_info(DYNAMIC, disk) == (["Found problem:", "  /a does not exist"], 1)
    run(DYNAMIC, disk, standalone=True)
    lines, code = storage_info(DYNAMIC, disk)
    assert (lines[:3], code) == (["Found log directory:", "  /a", ""], 0)
    shown = re.sub(r"directory.id=[A-Za-z0-9_-]{22}", "directory.id=X", lines[3])
    assert shown == f"Found metadata: {{cluster.id={CLUSTER}, directory.id=X, node.id=1, version=1}}"


def test_versions_and_dependencies_are_listed() -> None:
    assert storage_format.version_mapping() == [
        "metadata.version=30 (4.3-IV0)", "kraft.version=1", "transaction.version=2", "group.version=1",
        "eligible.leader.replicas.version=1", "share.version=1", "streams.version=1",
    ]  # fmt: skip
    assert storage_format.version_mapping("4.2-IV0")[-2:] == ["share.version=1", "streams.version=0"]
    lines = storage_format.feature_dependencies(["transaction.version=2"])
    assert lines == ["transaction.version=2 has no dependencies."]
    assert len(storage_format.random_uuid()) == 22
