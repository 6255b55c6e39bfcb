"""Before a node knows what is committed, its snapshot and log say who may log in, not what it was formatted with."""

from __future__ import annotations

import pytest

from moldau.node.early_credentials import EarlyCredentials
from moldau.node.metadata_node import MetadataNode
from moldau.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.primitives import Message
from moldau.protocol.stored.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    encode_metadata_record,
)
from moldau.raft.batches import metadata_batch
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


def restarted() -> tuple[Trio, MetadataNode]:
    """A node that has not heard of a leader yet, with the users of `formatted` in its log and an empty image."""
    trio = formatted()
    trio.run(lambda: trio.active() is not None)
    trio.run(lambda: all((SHA_256, "bob") in node.image.scram for node in trio.nodes.values()))
    trio.restart(1, 2, 3)
    return trio, trio.nodes[1]


def append(node: MetadataNode, *records: Message, epoch: int = 0) -> None:
    """A batch as if a leader had told it."""
    epoch = epoch or node.log.last_epoch()
    values = [encode_metadata_record(record, record.HIGHEST_VERSION) for record in records]
    node.log.append(metadata_batch(node.log.end_offset(), epoch, 0, values))


def upsert(user: str, salt: bytes) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(user, SHA_256, salt, b"stored", b"server", 4096)


def reads_of(node: MetadataNode, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets that the log is read from, from now on."""
    offsets: list[int] = []
    read = node.log.read

    def counted(offset: int, max_bytes: int) -> bytes:
        offsets.append(offset)
        return read(offset, max_bytes)

    monkeypatch.setattr(node.log, "read", counted)
    return offsets


def test_what_was_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _, node = restarted()
    offsets = reads_of(node, monkeypatch)
    early = EarlyCredentials(node)
    salts(early)
    assert offsets == [0]
    end = node.log.end_offset()
    append(node, upsert("carl", b"late"))
    append(node, RemoveUserScramCredentialRecord("bob", SHA_256), epoch=node.log.last_epoch() + 1)
    found = salts(early)
    assert offsets == [0, end] and found.keys() == {"node", "anna", "carl"}
    node._read_up_to(end)
    assert node.image.offset == end - 1, "the image has moved, but not past what was read"
    del offsets[:]
    assert salts(early) == found and offsets == []


def test_a_log_that_was_cut_off_is_read_anew() -> None:
    """Also when it has grown longer than before since."""
    trio, node = restarted()
    early = EarlyCredentials(node)
    end = node.log.end_offset()
    append(node, upsert("carl", b"lost"), RemoveUserScramCredentialRecord("anna", SHA_256))
    assert salts(early).keys() == {"node", "bob", "carl"}
    node.log.truncate_to(end)
    assert salts(early).keys() == {"node", "anna", "bob"}
    trio.run(node.log.is_settled)
    append(node, upsert("carl", b"lost"))
    assert salts(early)["carl"] == b"lost"
    node.log.truncate_to(end)
    trio.run(node.log.is_settled)
    for user in ("anna", "bob", "node"):
        append(node, upsert(user, b"other"), epoch=node.log.last_epoch() + 1)
    assert salts(early) == {"node": b"other", "anna": b"other", "bob": b"other"}


def test_an_image_beyond_what_was_read_is_begun_with(monkeypatch: pytest.MonkeyPatch) -> None:
    _, node = restarted()
    early = EarlyCredentials(node)
    salts(early)
    append(node, upsert("carl", b"committed"), RemoveUserScramCredentialRecord("bob", SHA_256))
    node._read_up_to(node.log.end_offset())
    append(node, upsert("anna", b"uncommitted"))
    offsets = reads_of(node, monkeypatch)
    found = salts(early)
    assert offsets == [node.image.offset + 1]
    assert found.keys() == {"node", "anna", "carl"} and found["anna"] == b"uncommitted"


def test_a_transaction_counts_from_its_end_on() -> None:
    _, node = restarted()
    early = EarlyCredentials(node)
    append(node, BeginTransactionRecord("first"), upsert("carl", b"done"))
    assert "carl" not in salts(early)
    append(node, EndTransactionRecord())
    assert salts(early)["carl"] == b"done"
    append(node, BeginTransactionRecord("second"), RemoveUserScramCredentialRecord("carl", SHA_256))
    append(node, upsert("anna", b"never"))
    append(node, AbortTransactionRecord("a test"))
    found = salts(early)
    assert found["carl"] == b"done" and found["anna"] != b"never"


@pytest.mark.parametrize("is_aborted", [True, False])
def test_a_transaction_that_the_image_stands_in_is_known(is_aborted: bool) -> None:
    """Its beginning is committed, its end is not: reading begins inside of it."""
    _, node = restarted()
    append(node, upsert("bob", b"before"), BeginTransactionRecord("open"), upsert("carl", b"inside"))
    append(node, upsert("anna", b"inside"))
    node._read_up_to(node.log.end_offset())
    assert node.in_transaction
    early = EarlyCredentials(node)
    found = salts(early)
    assert "carl" not in found and found["anna"] != b"inside" and found["bob"] == b"before"
    append(node, AbortTransactionRecord("a test") if is_aborted else EndTransactionRecord())
    for one in (early, EarlyCredentials(node)):
        after = salts(one)
        assert after == (found if is_aborted else {**found, "anna": b"inside", "carl": b"inside"})


def test_a_snapshot_that_was_fetched_and_not_loaded_yet_changes_nothing() -> None:
    """The log is empty then and begins behind the image."""
    _, node = restarted()
    early = EarlyCredentials(node)
    found = salts(early)
    node.log.log.start_at(node.log.end_offset() + 100, 0).start(None)
    assert salts(early) == found and found
