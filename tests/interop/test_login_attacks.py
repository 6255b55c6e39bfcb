"""Strangers at listeners that ask for logins: rubbish, patience, and guesses. Nobody gets in, and others are unharmed.

MOLDAU_LOGIN_MUTATIONS says how many mutated connections are tried (default: 2,000).
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import selectors
import socket
import statistics
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin
from moldau.protocol import errors
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.interop.conftest import running
from tests.interop.login_scripts import NONCE, Talk, final_message, plain_token
from tests.interop.nodes import HOST
from tests.interop.sasl_moldau import SaslMoldau
from tests.interop.secured import PLAIN_USER, SCRAM_USER
from tests.interop.wire import CLOSED
from tests.pace import patience
from tests.unit.security.wire import authenticate, frame, handshake

MUTATIONS = int(os.environ.get("MOLDAU_LOGIN_MUTATIONS", "2000"))
SLOW = 2000
LOGIN_TIMEOUT_MS = 3000
SETTINGS = {
    "moldau.login.timeout.ms": str(LOGIN_TIMEOUT_MS),
    "connection.failed.authentication.delay.ms": "1",
    "listener.name.sasl_plaintext.sasl.server.max.receive.size": "65536",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslMoldau]:
    made = SaslMoldau(tmp_path_factory.mktemp("attacked"), SETTINGS)
    yield from running(made)
    assert "Traceback" not in made.output(), made.output()[-3000:]


def memory_mb(node: SaslMoldau) -> float:
    assert node.process is not None
    for line in Path(f"/proc/{node.process.pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no Pss")


def good_client_seconds(node: SaslMoldau) -> float:
    begin = time.monotonic()
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": SCRAM_USER.name,
        "sasl.password": SCRAM_USER.password,
    }
    with Admin(node.sasl_plaintext, config=settings) as admin:
        admin.list_topics()
    return time.monotonic() - begin


GOOD_DIALOGUES = [
    [frame(ApiVersionsRequest(), 0), handshake("PLAIN"), authenticate(plain_token(password="guessed"))],
    [handshake("PLAIN", 0), plain_token(password="guessed")],
    [
        frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3),
        handshake("SCRAM-SHA-512"),
        authenticate(f"n,,n={SCRAM_USER.name},r={NONCE}".encode()),
        authenticate(f"c=biws,r={NONCE}abc,p=AAAA".encode()),
    ],
]
BEHIND = frame(MetadataRequest(topics=[]), 9, 4242)


def mutated(rng: random.Random) -> list[bytes]:
    """One of the dialogues with a few things wrong, and a request behind it that only somebody known may ask."""
    frames = [bytearray(struct.pack(">i", len(item)) + item) for item in rng.choice(GOOD_DIALOGUES)]
    for _ in range(rng.randint(1, 4)):
        item = rng.choice(frames)
        kind = rng.randrange(6)
        if kind == 0 and item:
            item[rng.randrange(len(item))] = rng.randrange(256)
        elif kind == 1:
            del item[rng.randrange(len(item) + 1) :]
        elif kind == 2:
            item[rng.randrange(len(item) + 1) : 0] = rng.randbytes(rng.randint(1, 40))
        elif kind == 3 and len(item) >= 4:
            item[:4] = struct.pack(">i", rng.choice([-1, 0, 1, 2, 65536, 65537, 1 << 30, -(1 << 31), len(item)]))
        elif kind == 4:
            frames.insert(rng.randrange(len(frames) + 1), bytearray(item))
        else:
            rng.shuffle(frames)
    return [*(bytes(item) for item in frames), struct.pack(">i", len(BEHIND)) + BEHIND]


def test_mutated_frames_get_nobody_in(node: SaslMoldau) -> None:
    """Whatever is said, the request behind it is never answered; the memory stays what it was."""
    rng = random.Random(20)
    good_client_seconds(node)
    before = memory_mb(node)
    for number in range(MUTATIONS):
        pieces = mutated(rng)
        with socket.create_connection((HOST, node.ports["SASL_PLAINTEXT"]), 10) as stranger:
            stranger.settimeout(patience(20))
            with contextlib.suppress(ConnectionError):
                stranger.sendall(b"".join(pieces))
                stranger.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(ConnectionError):
                while part := stranger.recv(65536):
                    answer += part
        # An error may tell that it came too early; who is let in is told the cluster's id.
        assert node.cluster_id.encode() not in answer, (number, pieces)
    good_client_seconds(node)
    assert memory_mb(node) < before + 30


def test_oversized_tokens_end_the_connection(node: SaslMoldau) -> None:
    with Talk(HOST, node.ports["SASL_PLAINTEXT"]) as talk:
        talk.say(SaslHandshakeRequest("PLAIN"), 1)
        assert talk.plain(b"\0" + b"a" * 70_000 + b"\0x") == CLOSED
    with Talk(HOST, node.ports["SASL_PLAINTEXT"]) as talk:
        talk.say(SaslHandshakeRequest("PLAIN"), 1)
        assert talk.plain(b"\0" + b"a" * 60_000 + b"\0x")[0] == 58


def test_after_the_login_frames_may_be_larger(node: SaslMoldau) -> None:
    with Talk(HOST, node.ports["SASL_PLAINTEXT"]) as talk:
        assert talk.log_in()[0] == 0
        assert talk.say(MetadataRequest(topics=[], unknown_tags=None), 9) == 0
        assert talk.say(SaslAuthenticateRequest(b"x" * 200_000), 2)[0] == 34


def test_slow_strangers_cost_little_and_are_sent_away(node: SaslMoldau) -> None:
    """2,000 connections that send a byte now and then: good clients get in meanwhile, and after their time all are
    gone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, SLOW + 500)), hard))
    before = memory_mb(node)
    half = struct.pack(">i", 40_000) + b"\0\x11"
    strangers = []
    selector = selectors.DefaultSelector()
    try:
        for _ in range(SLOW):
            stranger = socket.create_connection((HOST, node.ports["SASL_PLAINTEXT"]), patience(20))
            stranger.sendall(half)
            stranger.setblocking(False)
            selector.register(stranger, selectors.EVENT_READ)
            strangers.append(stranger)
        during = memory_mb(node)
        assert good_client_seconds(node) < patience(10)
        assert (during - before) * 1024 / SLOW < 40, f"{during - before:.1f} MB"
        deadline = time.monotonic() + LOGIN_TIMEOUT_MS / 1000 + patience(20)
        while selector.get_map():
            assert time.monotonic() < deadline, f"{len(selector.get_map())} are still there"
            for key, _ in selector.select(0.2):
                gone = key.fileobj
                assert isinstance(gone, socket.socket)
                with contextlib.suppress(ConnectionError):
                    assert gone.recv(10) == b""
                selector.unregister(gone)
            for stranger in list(selector.get_map().values())[:50]:
                with contextlib.suppress(OSError):
                    assert isinstance(stranger.fileobj, socket.socket)
                    stranger.fileobj.send(b"\0")
    finally:
        for stranger in strangers:
            stranger.close()
        selector.close()
    good_client_seconds(node)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_that_was_listened_to_is_of_no_use(node: SaslMoldau, mechanism: str) -> None:
    """The final message of one login on another connection: with its own nonce, and with that of the other one."""
    recorded: list[str] = []

    def record(final: str) -> str:
        recorded.append(final)
        return final

    with Talk(HOST, node.ports["SASL_PLAINTEXT"]) as talk:
        assert talk.scram(mechanism, record)[-1][0] == 0

    def with_new_nonce(final: str) -> str:
        proof = recorded[0].partition(",p=")[2]
        return f"{final.partition(',p=')[0]},p={proof}"

    for replay in (lambda final: recorded[0], with_new_nonce):
        with Talk(HOST, node.ports["SASL_PLAINTEXT"]) as talk:
            assert talk.scram(mechanism, replay)[-1][0] == errors.SASL_AUTHENTICATION_FAILED


