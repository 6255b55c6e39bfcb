"""How a node logs in at other nodes, before its first request on a connection and when a session is to be renewed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from moldau.protocol import errors
from moldau.protocol.api_keys import request_header_version, response_header_version
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from moldau.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from moldau.protocol.primitives import DecodeError, Message, Reader, Writer
from moldau.security.exchange import LoginRefused, SaslClient

# Every broker since 2.5 has them.
HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 2
RENEW_PERCENT: Final = 85
"""Java's client renews a session when 85 to 95 % of its time are over."""
THREADS_MAX: Final = 2


class OutboundLogin:
    """As whom channels log in. Steps may take long, for proofs or for tokens of others: they run on a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, new_client: Callable[[], SaslClient]) -> None:
        self._loop = loop
        self._new_client = new_client
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="outbound-login")

    def begin(self, client_id: str, send: Callable[[bytes], None], done: Callable[[int], None]) -> LoginTalk:
        """`send` gets frames with their size, `done` for how long the login counts in milliseconds, 0 for good."""
        return LoginTalk(self, client_id, send, done)

    def new_client(self) -> SaslClient:
        return self._new_client()

    def run(self, step: Callable[[], bytes | None], on_done: Callable[[Future[bytes | None]], None]) -> None:
        def ended(future: Future[bytes | None]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(on_done, future)

        self._threads.submit(step).add_done_callback(ended)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class LoginTalk:
    """One login on one connection. `on_failed` is told why it failed, where that happens outside `receive`."""

    def __init__(
        self, login: OutboundLogin, client_id: str, send: Callable[[bytes], None], done: Callable[[int], None]
    ) -> None:
        self._login = login
        self._client_id = client_id
        self._send = send
        self._done = done
        self._client: SaslClient | None = None
        self._correlation_id = 0
        self._api_key = SaslHandshakeRequest.API_KEY
        self._lifetime_ms = 0
        self.is_over = False
        """Nobody waits for it any more."""
        self.on_failed: Callable[[str], None] = lambda reason: None

    def start(self) -> None:
        self._login.run(self._make_client, self._on_client)

    def _make_client(self) -> bytes | None:
        """On a thread: a client may have to ask somebody for a token."""
        self._client = self._login.new_client()
        return None

    def _on_client(self, ended: Future[bytes | None]) -> None:
        if self.is_over:
            return
        error = ended.exception()
        if error is not None:
            self._fail(str(error) if isinstance(error, LoginRefused) else repr(error))
            return
        assert self._client is not None
        self._say(SaslHandshakeRequest(self._client.mechanism), HANDSHAKE_VERSION)

    def receive(self, data: bytes, start: int, end: int) -> None:
        """A response. DecodeError where it is none; LoginRefused where the other side does not take us."""
        reader = Reader(data, start, end)
        version = HANDSHAKE_VERSION if self._api_key == SaslHandshakeRequest.API_KEY else AUTHENTICATE_VERSION
        header = ResponseHeader.decode(reader, response_header_version(self._api_key, version))
        client = self._client
        if client is None or header.correlation_id != self._correlation_id:
            raise DecodeError("it is no response to a request of ours")
        if self._api_key == SaslHandshakeRequest.API_KEY:
            self._on_handshake(client, SaslHandshakeResponse.decode(reader, version))
        else:
            self._on_authenticate(client, SaslAuthenticateResponse.decode(reader, version))

    def _on_handshake(self, client: SaslClient, response: SaslHandshakeResponse) -> None:
        if response.error_code != errors.NONE:
            offered = ", ".join(response.mechanisms) or "none"
            raise LoginRefused(f"{client.mechanism} is not enabled there, enabled mechanisms are {offered}")
        self._login.run(client.first, self._on_step)

    def _on_authenticate(self, client: SaslClient, response: SaslAuthenticateResponse) -> None:
        if response.error_code != errors.NONE:
            raise LoginRefused(response.error_message or f"error {response.error_code}")
        self._lifetime_ms = response.session_lifetime_ms
        said = bytes(response.auth_bytes)
        self._login.run(lambda: client.next(said), self._on_step)

    def _on_step(self, ended: Future[bytes | None]) -> None:
        if self.is_over:
            return
        error = ended.exception()
        if error is not None:
            self._fail(str(error) if isinstance(error, LoginRefused) else repr(error))
            return
        said = ended.result()
        if said is None:
            self.is_over = True
            self._done(self._lifetime_ms)
        else:
            self._say(SaslAuthenticateRequest(said), AUTHENTICATE_VERSION)

    def _fail(self, reason: str) -> None:
        self.is_over = True
        self.on_failed(reason)

    def _say(self, request: Message, version: int) -> None:
        self._correlation_id += 1
        self._api_key = type(request).API_KEY
        writer = Writer()
        writer.int32(0)
        header = RequestHeader(self._api_key, version, self._correlation_id, self._client_id)
        header.encode(writer, request_header_version(self._api_key, version))
        request.encode(writer, version)
        writer.set_int32(0, writer.size - 4)
        self._send(writer.to_bytes())
