"""Measures what security costs, beside Apache Kafka: TLS produce and fetch, TLS handshakes, SCRAM logins.

    python bench/security.py [--moldau COMMAND] [--kafka DIRECTORY] [--rows produce,fetch,handshakes,logins] [--rounds
    5]
                             [--seconds 2] [--certificate ec] [--only moldau] [--brief] [--markdown]

Both brokers run at the same time with the same settings and the same certificate; rounds alternate between them, and
each figure is the median of its rounds. TLS 1.3 with the suites that the brokers choose by themselves. The load is one
thread with requests that are encoded before, and TLS between buffers (lean_tls.py); its share of a core is told for
each figure, because what it takes it takes from the brokers: where it is near 100 %, the rate is the load's, and CPU
counts. CPU is what the broker's process has used, from /proc. A JVM is warmed up first.

produce     acks=all, five requests in flight on each of 1 and of 8 connections, every connection with a topic of its
            own: one batch of 16 records of 1 KB, and of one record of 100 B.
fetch       one request in flight on each of 1 and of 8 connections: 64 KB and 1 MB of batches of 16 KB. What comes is
            decrypted and looked at once; then the same requests are made again, and only the sizes are counted.
handshakes  connect, TLS handshake, ApiVersions, close; 16 connections at once. Sessions are not resumed.
logins      the same with a whole login: connect, (handshake,) ApiVersions, SaslHandshake, both messages of
            SCRAM-SHA-512 with 4,096 iterations, close. The load has salted its password before.

Rows have bars: 1.5 for TLS produce and fetch, 2 for logins a second. Which are below is told at the end.
--brief shows that everything runs, and its figures mean nothing.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import hmac
import itertools
import secrets
import select
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import compare
from lean_tls import LeanTls, TlsWire, client_context
from side_by_side import Broker, Table, Wire, alternating, frame, parser_of, say

from moldau.protocol import errors
from moldau.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from moldau.protocol.primitives import Reader

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISM, MECHANISM_NUMBER, DIGEST = "SCRAM-SHA-512", 2, "sha512"
ITERATIONS = 4096
USER, PASSWORD = "bench", b"bench-secret"
CONNECTIONS = (1, 8)
IN_FLIGHT = 5
AT_ONCE = 16
FETCHED_TOPIC_MB = 64
ANSWER_BYTES_MAX = 4 << 20
AUTHENTICATE_VERSION = 1
OVER = -1
CORRELATION_ID_BYTES = 4
CLOSE_TO_A_CORE = 0.9

KEYS = {
    "ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "rsa": ["-newkey", "rsa:2048"],
}
TLS_BAR, LOGIN_BAR = 1.5, 2.0


def make_certificate(directory: Path, kind: str) -> Path:
    """A self-signed one and its key in one file, for this machine only."""
    key, certificate, both = directory / "own.key", directory / "own.crt", directory / "own.pem"
    subprocess.run(
        [
            *("openssl", "req", "-new", "-x509", "-days", "2", *KEYS[kind], "-nodes", "-keyout", str(key)),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    return both


def settings_with(certificate: Path) -> dict[str, str]:
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {
        "num.partitions": "1",
        "log.segment.delete.delay.ms": "1000",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate),
        "sasl.enabled.mechanisms": MECHANISM,
        **{
            f"listener.name.{name}.{MECHANISM.lower()}.sasl.jaas.config": scram
            for name in ("sasl_plaintext", "sasl_ssl")
        },
    }


# Measuring


class Gauge:
    """What the broker and the load used, from its making on."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._cpu_s, self._own_s, self._start_s = broker.cpu_seconds(), time.process_time(), time.perf_counter()

    def figures(self, count: float) -> tuple[float, float, float]:
        """How much of `count` a second, CPU seconds of the broker for each of it, and the load's share of a core."""
        took_s = time.perf_counter() - self._start_s
        own = (time.process_time() - self._own_s) / took_s
        return count / took_s, (self._broker.cpu_seconds() - self._cpu_s) / count, own


class Results:
    """The table, and which of its rows are below their bars."""

    def __init__(self, arguments: argparse.Namespace, brokers: Sequence[Broker]) -> None:
        self._table = Table(arguments, [broker.name for broker in brokers])
        self._below: list[str] = []

    def add(self, name: str, values: list[float], more_is_better: bool, form: str, bar: float | None) -> None:
        self._table.add(name, values, more_is_better, form)
        if bar is None or len(values) < 2:
            return
        ratio = values[0] / values[1] if more_is_better else values[1] / values[0]
        if ratio < bar:
            self._below.append(f"{name}: {ratio:.2f}×, the bar is {bar:.1f}×")

    def tell_below(self) -> None:
        for line in self._below:
            say(f"below its bar: {line}")


Work = Callable[[Broker, float], tuple[float, float, float]]
"""Loads a broker for so many seconds."""