def test_a_weaker_mechanism_cannot_be_slipped_in(node: SaslMoldau) -> None:
    """What was proved for one mechanism proves nothing for another, and who has named one stays with it."""
    with Talk(HOST, node.ports["SASL_PLAINTEXT"]) as talk:
        talk.say(SaslHandshakeRequest("SCRAM-SHA-512"), 1)
        bare = f"n={SCRAM_USER.name},r={NONCE}"
        answer = talk.ask(SaslAuthenticateRequest(f"n,,{bare}".encode()), 2)
        weaker = final_message("SCRAM-SHA-256", SCRAM_USER.password, bare, answer.auth_bytes.decode())
        assert talk.plain(weaker.encode())[0] == errors.SASL_AUTHENTICATION_FAILED
    with Talk(HOST, node.ports["SASL_PLAINTEXT"]) as talk:
        talk.say(SaslHandshakeRequest("SCRAM-SHA-512"), 1)
        assert talk.say(SaslHandshakeRequest("PLAIN"), 1)[0] == errors.ILLEGAL_SASL_STATE
        assert talk.say(MetadataRequest(topics=[]), 9) == CLOSED


def test_an_unknown_user_takes_as_long_as_a_wrong_password(node: SaslMoldau) -> None:
    """By SCRAM and by PLAIN; in turn, so that both meet the same machine."""
    times: dict[str, list[float]] = {}

    def measure(name: str, frames: list[bytes]) -> None:
        with socket.create_connection((HOST, node.ports["SASL_PLAINTEXT"]), 10) as stranger:
            stranger.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            begin = time.perf_counter()
            for item in frames:
                stranger.sendall(struct.pack(">i", len(item)) + item)
                assert stranger.recv(65536)
            times.setdefault(name, []).append(time.perf_counter() - begin)

    for _ in range(150):
        for name, user in (("known", SCRAM_USER.name), ("unknown", "nobody")):
            first = authenticate(f"n,,n={user},r={NONCE}".encode())
            measure(f"scram {name}", [handshake("SCRAM-SHA-256"), first])
        for name, user in (("known", PLAIN_USER.name), ("unknown", "carol")):
            measure(f"plain {name}", [handshake("PLAIN"), authenticate(plain_token(user, "wrong"))])
    for mechanism in ("scram", "plain"):
        known, unknown = (statistics.median(times[f"{mechanism} {name}"]) for name in ("known", "unknown"))
        assert 0.5 < known / unknown < 2.0, (mechanism, known, unknown)
