"""kafka-metadata-quorum: the two forms of describe, and who gets and loses a vote."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from moldau.cli.kafka.metadata_quorum import replication_lines, status_lines
from moldau.cli.kafka.metadata_quorum_voters import add_controller, remove_controller
from moldau.cli.kafka.options import JavaFailure
from moldau.client.admin.quorum import QuorumInfo, QuorumReplica, RaftEndpoint
from tests.unit.cli.kafka.fakes import FakeAdmin

FIRST, SECOND = bytes(15) + b"\1", bytes(16)
QUORUM = QuorumInfo(
    2,
    5,
    99,
    [QuorumReplica(1, SECOND, -1, None, None), QuorumReplica(2, FIRST, 100, 5000, 5000)],
    [],
    {2: [RaftEndpoint("CONTROLLER", "h", 9093)]},
)


def test_status_shows_the_lag_of_the_slowest_voter() -> None:
    lines = status_lines("cluster", QUORUM)
    assert lines == [
        "ClusterId:              cluster",
        "LeaderId:               2",
        "LeaderEpoch:            5",
        "HighWatermark:          99",
        "MaxFollowerLag:         101",
        "MaxFollowerLagTimeMs:   -1",
        (
            'CurrentVoters:          [{"id": 1}, {"id": 2, "directoryId": "AAAAAAAAAAAAAAAAAAAAAQ", '
            '"endpoints": ["CONTROLLER://h:9093"]}]'
        ),
        "CurrentObservers:       []",
    ]


def test_replication_shows_the_leader_first_in_columns() -> None:
    assert replication_lines(QUORUM, 5009)[1:] == [
        "2     \tAAAAAAAAAAAAAAAAAAAAAQ\t100         \t0  \t9 ms ago          \t9 ms ago             \tLeader  \t",
        "1     \tAAAAAAAAAAAAAAAAAAAAAA\t-1          \t101\t-1                \t-1                   \tFollower\t",
    ]


def options(**given: object) -> SimpleNamespace:
    return SimpleNamespace(**{"dry_run": False, "command_config": None, **given})


def controller_file(folder: Path, **changed: str) -> str:
    settings = {
        "node.id": "4",
        "process.roles": "controller",
        "log.dirs": str(folder),
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://:9093",
    }
    text = "".join(f"{name}={value}\n" for name, value in {**settings, **changed}.items())
    (folder / "controller.properties").write_text(text)
    (folder / "meta.properties").write_text("directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n")
    return str(folder / "controller.properties")


def test_a_controller_is_added_with_what_its_own_file_says(tmp_path: Path) -> None:
    admin = FakeAdmin(add_raft_voter=None)
    shown = add_controller(admin, options(command_config=controller_file(tmp_path)))
    assert shown == (
        "Added controller 4 with directory id AAAAAAAAAAAAAAAAAAAAAQ and endpoints: CONTROLLER://localhost:9093"
    )
    assert [call[1] for call in admin.calls] == [(4, FIRST, [RaftEndpoint("CONTROLLER", "localhost", 9093)])]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"node.id": "-1"},
            "node.id was negative in configuration file. Is this a valid controller configuration file?",
        ),
        ({"process.roles": "broker"}, "process.roles did not contain 'controller' in configuration file."),
        ({"controller.listener.names": "OTHER"}, "Cannot find information about controller listener name: OTHER"),
        ({"log.dirs": "/nowhere"}, "Unable to read meta.properties from /nowhere"),
    ],
)
def test_a_file_that_is_not_of_a_controller_is_refused(tmp_path: Path, changed: dict[str, str], sentence: str) -> None:
    with pytest.raises(JavaFailure) as failure:
        add_controller(FakeAdmin(), options(command_config=controller_file(tmp_path, **changed)))
    assert str(failure.value.message).startswith(sentence)


def test_a_controller_is_removed_by_its_id_and_that_of_its_directory() -> None:
    admin = FakeAdmin(remove_raft_voter=None)
    wanted = {"controller_id": 4, "controller_directory_id": "AAAAAAAAAAAAAAAAAAAAAQ"}
    shown = remove_controller(admin, options(**wanted))
    assert shown == "Removed  KRaft controller 4 with directory id AAAAAAAAAAAAAAAAAAAAAQ"
    assert [call[1] for call in admin.calls] == [(4, FIRST)]
    assert remove_controller(FakeAdmin(), options(**wanted, dry_run=True)).startswith("DRY RUN of removing  KRaft")
    with pytest.raises(JavaFailure, match=r"^Invalid negative --controller-id: -4$"):
        remove_controller(FakeAdmin(), options(controller_id=-4, controller_directory_id="x"))