class Run:
    """What all rows need."""

    def __init__(self, arguments: argparse.Namespace, brokers: list[Broker]) -> None:
        self.brokers = brokers
        self.results = Results(arguments, brokers)
        self.context = client_context()
        self._rounds = 1 if arguments.brief else arguments.rounds
        self._seconds = 0.3 if arguments.brief else arguments.seconds
        self._warm_s = 0.3 if arguments.brief else arguments.warm
        self._numbers = itertools.count(1)

    def topics(self, broker: Broker, count: int) -> list[str]:
        """New ones."""
        names = [f"secured-{next(self._numbers)}" for _ in range(count)]
        for name in names:
            compare.create_topic(broker.port, name, 1, 1)
            wait_for_leader(broker, name)
        return names

    def delete(self, broker: Broker, topics: list[str]) -> None:
        with broker.connect() as wire:
            wire.ask(DeleteTopicsRequest(topic_names=topics, timeout_ms=60_000), 4)

    def connect_tls(self, port: int) -> Wire:
        return TlsWire(port, self.context)

    def measure(self, work: Work) -> list[list[float]]:
        """Rates and CPU seconds, for each broker."""
        for broker in self.brokers:
            work(broker, self._warm_s)
        *figures, own = alternating(self.brokers, self._rounds, lambda broker: work(broker, self._seconds))
        shares = ", ".join(f"{share:.0%} beside {b.name}" for b, share in zip(self.brokers, own, strict=True))
        say(f"  the load took {shares} of a core" + (" (it is the limit)" * (max(own) > CLOSE_TO_A_CORE)))
        return figures


def wait_for_leader(broker: Broker, topic: str) -> None:
    """Until a first record is acknowledged."""
    deadline = time.monotonic() + compare.LIMIT_S
    while True:
        try:
            with compare.Load(broker.port, topic, compare.batch_of(1, 100)) as load:
                load.latencies_us(1)
            return
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


# Produce


def run_produce(run: Run) -> None:
    for label, batch in (("16 KB", compare.batch_of(16, 1000)), ("1 record", compare.batch_of(1, 100))):
        for connections in CONNECTIONS:

            def work(broker: Broker, seconds: float, b: bytes = batch, c: int = connections) -> tuple[float, ...]:
                topics = run.topics(broker, c)
                port = broker.listener_ports["SSL"]
                with contextlib.ExitStack() as stack:
                    loads = [stack.enter_context(compare.Load(port, topic, b, run.connect_tls)) for topic in topics]
                    gauge = Gauge(broker)
                    found = gauge.figures(produce(loads, seconds))
                run.delete(broker, topics)
                return found

            rates, cpu = run.measure(work)
            what = f"TLS produce {label}, {connections} connection{'s' * (connections > 1)}"
            run.results.add(f"{what}: requests/s", rates, True, "{:,.0f}", TLS_BAR)
            run.results.add(f"{what}: CPU µs per request", [one * 1e6 for one in cpu], False, "{:.1f}", TLS_BAR)


def produce(loads: list[compare.Load], seconds: float) -> int:
    """Requests that were acknowledged. Connections are served in turn, so that all of them have as much to do."""
    end = time.perf_counter() + seconds
    for load in loads:
        for _ in range(IN_FLIGHT):
            load.send()
    count = 0
    while time.perf_counter() < end:
        for load in loads:
            load.receive()
            load.send()
        count += len(loads)
    for load in loads:
        for _ in range(IN_FLIGHT):
            load.receive()
    return count + IN_FLIGHT * len(loads)


# Fetch


class FetchAgain:
    """One connection that reads a topic once, and then makes the same requests without looking at the answers."""

    def __init__(self, port: int, topic: str, size: int, context: ssl.SSLContext) -> None:
        wire = TlsWire(port, context)
        self._channel = wire.channel
        self._reader = compare.Reader(port, topic, size, lambda _: wire)
        self._buffer = memoryview(bytearray(ANSWER_BYTES_MAX))
        # Where it begins, how many bytes of records it brings, and how long the answer is with its size.
        self._requests: list[tuple[int, int, int]] = []
        self._reader.fetch()  # in front of it there may be tickets for sessions
        self._channel.keep()
        self._reader.fetch()
        self._channel.learn(4 + self._reader.answer_bytes)
        self._reader.position = 0
        while True:
            offset, records_bytes = self._reader.position, self._reader.fetch()
            if records_bytes == 0:
                break
            self._requests.append((offset, records_bytes, 4 + self._reader.answer_bytes))
        self._next = 0

    def send(self) -> None:
        self._reader.request_from(self._requests[self._next][0])

    def receive(self) -> int:
        """Bytes of records."""
        _, records_bytes, answer_bytes = self._requests[self._next]
        self._channel.skip(answer_bytes, self._buffer)
        self._next = (self._next + 1) % len(self._requests)
        return records_bytes

    def close(self) -> None:
        self._channel.close()


