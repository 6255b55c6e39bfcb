"""ACLs, SCRAM users, quotas and delegation tokens through the admin client."""

from __future__ import annotations

import base64

import pytest

from moldau.client.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    Admin,
    PatternType,
    Principal,
    QuotaEntity,
    QuotaFilter,
    ResourceType,
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
)
from moldau.client.errors import ClientError
from moldau.client.wiring import wired
from moldau.protocol.messages import alter_client_quotas_response as quotas
from moldau.protocol.messages import delete_acls_response as removed
from moldau.protocol.messages import describe_acls_response as acls
from moldau.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from moldau.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from moldau.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from moldau.protocol.messages.create_acls_request import CreateAclsRequest
from moldau.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from moldau.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from moldau.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from moldau.protocol.messages.delete_acls_request import DeleteAclsRequest
from moldau.protocol.messages.describe_acls_request import DescribeAclsRequest
from moldau.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from moldau.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from moldau.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from moldau.protocol.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from moldau.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from moldau.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from moldau.protocol.primitives import Message
from tests.unit.client.fake_network import HOME, FakeNetwork, ScriptedBroker, metadata

BINDING = AclBinding(ResourceType.TOPIC, "a", "User:alice", AclOperation.READ)


def set_up() -> tuple[Admin, ScriptedBroker]:
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata({}))
    return Admin("broker:9092", config=wired(network=FakeNetwork({HOME: broker}))), broker


def test_rules_are_described_and_newer_numbers_are_unknown() -> None:
    admin, broker = set_up()

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, DescribeAclsRequest)
        assert (request.resource_type_filter, request.resource_name_filter, request.operation) == (1, None, 1)
        rows = [
            acls.AclDescription(principal="User:alice", host="*", operation=3, permission_type=3),
            acls.AclDescription(principal="User:bob", host="*", operation=99, permission_type=2),
        ]
        resource = acls.DescribeAclsResource(resource_type=2, resource_name="a", pattern_type=3, acls=rows)
        return acls.DescribeAclsResponse(error_message=None, resources=[resource])

    broker.on(DescribeAclsRequest, handle)
    first, second = admin.describe_acls()
    assert first == BINDING
    assert (second.operation, second.permission) == (AclOperation.UNKNOWN, AclPermission.DENY)


def test_each_new_rule_has_its_outcome() -> None:
    admin, broker = set_up()
    other = BINDING._replace(pattern_type=PatternType.PREFIXED)
    results = [AclCreationResult(error_message=None), AclCreationResult(error_code=54, error_message="No Authorizer.")]
    broker.on(CreateAclsRequest, lambda request, version: CreateAclsResponse(results=results))
    found = admin.create_acls([BINDING, other])
    assert found[BINDING].error is None and str(found[other].error) == "No Authorizer."
    results.pop()
    with pytest.raises(ClientError, match="1 of 2"):
        admin.create_acls([BINDING, other])


def test_removed_rules_are_told_for_each_filter() -> None:
    admin, broker = set_up()
    match = removed.DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=2,
        resource_name="a",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    rows = [
        removed.DeleteAclsFilterResult(error_message=None, matching_acls=[match]),
        removed.DeleteAclsFilterResult(error_code=42, error_message="no"),
    ]
    broker.on(DeleteAclsRequest, lambda request, version: removed.DeleteAclsResponse(filter_results=rows))
    all_rules, of_bob = AclFilter(), AclFilter(principal="User:bob")
    found = admin.delete_acls([all_rules, of_bob])
    assert list(found[all_rules].get()) == [BINDING] and found[of_bob].error is not None


@pytest.mark.parametrize(
    "binding",
    [
        BINDING._replace(operation=AclOperation.ANY),
        BINDING._replace(pattern_type=PatternType.MATCH),
        BINDING._replace(resource_name=""),
        BINDING._replace(principal="alice"),
    ],
)
def test_a_rule_that_is_not_definite_is_not_sent(binding: AclBinding) -> None:
    admin, broker = set_up()
    with pytest.raises(ValueError, match="A rule"):
        admin.create_acls([binding])
    assert broker.seen == []


def test_scram_passwords_are_salted_as_the_rfc_says() -> None:
    """The salted password of RFC 7677's example, which comes with 4096 iterations."""
    admin, broker = set_up()
    sent: list[AlterUserScramCredentialsRequest] = []

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, AlterUserScramCredentialsRequest)
        sent.append(request)
        rows = [
            AlterUserScramCredentialsResult(user="user", error_message=None),
            AlterUserScramCredentialsResult(user="old", error_code=91, error_message=None),
        ]
        return AlterUserScramCredentialsResponse(results=rows)

    broker.on(AlterUserScramCredentialsRequest, handle)
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    found = admin.alter_user_scram_credentials([ScramUpsertion("user", "pencil", salt=salt), ScramDeletion("old")])
    (row,) = sent[0].upsertions
    expected = "c4a49510323ab4f952cac1fa99441939e78ea74d6be81ddf7096e87513dc615d"
    assert (row.salt, row.salted_password.hex(), row.iterations) == (salt, expected, 4096)
    assert found["user"].error is None
    assert found["old"].error is not None and found["old"].error.name == "RESOURCE_NOT_FOUND"
    admin.alter_user_scram_credentials([ScramUpsertion("user", "pencil"), ScramUpsertion("old", "pencil")])
    first, second = sent[1].upsertions
    assert first.salt != second.salt and first.salted_password != second.salted_password


