"""Mutated handshakes and frames before a login let nobody in, and neither end, swell nor slow a secured broker.

`make torture-logins` (MOLDAU_THOROUGH=1) sends 100,000 of them and waits for every deadline. MOLDAU_FUZZ_SEED repeats a
run; a case that fails goes into failing_login_cases.txt.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import selectors
import shutil
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moldau.client import Admin, NewTopic, Producer
from tests.certificates import Authority
from tests.fuzz.login_cases import BEHIND, USER, Stranger, run_case, unspoilt
from tests.interop.nodes import HOST, MoldauNode, free_ports
from tests.pace import patience, patience_ms
from tests.unit.security.wire import authenticate, handshake

THOROUGH = os.environ.get("MOLDAU_THOROUGH") == "1"
CASES = 100_000 if THOROUGH else 400
SEED = int(os.environ.get("MOLDAU_FUZZ_SEED", str(random.SystemRandom().randrange(1 << 30))))
KEPT = Path(__file__).parent / "failing_login_cases.txt"
AT_ONCE = 8
SLOW = 2000
GROWTH_MB_MAX = 40
LOGIN_TIMEOUT_MS = 3000
PASSWORD = "anna-secret-1"
PLAIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'


class Besieged(MoldauNode):
    """SASL_SSL, and SASL_PLAINTEXT for what need not be encrypted to be wrong."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "authority")
        self.store = folder / "server.pem"
        shutil.copy(self.authority.sign("server").pem, self.store)
        super().__init__(folder)

    def write_properties(self, overrides: dict[str, str]) -> None:
        secret, in_the_open = free_ports(2)
        self.ports = {"secret": secret, "open": in_the_open}
        own = f"SECRET://{HOST}:{secret},OPEN://{HOST}:{in_the_open},INNER://{HOST}:{self.port}"
        settings = {
            "listeners": f"{own},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": own,
            "inter.broker.listener.name": "INNER",
            "listener.security.protocol.map": "SECRET:SASL_SSL,OPEN:SASL_PLAINTEXT,"
            "INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.secret.plain.sasl.jaas.config": PLAIN,
            "listener.name.open.plain.sasl.jaas.config": PLAIN,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "moldau.login.timeout.ms": str(LOGIN_TIMEOUT_MS),
            "connection.failed.authentication.delay.ms": "1",
            "socket.listen.backlog.size": "1000",
        }
        super().write_properties(settings | overrides)

    def contexts(self) -> list[ssl.SSLContext]:
        """TLS 1.3 and TLS 1.2."""
        made = [ssl.create_default_context(cafile=str(self.authority.certificate)) for _ in range(2)]
        made[1].maximum_version = ssl.TLSVersion.TLSv1_2
        return made

    def client_settings(self) -> dict[str, object]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
        }

    def resident_mb(self) -> float:
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Besieged]:
    started = Besieged(tmp_path_factory.mktemp("besieged"))
    started.format()
    started.start()
    try:
        yield started
        assert started.process is not None and started.process.poll() is None, started.output()[-3000:]
        assert "Traceback" not in started.output() and PASSWORD not in started.output(), started.output()[-3000:]
        assert started.stop() == 0
    finally:
        started.kill()


class GoodClient(threading.Thread):
    """Writes all the time over a connection that stays, and comes anew again and again."""

    def __init__(self, node: Besieged, topic: str) -> None:
        super().__init__(name="good client", daemon=True)
        self.topic = topic
        self.bootstrap, self.settings = f"{HOST}:{node.ports['secret']}", node.client_settings()
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self.written = self.logins = 0
        self.slowest_s = 0.0

    def run(self) -> None:
        try:
            with Producer(self.bootstrap, config={**self.settings, "linger.ms": 0}) as producer:
                while not self.stopping.wait(0.02):
                    began = time.monotonic()
                    assert (
                        producer.send(self.topic, str(self.written)).result(patience_ms(20_000)).offset == self.written
                    )
                    self.written += 1
                    if self.written % 10 == 1:
                        with Admin(self.bootstrap, config=self.settings) as admin:
                            assert self.topic in {row.name for row in admin.list_topics(timeout_ms=patience_ms(20_000))}
                        self.logins += 1
                    self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        except BaseException as failure:
            self.failure = failure

    def finish(self) -> None:
        self.stopping.set()
        self.join(patience(40))
        assert self.failure is None, f"the good client failed: {self.failure!r}"
        assert self.written > 0 and self.logins > 0


@pytest.fixture
def good(node: Besieged, request: pytest.FixtureRequest) -> GoodClient:
    topic = request.node.name
    with Admin(node.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].get()
    return GoodClient(node, topic)


def kept_cases() -> list[tuple[int, int]]:
    rows = [line.split() for line in KEPT.read_text().splitlines() if line and not line.startswith("#")]
    return [(int(row[0]), int(row[1])) for row in rows]