def run_fetch(run: Run) -> None:
    topics = {broker.name: fill(run, broker) for broker in run.brokers}
    for label, size in (("64 KB", 64 << 10), ("1 MB", 1 << 20)):
        for connections in CONNECTIONS:

            def work(broker: Broker, seconds: float, s: int = size, c: int = connections) -> tuple[float, ...]:
                port, topic = broker.listener_ports["SSL"], topics[broker.name]
                with contextlib.ExitStack() as stack:
                    readers = [
                        stack.enter_context(contextlib.closing(FetchAgain(port, topic, s, run.context)))
                        for _ in range(c)
                    ]
                    gauge = Gauge(broker)
                    return gauge.figures(fetch(readers, seconds) / 1e6)

            rates, cpu = run.measure(work)
            what = f"TLS fetch {label}, {connections} connection{'s' * (connections > 1)}"
            run.results.add(f"{what}: MB/s", rates, True, "{:,.0f}", TLS_BAR)
            run.results.add(f"{what}: CPU µs per MB", [one * 1e6 for one in cpu], False, "{:,.0f}", TLS_BAR)


def fill(run: Run, broker: Broker) -> str:
    topic = run.topics(broker, 1)[0]
    batch = compare.batch_of(16, 1000)
    with compare.Load(broker.port, topic, batch) as load:
        load.latencies_us(FETCHED_TOPIC_MB * 1_000_000 // len(batch))
    return topic


def fetch(readers: list[FetchAgain], seconds: float) -> int:
    """Bytes of records that came."""
    end = time.perf_counter() + seconds
    for reader in readers:
        reader.send()
    count = 0
    while time.perf_counter() < end:
        for reader in readers:
            count += reader.receive()
            reader.send()
    return count + sum(reader.receive() for reader in readers)


# Handshakes and logins

API_VERSIONS = frame(ApiVersionsRequest("bench", "1"), 3)
SASL_HANDSHAKE = frame(SaslHandshakeRequest(MECHANISM), 1)


def visit(port: int, context: ssl.SSLContext | None, log_in: Callable[[Wire], Iterator[int]] | None) -> Iterator[int]:
    """A connection from its first to its last byte, with TLS if there is a context; yields what it waits for."""
    if context is None:
        wire = Wire(port)
    else:
        secured = TlsWire(port, context, waits=False)
        yield secured.socket.fileno()
        secured.channel.shake_hands()
        wire = secured
    with wire:
        wire.socket.sendall(API_VERSIONS)
        yield wire.socket.fileno()
        check_answer(wire.answer(), "ApiVersions")
        if log_in is not None:
            yield from log_in(wire)


def check_answer(answer: bytes, name: str) -> None:
    """Whose error code stands first."""
    error = int.from_bytes(answer[CORRELATION_ID_BYTES : CORRELATION_ID_BYTES + 2], "big")
    if error != errors.NONE:
        raise RuntimeError(f"{name} was refused: {errors.error_name(error)}")


def visit_for(seconds: float, new_visit: Callable[[], Iterator[int]]) -> int:
    """Some at once, each of which goes on when it is answered; how many there were."""
    end = time.perf_counter() + seconds
    poll = select.epoll()
    running: dict[int, Iterator[int]] = {}

    def go_on(one: Iterator[int]) -> bool:
        """False when the visit is over."""
        place = next(one, OVER)
        if place == OVER:
            return False
        running[place] = one
        with contextlib.suppress(FileExistsError):
            poll.register(place, select.EPOLLIN)
        return True

    for _ in range(AT_ONCE):
        go_on(new_visit())
    count = 0
    with poll:
        while running:
            for place, _ in poll.poll():
                # Its number may be the next visitor's when it is over: the system forgets it with the socket.
                if go_on(running.pop(place)):
                    continue
                count += 1
                if time.perf_counter() < end:
                    go_on(new_visit())
    return count


class ScramLogin:
    """The client's side, with a password that is salted already."""

    def __init__(self, salted: bytes) -> None:
        self._client_key = hmac.digest(salted, b"Client Key", DIGEST)
        self._stored_key = hashlib.new(DIGEST, self._client_key).digest()
        self._server_key = hmac.digest(salted, b"Server Key", DIGEST)

    def __call__(self, wire: Wire) -> Iterator[int]:
        wire.socket.sendall(SASL_HANDSHAKE)
        yield wire.socket.fileno()
        check_answer(wire.answer(), "SaslHandshake")
        first = f"n={USER},r={secrets.token_urlsafe(18)}"
        wire.socket.sendall(authenticate_frame(f"n,,{first}".encode()))
        yield wire.socket.fileno()
        final, expected = self._final(first, said(wire.answer()))
        wire.socket.sendall(authenticate_frame(final))
        yield wire.socket.fileno()
        if said(wire.answer()) != expected:
            raise RuntimeError("the broker does not know the password")

    def _final(self, first: str, challenge: bytes) -> tuple[bytes, bytes]:
        """The proof, and what the broker has to say to it."""
        text = challenge.decode()
        start = f"c=biws,{text[: text.index(',')]}"
        message = f"{first},{text},{start}".encode()
        signature = hmac.digest(self._stored_key, message, DIGEST)
        size = len(signature)
        proof = (int.from_bytes(self._client_key, "big") ^ int.from_bytes(signature, "big")).to_bytes(size, "big")
        expected = b"v=" + base64.b64encode(hmac.digest(self._server_key, message, DIGEST))
        return f"{start},p={base64.b64encode(proof).decode()}".encode(), expected


def authenticate_frame(token: bytes) -> bytes:
    return frame(SaslAuthenticateRequest(token), AUTHENTICATE_VERSION)


def said(answer: bytes) -> bytes:
    response = SaslAuthenticateResponse.decode(Reader(answer, CORRELATION_ID_BYTES), AUTHENTICATE_VERSION)
    if response.error_code != errors.NONE:
        raise RuntimeError(f"{errors.error_name(response.error_code)}: {response.error_message}")
    return bytes(response.auth_bytes)


def add_user(broker: Broker, salt: bytes, salted: bytes) -> None:
    row = ScramCredentialUpsertion(USER, MECHANISM_NUMBER, ITERATIONS, salt, salted)
    with broker.connect() as wire:
        answer = wire.ask(AlterUserScramCredentialsRequest([], [row]), 0)
    if answer.results[0].error_code != errors.NONE:
        raise RuntimeError(f"{broker.name} has no user: {answer.results[0].error_message}")
    time.sleep(1.0)  # until the broker has read it in its metadata


def measure_visits(
    run: Run, what: str, bar: float | None, new_visit: Callable[[Broker], Callable[[], Iterator[int]]]
) -> None:
    def work(broker: Broker, seconds: float) -> tuple[float, float, float]:
        gauge = Gauge(broker)
        return gauge.figures(visit_for(seconds, new_visit(broker)))

    rates, cpu = run.measure(work)
    run.results.add(f"{what}/s", rates, True, "{:,.0f}", bar)
    run.results.add(f"{what}: CPU µs for each", [one * 1e6 for one in cpu], False, "{:,.0f}", None)


def run_handshakes(run: Run) -> None:
    measure_visits(
        run, "TLS handshakes", None, lambda broker: partial(visit, broker.listener_ports["SSL"], run.context, None)
    )


def run_logins(run: Run) -> None:
    salt = secrets.token_bytes(20)
    salted = hashlib.pbkdf2_hmac(DIGEST, PASSWORD, salt, ITERATIONS)
    log_in = ScramLogin(salted)
    for broker in run.brokers:
        add_user(broker, salt, salted)
    for protocol, context in (("SASL_PLAINTEXT", None), ("SASL_SSL", run.context)):

        def new_visit(
            broker: Broker, p: str = protocol, c: ssl.SSLContext | None = context
        ) -> Callable[[], Iterator[int]]:
            return partial(visit, broker.listener_ports[p], c, log_in)

        measure_visits(run, f"{MECHANISM} logins over {protocol}", LOGIN_BAR, new_visit)


ROWS: dict[str, Callable[[Run], None]] = {
    "produce": run_produce,
    "fetch": run_fetch,
    "handshakes": run_handshakes,
    "logins": run_logins,
}


def tell_cipher(broker: Broker, context: ssl.SSLContext) -> None:
    with TlsWire(broker.listener_ports["SSL"], context) as wire:
        assert isinstance(wire.socket, LeanTls)
        say(f"{broker.name} chooses {wire.socket.cipher()}")


def main() -> None:
    parser = parser_of(__doc__, list(ROWS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a round is, for each broker")
    parser.add_argument("--warm", type=float, default=6.0, help="seconds before the first round")
    parser.add_argument("--certificate", choices=tuple(KEYS), default="ec", help="P-256, or RSA with 2,048 bits")
    parser.add_argument("--only", choices=("moldau", "kafka"), help="one of the two, without ratios")
    parser.add_argument("--brief", action="store_true", help="only to see that it runs")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moldau-bench-")))
        settings = settings_with(make_certificate(directory, arguments.certificate))
        brokers = [stack.enter_context(Broker(one, settings, PROTOCOLS)) for one in compare.programs(arguments)]
        for broker in brokers:
            broker.start()
        run = Run(arguments, brokers)
        for broker in brokers:
            tell_cipher(broker, run.context)
        for row in arguments.rows:
            ROWS[row](run)
        run.results.tell_below()


if __name__ == "__main__":
    main()
