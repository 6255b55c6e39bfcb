"""Configs, feature levels, quotas, credentials, producer ids: what each verb writes and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.metadata.features import METADATA_VERSION
from moldau.protocol import errors
from moldau.protocol.messages import alter_client_quotas_request as quotas
from moldau.protocol.messages import alter_configs_request as plain
from moldau.protocol.messages import incremental_alter_configs_request as incremental
from moldau.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from moldau.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from moldau.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.protocol.stored.metadata_records import ClearElrRecord, ConfigRecord, FeatureLevelRecord, ProducerIdsRecord
from tests.unit.controller.world import World

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


@pytest.fixture
def w() -> World:
    made = World()
    made.add_brokers(1)
    made.create("t", 1, 1)
    return made


def change(w: World, kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False) -> Any:
    configs = [incremental.AlterableConfig(key, operation, value) for key, operation, value in changes]
    resource = incremental.AlterConfigsResource(kind, name, configs)
    request = incremental.IncrementalAlterConfigsRequest([resource], validate_only)
    return w.run(w.controller.incremental_alter_configs(request, 0)).responses[0]


def test_a_change_of_the_minimum_of_replicas_clears_the_eligible_ones(w: World) -> None:
    """As a real log has it: the config records, then the clear-ELR record of the topic."""
    assert change(w, 2, "t", ("min.insync.replicas", SET, "2"), ("segment.ms", SET, "70000")).error_code == 0
    assert [record for record, _ in w.records] == [
        ConfigRecord(2, "t", "min.insync.replicas", "2"),
        ConfigRecord(2, "t", "segment.ms", "70000"),
        ClearElrRecord("t"),
    ]


def test_deleting_an_unknown_config_succeeds_and_setting_it_fails(w: World) -> None:
    assert change(w, 2, "t", ("no.such.config", DELETE, None)).error_code == 0
    assert w.records == []
    row = change(w, 2, "t", ("no.such.config", SET, "1"))
    assert (row.error_code, row.error_message) == (errors.INVALID_CONFIG, "Unknown topic config name: no.such.config")


def test_lists_can_be_appended_to_and_subtracted_from(w: World) -> None:
    change(w, 2, "t", ("cleanup.policy", APPEND, "compact"))
    assert w.image.config(2, "t")["cleanup.policy"] == "delete,compact"
    change(w, 2, "t", ("cleanup.policy", SUBTRACT, "delete"))
    assert w.image.config(2, "t")["cleanup.policy"] == "compact"
    row = change(w, 2, "t", ("retention.ms", APPEND, "1"))
    assert row.error_message == "Can't APPEND to key retention.ms because its type is not LIST."


@pytest.mark.parametrize(
    ("kind", "name", "key", "value", "code", "message"),
    [
        (2, "nope", "retention.ms", "1", errors.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."),
        (2, "t", "retention.ms", "abc", errors.INVALID_CONFIG, "Invalid value abc for configuration retention.ms: Not a number of type LONG"),  # noqa: E501
        (4, "1", "log.dirs", "/x", errors.INVALID_REQUEST, "Cannot update these configs dynamically: [log.dirs]"),
        (4, "1", "min.insync.replicas", "2", errors.INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),  # noqa: E501
        (32, "g", "consumer.session.timeout.ms", "1", errors.INVALID_CONFIG, "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms"),  # noqa: E501
    ],
)  # fmt: skip
def test_a_change_that_must_not_be_is_refused(
    w: World, kind: int, name: str, key: str, value: str, code: int, message: str
) -> None:
    row = change(w, kind, name, (key, SET, value))
    assert (row.error_code, row.error_message) == (code, message)
    assert w.records == []


def test_the_cluster_wide_minimum_of_replicas_cannot_be_removed(w: World) -> None:
    row = change(w, 4, "", ("min.insync.replicas", DELETE, None))
    assert row.error_message == "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."


def test_the_old_alter_deletes_what_it_does_not_name(w: World) -> None:
    change(w, 2, "t", ("retention.ms", SET, "1"), ("segment.ms", SET, "2"))
    resource = plain.AlterConfigsResource(2, "t", [plain.AlterableConfig("segment.ms", "3")])
    w.run(w.controller.alter_configs(plain.AlterConfigsRequest([resource]), 0))
    assert w.image.config(2, "t") == {"segment.ms": "3"}


def test_validate_only_changes_nothing(w: World) -> None:
    assert change(w, 2, "t", ("retention.ms", SET, "1"), validate_only=True).error_code == 0
    assert w.image.config(2, "t") == {}


def features(w: World, *updates: tuple[str, int, int], version: int = 2, validate_only: bool = False) -> Any:
    keys = [FeatureUpdateKey(name, level, upgrade_type=kind) for name, level, kind in updates]
    request = UpdateFeaturesRequest(60000, keys, validate_only)
    return w.run(w.controller.update_features(request, version, 0))


PREFIX = "The update failed for all features since the following feature had an error: "


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (("metadata.version", 99, 1), "Invalid update version 99 for feature metadata.version. Local controller 1 only supports versions 7-30"),  # noqa: E501
        (("bogus", 1, 1), "Invalid update version 1 for feature bogus. Local controller 1 does not support this feature."),  # noqa: E501
        (("transaction.version", 1, 1), "Invalid update version 1 for feature transaction.version. Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."),  # noqa: E501
    ],
)  # fmt: skip
def test_a_level_that_cannot_be_fails_for_all(w: World, update: tuple[str, int, int], message: str) -> None:
    answer = features(w, update)
    assert (answer.error_code, answer.error_message) == (errors.INVALID_UPDATE_VERSION, PREFIX + message)


def test_kraft_version_cannot_be_lowered(w: World) -> None:
    w.controller.features.kraft_version = 1
    answer = features(w, ("kraft.version", 0, 2))
    text = "Invalid update version 0 for feature kraft.version. Can't downgrade the version of this feature."
    assert answer.error_message == PREFIX + text


def test_a_downgrade_is_written_unless_it_is_only_tried(w: World) -> None:
    assert features(w, ("transaction.version", 1, 2), validate_only=True).error_code == 0
    assert w.image.features["transaction.version"] == 2
    features(w, ("transaction.version", 1, 2))
    assert w.image.features["transaction.version"] == 1


def test_producer_ids_come_in_blocks_of_a_thousand(w: World) -> None:
    epoch = w.image.brokers[1].broker_epoch
    for first in (0, 1000):
        answer = w.run(w.controller.allocate_producer_ids(AllocateProducerIdsRequest(1, epoch), 0))
        assert (answer.producer_id_start, answer.producer_id_len) == (first, 1000)
        assert w.records == [(ProducerIdsRecord(1, epoch, first + 1000), 0)]


def test_quotas_are_set_removed_and_checked(w: World) -> None:
    def alter(key: str, value: float, remove: bool = False, kind: str = "user") -> Any:
        entry = quotas.EntryData([quotas.EntityData(kind, "alice")], [quotas.OpData(key, value, remove)])
        return w.run(w.controller.alter_client_quotas(quotas.AlterClientQuotasRequest([entry]), 0)).entries[0]

    assert alter("producer_byte_rate", 1024.0).error_code == 0
    assert w.image.client_quotas == {(("user", "alice"),): {"producer_byte_rate": 1024.0}}
    assert alter("producer_byte_rate", 0, remove=True).error_code == 0
    assert w.image.client_quotas == {}
    assert alter("nonsense", 1.0).error_code == errors.INVALID_REQUEST
    assert alter("producer_byte_rate", 1.0, kind="planet").error_code == errors.INVALID_REQUEST


def test_scram_credentials_are_stored_without_the_password(w: World) -> None:
    def alter(*upsertions: ScramCredentialUpsertion, deletions: tuple[ScramCredentialDeletion, ...] = ()) -> list[int]:
        request = AlterUserScramCredentialsRequest(list(deletions), list(upsertions))
        rows = w.run(w.controller.alter_user_scram_credentials(request, 0)).results
        return [row.error_code for row in rows]

    good = ScramCredentialUpsertion("alice", 1, 4096, b"salt", b"salted")
    assert alter(good) == [0]
    assert w.image.scram[1, "alice"].iterations == 4096
    assert alter(good, ScramCredentialUpsertion("alice", 2, 4096, b"s", b"p")) == [errors.DUPLICATE_RESOURCE]
    assert alter(ScramCredentialUpsertion("bob", 1, 10, b"s", b"p")) == [errors.UNACCEPTABLE_CREDENTIAL]
    assert alter(deletions=(ScramCredentialDeletion("bob", 1),)) == [errors.RESOURCE_NOT_FOUND]
    assert alter(deletions=(ScramCredentialDeletion("alice", 1),)) == [0]
    assert w.image.scram == {}


def test_credentials_need_a_metadata_version_that_knows_them(w: World) -> None:
    """3.5-IV2 is the first one."""
    good = ScramCredentialUpsertion("alice", 1, 4096, b"salt", b"salted")
    gone = ScramCredentialDeletion("bob", 1)
    for level, expected in ((10, errors.UNSUPPORTED_VERSION), (11, errors.NONE)):
        w.commit([(FeatureLevelRecord(METADATA_VERSION, level), 0)])
        request = AlterUserScramCredentialsRequest([], [good])
        (row,) = w.run(w.controller.alter_user_scram_credentials(request, 0)).results
        assert row.error_code == expected and ((1, "alice") in w.image.scram) is (expected == errors.NONE)
    w.commit([(FeatureLevelRecord(METADATA_VERSION, 10), 0)])
    request = AlterUserScramCredentialsRequest([gone], [good, good])
    rows = w.run(w.controller.alter_user_scram_credentials(request, 0)).results
    assert [(row.user, row.error_code, row.error_message) for row in rows] == [
        ("bob", errors.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM"),
        (
            "alice",
            errors.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        ),
    ]


def test_an_entry_that_went_can_come_again_also_after_a_failover(w: World) -> None:
    """What there is already is known by what it says, whoever was the active controller when it came."""
    creation = AclCreation(2, "t", 3, "User:bob", "*", 3, 3)
    wanted = DeleteAclsFilter(2, "t", 3, None, None, 1, 1)
    for _ in range(3):
        w.run(w.controller.create_acls(CreateAclsRequest([creation, creation]), 0))
        w.fail_over()
        w.run(w.controller.create_acls(CreateAclsRequest([creation]), 0))
        assert len(w.image.acls) == 1
        w.run(w.controller.delete_acls(DeleteAclsRequest([wanted]), 0))
        assert len(w.image.acls) == 0


def test_access_control_entries_are_stored_once_and_deleted_by_filter(w: World) -> None:
    creation = AclCreation(2, "t", 3, "User:bob", "*", 3, 3)
    for expected in (1, 1):
        w.run(w.controller.create_acls(CreateAclsRequest([creation]), 0))
        assert len(w.image.acls) == expected
    wanted = DeleteAclsFilter(2, "t", 3, None, None, 1, 1)
    answer = w.run(w.controller.delete_acls(DeleteAclsRequest([wanted]), 0))
    assert [acl.principal for acl in answer.filter_results[0].matching_acls] == ["User:bob"]
    assert len(w.image.acls) == 0
