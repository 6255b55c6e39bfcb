"""What logins compute on threads, and what becomes of it when the node stops."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.config.broker_config import BrokerConfig
from moldau.controller.result import Result
from moldau.metadata.image import MetadataImage
from moldau.node.metadata_node import MetadataNode
from moldau.protocol.primitives import Message
from moldau.protocol.stored.metadata_records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    UserScramCredentialRecord,
)
from moldau.security import scram
from moldau.server.logins import THREADS_MAX, Logins
from tests.pace import patience
from tests.unit.metadata.test_three_nodes import Trio
from tests.unit.node.test_early_credentials import append, reads_of, restarted

NOW_MS = 77
NEVER_MS = 1 << 50
SECRETS = {"delegation.token.secret.key": "a secret of the cluster"}


def logins_on(loop: asyncio.AbstractEventLoop) -> Logins:
    nobody = cast("Any", None)
    node = cast("Any", SimpleNamespace(metadata=None))
    return Logins(node, nobody, cast("Any", lambda: NOW_MS), loop, nobody)


def test_what_was_computed_comes_back_to_the_loop() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        logins = logins_on(loop)
        done: asyncio.Future[tuple[bytes, int]] = loop.create_future()
        logins._compute(lambda: b"key", lambda key, now_ms: done.set_result((key, now_ms)))
        assert await asyncio.wait_for(done, patience(10)) == (b"key", NOW_MS)
        logins.close()

    asyncio.run(main())


def test_what_nobody_has_begun_to_compute_is_forgotten_when_the_node_stops() -> None:
    failures: list[dict[str, Any]] = []
    finished: list[bytes] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, failure: failures.append(failure))
        logins = logins_on(loop)
        go_on, begun = threading.Event(), threading.Semaphore(0)

        def busy() -> bytes:
            begun.release()
            go_on.wait()
            return b"late"

        for _ in range(THREADS_MAX):
            logins._compute(busy, lambda key, _: finished.append(key))
        for _ in range(THREADS_MAX):
            await loop.run_in_executor(None, begun.acquire)
        logins._compute(lambda: b"never", lambda key, _: finished.append(key))
        logins.close()
        go_on.set()
        while len(finished) < THREADS_MAX and not failures:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(main(), patience(20)))
    assert failures == [] and finished == [b"late"] * THREADS_MAX


def logins_of(metadata: MetadataNode) -> Logins:
    """As those of a node whose metadata has just been started."""
    node = cast("Any", NodeOf(metadata))
    nobody = cast("Any", None)
    logins = Logins(node, BrokerConfig(dict(metadata.config.values) | SECRETS, warn=False), nobody, nobody, nobody)
    logins.on_node_started()
    return logins


class NodeOf:
    def __init__(self, metadata: MetadataNode) -> None:
        self.metadata = metadata
        self.cluster_id = metadata.cluster_id
        self.wall = metadata.wall

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image


def write(trio: Trio, record: Message) -> None:
    trio.decide(lambda _: Result([(record, 0)], "done"))


def test_a_token_that_was_deleted_does_not_come_back_with_a_restart() -> None:
    """The latest snapshot still has it: no token counts before the node knows what is committed."""
    trio = Trio()
    trio.run(lambda: trio.active() is not None)
    for token_id in ("kept", "deleted"):
        write(trio, DelegationTokenRecord("User:anna", "User:anna", [], 0, NEVER_MS, NEVER_MS, token_id))
    trio.run(lambda: all("deleted" in node.image.tokens for node in trio.nodes.values()))
    leader = trio.active()
    assert leader is not None
    follower = leader.node_id % 3 + 1
    trio.nodes[follower].write_snapshot(trio.now_ms)
    trio.run(lambda: trio.nodes[follower].log.latest_snapshot() is not None)
    write(trio, RemoveDelegationTokenRecord("deleted"))
    trio.run(lambda: "deleted" not in trio.nodes[follower].image.tokens)
    trio.restart(follower)
    node = trio.nodes[follower]
    users = logins_of(node).scram_users()
    assert node.image.tokens.keys() == {"kept", "deleted"}, "the snapshot"
    assert users.find_token("deleted") is None and users.find_token("kept") is None
    trio.run(lambda: node.is_caught_up)
    assert users.find_token("deleted") is None
    kept = users.find_token("kept")
    assert kept is not None and kept.principal == "User:anna"


def test_who_has_caught_up_once_goes_by_the_image_when_the_leader_is_lost() -> None:
    """Also if nobody has logged in meanwhile."""
    trio = Trio()
    trio.run(lambda: trio.active() is not None)
    leader = trio.active()
    assert leader is not None
    write(trio, DelegationTokenRecord("User:anna", "User:anna", [], 0, NEVER_MS, NEVER_MS, "kept"))
    follower = leader.node_id % 3 + 1
    trio.restart(follower)
    node = trio.nodes[follower]
    users = logins_of(node).scram_users()
    assert users.find_token("kept") is None
    trio.run(lambda: node.is_caught_up)
    trio.down |= {1, 2, 3} - {follower}
    trio.run(lambda: not node.is_caught_up)
    assert users.find_token("kept") is not None


def log_in(logins: Logins, user: str, password: str) -> scram.ScramServer:
    server = logins.scram_server(scram.SCRAM_SHA_256)
    client = scram.ScramClient(scram.SCRAM_SHA_256, user, password, "nonce")
    said: bytes | None = client.first()
    while said is not None:
        heard = server.evaluate(said, NOW_MS)
        assert isinstance(heard, bytes)
        said = client.next(heard)
    assert server.is_complete
    return server


def credential(user: str, password: bytes) -> UserScramCredentialRecord:
    salted = scram.salted_password(scram.SCRAM_SHA_256, password, b"salt", 4096)
    keys = scram.keys_of(scram.SCRAM_SHA_256, salted, b"salt", 4096)
    return UserScramCredentialRecord(user, 1, keys.salt, keys.stored_key, keys.server_key, keys.iterations)


SCRAM_LISTENER = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.mechanism.controller.protocol": scram.SCRAM_SHA_256,
    "listener.name.controller.sasl.enabled.mechanisms": scram.SCRAM_SHA_256,
    "listener.name.controller.scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule"
    ' required username="node" password="old-node";',
}


def test_a_node_with_a_scram_listener_reads_its_log_when_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while others wait for the answer to a login."""
    _, node = restarted()
    nobody = cast("Any", None)
    config = BrokerConfig(dict(node.config.values) | SCRAM_LISTENER, warn=False)
    logins = Logins(cast("Any", NodeOf(node)), config, nobody, nobody, nobody)
    assert logins.keeper_for("CONTROLLER") is not None
    offsets = reads_of(node, monkeypatch)
    logins.on_node_started()
    assert offsets == [0]
    log_in(logins, "bob", "old-bob")
    assert offsets == [0]


def test_a_login_with_what_was_never_committed_does_not_count_for_good() -> None:
    """The node's log has a password that the others have not, and they go on without it."""
    trio, node = restarted()
    append(node, credential("anna", b"uncommitted"))
    logins = logins_of(node)
    refuted, confirmed = log_in(logins, "anna", "uncommitted"), log_in(logins, "bob", "old-bob")
    assert refuted.confirm is not None and confirmed.confirm is not None
    assert refuted.confirm() is None and confirmed.confirm() is None
    trio.down.add(node.node_id)
    trio.run(lambda: trio.active() is not None)
    trio.down.clear()
    trio.run(lambda: node.is_caught_up)
    assert refuted.confirm() is False and confirmed.confirm() is True
    assert log_in(logins, "anna", "old-anna").confirm is None
