"""kafka-features: its table and what it says of changes, against a scripted admin client."""

from __future__ import annotations

import pytest

from moldau.cli.kafka import features
from moldau.cli.kafka.frame import guard
from moldau.client.admin.cluster import FeatureMetadata, VersionRange
from moldau.client.errors import error_for
from moldau.client.results import Outcome
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin


def run(admin: FakeAdmin, line: str) -> int:
    words = ["--bootstrap-server", "h:1", *line.split()]
    return guard(lambda: features.main(words, connect=admin.connect))


def test_the_levels_of_features(capsys: pytest.CaptureFixture[str]) -> None:
    supported = {"metadata.version": VersionRange(7, 30), "group.version": VersionRange(0, 1)}
    found = FeatureMetadata({"metadata.version": VersionRange(30, 30)}, 1643, supported)
    assert run(FakeAdmin(describe_features=found), "describe") == 0
    blanks = " " * 16
    assert capsys.readouterr().out.splitlines() == [
        (
            f"Feature: group.version{' ' * 29}SupportedMinVersion: 0{blanks}SupportedMaxVersion: 1{blanks}"
            f"FinalizedVersionLevel: 0{blanks}Epoch: 1643"
        ),
        (
            f"Feature: metadata.version{' ' * 26}SupportedMinVersion: 3.3-IV3{' ' * 10}SupportedMaxVersion: 4.3-IV0"
            f"{' ' * 10}FinalizedVersionLevel: 4.3-IV0{' ' * 10}Epoch: 1643"
        ),
    ]


def test_changes_that_work_and_changes_that_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = error_for(errors.INVALID_UPDATE_VERSION, "No such level.")
    admin = FakeAdmin(
        update_features=lambda updates, validate_only: {
            name: Outcome(error=refusal) if update.level == 99 else Outcome() for name, update in updates.items()
        }
    )
    assert run(admin, "upgrade --feature a=1 --feature b=99") == 1
    assert capsys.readouterr() == (
        "a was upgraded to 1.\nCould not upgrade b to 99. No such level.\n",
        "1 out of 2 operation(s) failed.\n",
    )
    assert run(admin, "downgrade --feature a=1 --unsafe --dry-run") == 0
    assert admin.calls[-1][1] == ({"a": (1, 3)},)
    assert capsys.readouterr().out == "a can be downgraded to 1.\n"
    assert run(admin, "disable --feature a") == 0
    assert capsys.readouterr().out == "a was disabled.\n"


def test_the_levels_of_a_release_need_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeAdmin(), "version-mapping --release-version 3.9-IV0") == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "metadata.version=21 (3.9-IV0)",
        "kraft.version=1",
        "transaction.version=0",
    ]