def test_scram_credentials_that_make_no_sense_are_not_sent() -> None:
    admin, broker = set_up()
    for wrong in (
        ScramUpsertion("u", ""),
        ScramUpsertion("u", "p", iterations=100),
        ScramUpsertion("u", "p", ScramMechanism.UNKNOWN),
        ScramUpsertion("", "p"),
        ScramUpsertion("u", "p", salt=b""),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            admin.alter_user_scram_credentials([wrong])
    assert broker.seen == []


def test_secrets_are_not_printed() -> None:
    admin, broker = set_up()
    assert "pencil" not in repr(ScramUpsertion("user", "pencil"))
    broker.on(CreateDelegationTokenRequest, lambda request, version: CreateDelegationTokenResponse(hmac=b"pencil"))
    assert "pencil" not in f"{admin.create_delegation_token()!r} {admin.create_delegation_token()}"


def test_scram_users_are_described_one_by_one() -> None:
    admin, broker = set_up()
    rows = [
        DescribeUserScramCredentialsResult(
            user="u", error_message=None, credential_infos=[CredentialInfo(mechanism=2, iterations=8192)]
        ),
        DescribeUserScramCredentialsResult(user="none", error_code=91, error_message=None),
    ]
    broker.on(
        DescribeUserScramCredentialsRequest,
        lambda request, version: DescribeUserScramCredentialsResponse(error_message=None, results=rows),
    )
    found = admin.describe_user_scram_credentials(["u", "none"])
    assert found["u"].get() == [ScramCredential(ScramMechanism.SCRAM_SHA_512, 8192)]
    assert str(found["none"].error) == "User none has no SCRAM credentials."
    assert admin.describe_user_scram_credentials([]) == {}


def test_quotas_are_set_and_taken_away_per_entity() -> None:
    admin, broker = set_up()
    alice, everyone = QuotaEntity.of({"user": "alice", "client-id": None}), QuotaEntity.of({"ip": None})

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, AlterClientQuotasRequest)
        operations = [(item.key, item.value, item.remove) for item in request.entries[0].ops]
        assert operations == [("producer_byte_rate", 5.0, False), ("request_percentage", 0.0, True)]
        entity = [
            quotas.EntityData(entity_type="user", entity_name="alice"),
            quotas.EntityData(entity_type="client-id", entity_name=None),
        ]
        return quotas.AlterClientQuotasResponse(entries=[quotas.EntryData(error_message=None, entity=entity)])

    broker.on(AlterClientQuotasRequest, handle)
    changes: dict[QuotaEntity, dict[str, float | None]]
    changes = {alice: {"producer_byte_rate": 5, "request_percentage": None}, everyone: {"connection_creation_rate": 1}}
    found = admin.alter_client_quotas(changes)
    assert found[alice].error is None and "leaves out" in str(found[everyone].error)


def test_quotas_that_make_no_sense_are_not_sent() -> None:
    admin, broker = set_up()
    entity = QuotaEntity.of({"user": "x"})
    for wrong in (
        {QuotaEntity(()): {"a": 1.0}},
        {QuotaEntity.of({"group": "x"}): {"a": 1.0}},
        {entity: {"a": float("nan")}},
    ):
        with pytest.raises(ValueError, match="quota"):
            admin.alter_client_quotas(wrong)
    for filter_ in (QuotaFilter("user", 0), QuotaFilter("user", 2, "x"), QuotaFilter("user", 7)):
        with pytest.raises(ValueError, match="EXACT"):
            admin.describe_client_quotas([filter_])
    assert broker.seen == []


def test_a_delegation_tokens_life() -> None:
    admin, broker = set_up()

    def create(request: Message, version: int) -> object:
        assert isinstance(request, CreateDelegationTokenRequest)
        assert (request.owner_principal_name, request.renewers[0].principal_name) == ("owner", "renewer")
        return CreateDelegationTokenResponse(
            principal_type="User",
            principal_name="owner",
            token_requester_principal_type="User",
            token_requester_principal_name="me",
            token_id="t",
            hmac=b"h",
            expiry_timestamp_ms=5,
        )

    row = DescribedDelegationToken(principal_type="User", principal_name="owner", token_id="t", hmac=b"h")
    broker.on(CreateDelegationTokenRequest, create)
    broker.on(RenewDelegationTokenRequest, lambda request, version: RenewDelegationTokenResponse(expiry_timestamp_ms=9))
    broker.on(ExpireDelegationTokenRequest, lambda request, version: ExpireDelegationTokenResponse(error_code=66))
    broker.on(DescribeDelegationTokenRequest, lambda request, version: DescribeDelegationTokenResponse(tokens=[row]))
    token = admin.create_delegation_token([Principal("renewer")], owner=Principal("owner"))
    assert (str(token.owner), str(token.requester), token.hmac) == ("User:owner", "User:me", b"h")
    assert admin.renew_delegation_token(token.hmac) == 9
    with pytest.raises(ClientError) as caught:
        admin.expire_delegation_token(token.hmac)
    assert caught.value.name == "DELEGATION_TOKEN_EXPIRED"
    assert [item.token_id for item in admin.describe_delegation_token([Principal("owner")])] == ["t"]
    with pytest.raises(ValueError, match="hmac"):
        admin.renew_delegation_token(b"")
