"""Before a node knows what is committed, its snapshot and log say who may log in, not what it was formatted with."""

from __future__ import annotations

from moldau.node.early_credentials import EarlyCredentials
from moldau.node.metadata_node import MetadataNode
from moldau.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.server.storage_format import FormatOptions
from tests.unit.metadata.test_three_nodes import Trio

SHA_256 = 1
FORMATTED = [f"SCRAM-SHA-256=[name={user},password=old-{user}]" for user in ("node", "anna", "bob")]


def formatted() -> Trio:
    return Trio(FormatOptions(add_scram=FORMATTED))


def change(trio: Trio, salt: bytes) -> None:
    """Anna gets another password, bob goes, carl comes."""
    upsertions = [ScramCredentialUpsertion(user, SHA_256, 4096, salt, b"salted") for user in ("anna", "carl")]
    request = AlterUserScramCredentialsRequest([ScramCredentialDeletion("bob", SHA_256)], upsertions)
    answer = trio.decide(lambda controller: controller.alter_user_scram_credentials(request, trio.now_ms))
    assert [row.error_code for row in answer.results] == [0, 0, 0]
    trio.run(lambda: all((SHA_256, "carl") in node.image.scram for node in trio.nodes.values()))


def salts(early: EarlyCredentials) -> dict[str, bytes]:
    found = {user: early.find(SHA_256, user) for user in ("node", "anna", "bob", "carl")}
    return {user: credential.salt for user, credential in found.items() if credential is not None}


def snapshot(trio: Trio, node: MetadataNode) -> None:
    node.write_snapshot(trio.now_ms)
    trio.run(lambda: node.log.latest_snapshot() is not None)


def test_an_empty_log_leaves_what_the_storage_was_formatted_with() -> None:
    """Without it the first quorum could not be formed; it is over when the log has the same."""
    trio = formatted()
    early = [EarlyCredentials(node) for node in trio.nodes.values()]
    assert all(salts(one).keys() == {"node", "anna", "bob"} and not one.is_over for one in early)
    trio.run(lambda: all(one.is_over for one in early))
    for node in trio.nodes.values():
        assert {user for _, user in node.image.scram} == {"node", "anna", "bob"}


def test_what_was_replaced_or_deleted_does_not_come_back_with_a_restart() -> None:
    trio = formatted()
    trio.run(lambda: trio.active() is not None)
    change(trio, b"new")
    trio.restart(1, 2, 3)
    for node in trio.nodes.values():
        early = EarlyCredentials(node)
        assert not early.is_over and not node.image.features, "nobody has said yet what is committed"
        found = salts(early)
        assert found.keys() == {"node", "anna", "carl"} and found["anna"] == found["carl"] == b"new"
    of_all = [EarlyCredentials(node) for node in trio.nodes.values()]
    trio.run(lambda: all(one.is_over for one in of_all))


def test_a_snapshot_is_not_the_last_word_either() -> None:
    """What came after the last snapshot counts, and a node that has only loaded it has not caught up."""
    trio = formatted()
    trio.run(lambda: trio.active() is not None)
    change(trio, b"first")
    for node in trio.nodes.values():
        snapshot(trio, node)
    upsertion = ScramCredentialUpsertion("anna", SHA_256, 4096, b"second", b"salted")
    request = AlterUserScramCredentialsRequest([ScramCredentialDeletion("carl", SHA_256)], [upsertion])
    trio.decide(lambda controller: controller.alter_user_scram_credentials(request, trio.now_ms))
    trio.run(lambda: all((SHA_256, "carl") not in node.image.scram for node in trio.nodes.values()))
    follower = next(number for number, node in trio.nodes.items() if not node.is_active_controller)
    trio.restart(follower)
    node = trio.nodes[follower]
    early = EarlyCredentials(node)
    assert node.image.scram[SHA_256, "anna"].salt == b"first", "the snapshot"
    assert not node.is_caught_up and not early.is_over
    found = salts(early)
    assert found.keys() == {"node", "anna"} and found["anna"] == b"second"
    trio.run(lambda: early.is_over)
    assert node.image.scram[SHA_256, "anna"].salt == b"second"


def test_the_log_is_read_again_when_it_has_changed() -> None:
    trio = formatted()
    trio.run(lambda: trio.active() is not None)
    trio.run(lambda: all((SHA_256, "bob") in node.image.scram for node in trio.nodes.values()))
    trio.restart(1, 2, 3)
    early = {number: EarlyCredentials(node) for number, node in trio.nodes.items()}
    assert all(salts(one).keys() == {"node", "anna", "bob"} for one in early.values())
    trio.run(lambda: trio.active() is not None)
    change(trio, b"new")
    assert all(salts(one).keys() == {"node", "anna", "carl"} for one in early.values())
