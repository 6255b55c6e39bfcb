"""Quotas, SCRAM users and access control entries as clients ask for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from moldau.api import acls, quotas, scram
from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.controller.security import scram_record
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.node.context import ClientContext
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import create_acls_request as creating
from moldau.protocol.messages import delete_acls_request as deleting
from moldau.protocol.messages.describe_acls_request import DescribeAclsRequest
from moldau.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from moldau.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from moldau.protocol.primitives import Message
from moldau.protocol.stored import metadata_records as r
from tests.unit.controller.world import World
from tests.unit.node.world import NodeWorld

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPIC, CLUSTER = 2, 4
READ, WRITE, ALLOW = 3, 4, 3


def image_of(*records: Message) -> MetadataImage:
    delta = MetadataDelta(MetadataImage())
    for record in records:
        delta.replay(record)
    return delta.apply(0, 0, 0)


# Quotas


def quota(value: float, **entity: str | None) -> r.ClientQuotaRecord:
    parts = [r.EntityData(kind.replace("_", "-"), name) for kind, name in entity.items()]
    return r.ClientQuotaRecord(parts, "producer_byte_rate", value, False)


QUOTAS = (
    quota(1, user="alice"),
    quota(2, user="alice", client_id="app"),
    quota(3, user=None),
    quota(4, client_id="app"),
    quota(5, user="bob", client_id=None),
    quota(6, ip="127.0.0.9"),
)
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


def found(strict: bool, *components: tuple[str, int, str | None]) -> list[float]:
    request = DescribeClientQuotasRequest([ComponentData(*component) for component in components], strict)
    response = quotas.describe_client_quotas(image_of(*QUOTAS), request)
    assert response.entries is not None
    return sorted(value.value for entry in response.entries for value in entry.values)


def test_quotas_are_found_by_the_parts_of_their_entity() -> None:
    assert found(False) == [1, 2, 3, 4, 5, 6]
    assert found(False, ("user", EXACT, "alice")) == [1, 2]
    assert found(True, ("user", EXACT, "alice")) == [1]
    assert found(False, ("user", DEFAULT, None)) == [3]
    assert found(False, ("user", SPECIFIED, None)) == [1, 2, 3, 5]
    assert found(True, ("user", SPECIFIED, None), ("client-id", SPECIFIED, None)) == [2, 5]
    assert found(False, ("user", EXACT, "bob"), ("client-id", DEFAULT, None)) == [5]
    assert found(False, ("ip", EXACT, "127.0.0.9")) == [6]
    assert found(True) == []


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", EXACT, "x")], errors.INVALID_REQUEST),
        ([("user", EXACT, "x"), ("user", EXACT, "y")], errors.INVALID_REQUEST),
        ([("group", EXACT, "x")], errors.UNSUPPORTED_VERSION),
        ([("user", EXACT, None)], errors.INVALID_REQUEST),
        ([("user", DEFAULT, "x")], errors.INVALID_REQUEST),
        ([("user", SPECIFIED, "x")], errors.INVALID_REQUEST),
        ([("user", 3, None)], errors.INVALID_REQUEST),
        ([("ip", EXACT, "::1"), ("user", EXACT, "x")], errors.INVALID_REQUEST),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(components: list[tuple[str, int, str | None]], code: int) -> None:
    with pytest.raises(KafkaError) as failure:
        found(False, *components)
    assert failure.value.code == code


# SCRAM


def described(*names: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    records = [
        scram_record("alice", 1, b"salt", b"salted", 8192),
        scram_record("alice", 2, b"salt", b"salted", 4096),
        scram_record("bob", 1, b"salt", b"salted", 4096),
    ]
    request = DescribeUserScramCredentialsRequest([UserName(name) for name in names] if names else None)
    response = scram.describe_user_scram_credentials(image_of(*records), request)
    return {
        row.user: (row.error_code, [(info.mechanism, info.iterations) for info in row.credential_infos])
        for row in response.results
    }


def test_users_are_described_without_anything_of_their_passwords() -> None:
    everybody = {"alice": (0, [(1, 8192), (2, 4096)]), "bob": (0, [(1, 4096)])}
    assert described() == everybody
    assert described("bob") == {"bob": everybody["bob"]}
    assert described("carol", "bob", "bob") == {
        "carol": (errors.RESOURCE_NOT_FOUND, []),
        "bob": (errors.DUPLICATE_RESOURCE, []),
    }


# Access control entries


class Asked:
    """A call to a node without an authorizer."""

    def __init__(self) -> None:
        self.response: Any = None
        self.node = SimpleNamespace(rights=None, image=MetadataImage())
        self.context = ClientContext("PLAINTEXT", "127.0.0.1:5000")
        self.api_key = DescribeAclsRequest.API_KEY
        self.now_ms = 0

    def respond(self, response: Message) -> None:
        self.response = response


@pytest.mark.parametrize(
    ("handle", "request_"),
    [
        (acls.handle_describe_acls, DescribeAclsRequest()),
        (acls.handle_create_acls, creating.CreateAclsRequest([creating.AclCreation()])),
        (acls.handle_delete_acls, deleting.DeleteAclsRequest([deleting.DeleteAclsFilter()])),
    ],
)
def test_without_an_authorizer_security_is_disabled(handle: Any, request_: Message) -> None:
    call = Asked()
    handle(call, request_)
    rows = getattr(call.response, "results", None) or getattr(call.response, "filter_results", None) or [call.response]
    assert [(row.error_code, row.error_message) for row in rows] == [
        (errors.SECURITY_DISABLED, "No Authorizer is configured.")
    ]


def test_with_an_authorizer_entries_are_described() -> None:
    world = NodeWorld(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:ANONYMOUS").start()
    answer = world.ask(DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY), 3)
    assert (answer.error_code, answer.resources) == (0, [])


def creation(name: str, pattern: int = LITERAL, principal: str = "User:alice", **changes: int) -> creating.AclCreation:
    made = creating.AclCreation(TOPIC, name, pattern, principal, "*", READ, ALLOW)
    for key, value in changes.items():
        setattr(made, key, value)
    return made


@pytest.fixture
def w() -> World:
    made = World()
    creations = [creation("orders"), creation("ord", PREFIXED, "User:bob"), creation("*"), creation("other")]
    creations += [creation("orders", operation=WRITE), creation("orders")]
    made.run(made.controller.create_acls(creating.CreateAclsRequest(creations), 0))
    return made


def names(w: World, name: str | None, pattern: int, principal: str | None = None, operation: int = ANY) -> list[str]:
    request = DescribeAclsRequest(TOPIC, name, pattern, principal, None, operation, ANY)
    response = acls.describe_acls(w.image, request)
    return [f"{resource.resource_name}:{len(resource.acls)}" for resource in response.resources]


def test_entries_are_found_by_pattern_principal_and_operation(w: World) -> None:
    assert names(w, None, ANY) == ["orders:2", "ord:1", "*:1", "other:1"]
    assert names(w, "orders", LITERAL) == ["orders:2"]
    assert names(w, "orders", MATCH) == ["orders:2", "ord:1", "*:1"]
    assert names(w, "ord", PREFIXED) == ["ord:1"]
    assert names(w, None, ANY, "User:bob") == ["ord:1"]
    assert names(w, "orders", ANY, None, WRITE) == ["orders:1"]


def test_every_filter_reports_what_it_matched_and_an_entry_goes_once(w: World) -> None:
    wanted = [
        deleting.DeleteAclsFilter(TOPIC, "orders", LITERAL, None, None, ANY, ANY),
        deleting.DeleteAclsFilter(TOPIC, "orders", MATCH, None, None, READ, ANY),
        deleting.DeleteAclsFilter(0, None, ANY, None, None, ANY, ANY),
    ]
    response = w.run(w.controller.delete_acls(deleting.DeleteAclsRequest(wanted), 0))
    assert [len(row.matching_acls) for row in response.filter_results] == [2, 3, 0]
    assert response.filter_results[2].error_code == errors.INVALID_REQUEST
    assert w.record_names() == ["RemoveAccessControlEntryRecord"] * 4
    assert names(w, None, ANY) == ["other:1"]


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (creation(""), "Invalid empty resource name"),
        (creation("x", resource_type=CLUSTER), "The only valid name for the CLUSTER resource is kafka-cluster"),
        (creation("x", resource_type=ANY), "Invalid resourceType ANY"),
        (creation("x", MATCH), "Invalid patternType MATCH"),
        (creation("x", operation=99), "Invalid operation UNKNOWN"),
        (creation("x", permission_type=ANY), "Invalid permissionType ANY"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(made: creating.AclCreation, problem: str) -> None:
    w = World()
    row = w.run(w.controller.create_acls(creating.CreateAclsRequest([made]), 0)).results[0]
    assert (row.error_code, row.error_message) == (errors.INVALID_REQUEST, problem)
    assert w.records == []


def test_more_acls_than_a_batch_holds_are_refused_as_a_whole() -> None:
    world = World()
    many = [creating.AclCreation(TOPIC, f"t{n}", LITERAL, "User:x", "*", READ, ALLOW) for n in range(10_001)]
    with pytest.raises(KafkaError) as failure:
        world.controller.create_acls(creating.CreateAclsRequest(many), 0)
    assert failure.value.code == errors.INVALID_REQUEST
    for part in (many[:6000], many[6000:]):
        world.run(world.controller.create_acls(creating.CreateAclsRequest(part), 0))
    everything = deleting.DeleteAclsRequest([deleting.DeleteAclsFilter(ANY, None, ANY, None, None, ANY, ANY)])
    with pytest.raises(KafkaError) as failure:
        world.controller.delete_acls(everything, 0)
    assert failure.value.code == errors.INVALID_REQUEST
    assert len(world.controller.image.acls) == 10_001