def test_nobody_gets_in(node: Besieged, good: GoodClient) -> None:
    print(f"MOLDAU_FUZZ_SEED={SEED}")
    contexts, cluster_id = node.contexts(), node.cluster_id.encode()

    def attack(case: tuple[int, int]) -> None:
        # An error may tell that it came too early; who is let in is told the cluster's id.
        assert cluster_id not in run_case(*case, node.ports, contexts), f"got in: seed {case[0]}, case {case[1]}"

    good.start()
    with ThreadPoolExecutor(AT_ONCE) as attackers:
        first = CASES // 4
        list(attackers.map(attack, [*kept_cases(), *((SEED, number) for number in range(first))]))
        settled = node.resident_mb()
        began = time.monotonic()
        list(attackers.map(attack, ((SEED, number) for number in range(first, CASES))))
        seconds = time.monotonic() - began
    good.finish()
    growth = node.resident_mb() - settled
    print(
        f"{CASES} strangers, the last {CASES - first} in {seconds:.1f} s: memory {growth:+.1f} MB of {settled:.1f} MB;"
        f" good client {good.written} records, {good.logins} logins, {good.slowest_s:.3f} s at most"
    )
    assert growth < GROWTH_MB_MAX, f"memory grew by {growth:.1f} MB"


def test_a_right_password_among_wrong_ones_is_what_gets_in(node: Besieged) -> None:
    """The attackers of this file would be let in if they knew: what they look for is there to be found."""
    stranger = Stranger(node.ports["secret"], node.contexts()[0])
    with stranger.socket:
        assert stranger.shake_hands(unspoilt, True)
        for item in (handshake("PLAIN"), authenticate(f"\0{USER}\0{PASSWORD}".encode()), BEHIND):
            stranger.say(struct.pack(">i", len(item)) + item)
        stranger.listen_to_the_end()
    assert node.cluster_id.encode() in stranger.received


def slow_stranger(number: int, node: Besieged, context: ssl.SSLContext) -> socket.socket:
    """Silent, in the middle of a ClientHello, or (a tenth) behind a handshake and in the middle of a frame."""
    if number % 10 == 0:
        stranger = Stranger(node.ports["secret"], context)
        stranger.shake_hands(unspoilt, True)
        stranger.say(struct.pack(">i", 40_000) + b"\0\x11")
        return stranger.socket
    sock = socket.create_connection((HOST, node.ports["secret" if number % 2 else "open"]), patience(20))
    if number % 3 == 0:
        beginning = b"\x16\x03\x01\x02\0\x01" if number % 2 else b"\0\0\x10\0\0\x12"
        sock.sendall(beginning[: 1 + number % 6])
    return sock


def test_two_thousand_slow_strangers(node: Besieged, good: GoodClient) -> None:
    """Good clients write and log in meanwhile; who does not log in in time is sent away."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, SLOW + 500)), hard))
    before, context = node.resident_mb(), node.contexts()[0]
    selector = selectors.DefaultSelector()
    good.start()
    strangers: list[socket.socket] = []
    try:
        for number in range(SLOW):
            sock = slow_stranger(number, node, context)
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_READ, number)
            strangers.append(sock)
        during = node.resident_mb()
        wait_for_the_end(selector, LOGIN_TIMEOUT_MS / 1000 + (30 if THOROUGH else 0))
        good.finish()
        print(
            f"{SLOW} slow strangers: {during - before:+.1f} MB, afterwards {node.resident_mb() - before:+.1f} MB;"
            f" good client {good.written} records, {good.logins} logins, {good.slowest_s:.3f} s at most"
        )
        assert during - before < 100
    finally:
        for sock in strangers:
            sock.close()
        selector.close()


def is_awaited(number: int) -> bool:
    """Those who were asked for a login; a handshake has half a minute, which only the thorough run waits for."""
    return THOROUGH or number % 10 == 0 or number % 2 == 0


def wait_for_the_end(selector: selectors.BaseSelector, seconds: float) -> None:
    """Each sends another byte now and then, until it is closed; all of them are."""
    limit = time.monotonic() + seconds + patience(20)
    while left := [key for key in selector.get_map().values() if is_awaited(key.data)]:
        assert time.monotonic() < limit, f"{len(left)} are still there"
        for key, _ in selector.select(0.2):
            assert isinstance(key.fileobj, socket.socket)
            try:
                is_over = not key.fileobj.recv(4096)
            except ConnectionError:
                is_over = True
            if is_over:
                selector.unregister(key.fileobj)
        for key in left[:50]:
            assert isinstance(key.fileobj, socket.socket)
            with contextlib.suppress(OSError):
                key.fileobj.send(b"\0")
