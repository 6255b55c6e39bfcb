"""A connection until its client is known, and when it has to say again who it is (KIP-43, KIP-152, KIP-368).

    START -> (ApiVersions) -> VERSIONS -> SaslHandshake -> TOKENS -> ... -> COMPLETE
                                              every failure -> ENDED

Before the handshake only ApiVersions and SaslHandshake are looked at, and that by their headers. A handshake of version
0 is followed by bare tokens, one of version 1 by SaslAuthenticate requests. Kafka: SaslServerAuthenticator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.protocol import errors
from moldau.protocol.api_keys import BY_KEY, request_class, request_header_version, response_class
from moldau.protocol.api_keys import response_header_version as header_version_of
from moldau.protocol.api_table import API_VERSIONS, SASL_HANDSHAKE
from moldau.protocol.messages.headers import RequestHeader
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from moldau.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, Writer
from moldau.security.exchange import NO_EXPIRY_MS, Confirm, Derivation, LoginRefused, SaslServer

START: Final = 0
VERSIONS: Final = 1
"""ApiVersions had a good response: only a handshake may follow."""
TOKENS: Final = 2
COMPLETE: Final = 3
ENDED: Final = 4
TRANSITIONS: Final = {
    START: (VERSIONS, TOKENS, ENDED),
    VERSIONS: (TOKENS, ENDED),
    TOKENS: (COMPLETE, ENDED),
    COMPLETE: (),
    ENDED: (),
}

# What is to be done with a frame.
PASS: Final = 0
"""It is an ordinary request; `Login.on_versions_response` is told what came of ApiVersions."""
SEND: Final = 1
REFUSE: Final = 2
"""The response, if there is one, is held back for the delay of failures, then the connection ends."""
WAIT: Final = 3
"""For a derivation; `Login.resume` has the response."""

REAUTHENTICATION_INTERVAL_MS: Final = 1000

Maker = Callable[[], SaslServer]


class Mechanism:
    """One mechanism of a listener: what begins a dialogue, and for how long a login counts (0: for good)."""

    def __init__(self, new_server: Maker, max_reauth_ms: int = 0) -> None:
        self.new_server = new_server
        self.max_reauth_ms = max_reauth_ms


class Identity:
    """Who has logged in."""

    def __init__(
        self,
        principal: str,
        token_authenticated: bool,
        mechanism: str,
        session_end_ms: int,
        confirm: Confirm | None = None,
    ) -> None:
        self.principal = principal
        self.token_authenticated = token_authenticated
        self.mechanism = mechanism
        self.session_end_ms = session_end_ms
        """NO_EXPIRY_MS, or when the client has to have logged in again, by the steady clock."""
        self.confirm = confirm
        """None where the login is beyond doubt."""

    @property
    def may_end(self) -> bool:
        return self.session_end_ms < NO_EXPIRY_MS or self.confirm is not None


class Action:
    """What a frame leads to; `frame` is without its size."""

    def __init__(
        self, kind: int, frame: bytes | None = None, derivation: Derivation | None = None, reason: str = ""
    ) -> None:
        self.kind = kind
        self.frame = frame
        self.derivation = derivation
        self.reason = reason
        """Why a login failed, for the log: never with what the client sent."""


class Login:
    """One login of one connection. `before` is who it was until now, where a client logs in again."""

    def __init__(self, mechanisms: dict[str, Mechanism], before: Identity | None = None) -> None:
        self._mechanisms = mechanisms
        self._before = before
        self.state = START if before is None else VERSIONS
        self.identity: Identity | None = None
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._takes_bare_tokens = False
        self._awaited: tuple[RequestHeader | None, Derivation] | None = None

    def receive(self, data: bytes, start: int, end: int, now_ms: int, wall_ms: int) -> Action:
        """A frame from the client. DecodeError: it is none of Kafka's, and the connection ends without a response."""
        assert self.state not in (COMPLETE, ENDED), "nobody listens any more"
        if self._awaited is not None:
            raise self._illegal("a frame came before the response to the one before it")
        if self.state == TOKENS:
            return self._on_token(data, start, end, now_ms, wall_ms)
        return self._on_request(data, start, end)

    def on_versions_response(self, error_code: int) -> None:
        """After PASS: ApiVersions may be repeated as long as the response is an error."""
        if error_code == errors.NONE:
            self._become(VERSIONS)

    def _become(self, state: int) -> None:
        assert state in TRANSITIONS[self.state], f"a login does not go from {self.state} to {state}"
        self.state = state

    def _illegal(self, sentence: str) -> DecodeError:
        self._become(ENDED)
        return DecodeError(sentence)

    # The handshake

    def _on_request(self, data: bytes, start: int, end: int) -> Action:
        reader = Reader(data, start, end)
        api_key = reader.int16()
        if api_key == API_VERSIONS and self.state == START:
            return Action(PASS)
        if api_key != SASL_HANDSHAKE:
            name = BY_KEY[api_key].name if api_key in BY_KEY else f"API key {api_key}"
            raise self._illegal(f"{name} came where a login has to begin")
        header, request = _decode(data, start, end)
        assert isinstance(request, SaslHandshakeRequest)
        return self._on_handshake(header, request)

    def _on_handshake(self, header: RequestHeader, request: SaslHandshakeRequest) -> Action:
        offered = list(self._mechanisms)
        if request.mechanism not in self._mechanisms:
            self._become(ENDED)
            reason = f"the mechanism {shown(request.mechanism)} is not enabled"
            if self._before is not None:
                return Action(REFUSE, reason=reason)
            response = SaslHandshakeResponse(errors.UNSUPPORTED_SASL_MECHANISM, offered)
            return Action(REFUSE, encode(header, response), reason=reason)
        self._mechanism = request.mechanism
        self._takes_bare_tokens = header.request_api_version == 0
        self._server = self._mechanisms[request.mechanism].new_server()
        self._become(TOKENS)
        return Action(SEND, encode(header, SaslHandshakeResponse(errors.NONE, offered)))

    # Tokens

    def _on_token(self, data: bytes, start: int, end: int, now_ms: int, wall_ms: int) -> Action:
        if self._before is not None and self._before.mechanism != self._mechanism:
            self._become(ENDED)
            return Action(REFUSE, reason=f"it was {self._before.mechanism} before, and {self._mechanism} now")
        if self._takes_bare_tokens:
            return self._evaluate(None, data[start:end], now_ms, wall_ms)
        header, request = _decode(data, start, end)
        if not isinstance(request, SaslAuthenticateRequest):
            self._become(ENDED)
            name = BY_KEY[header.request_api_key].name
            return Action(REFUSE, illegal_state_response(header), reason=f"{name} came instead of SaslAuthenticate")
        return self._evaluate(header, bytes(request.auth_bytes), now_ms, wall_ms)

    def _evaluate(self, header: RequestHeader | None, token: bytes, now_ms: int, wall_ms: int) -> Action:
        assert self._server is not None
        try:
            said = self._server.evaluate(token, wall_ms)
            if isinstance(said, Derivation):
                self._awaited = (header, said)
                return Action(WAIT, derivation=said)
            return self._respond(header, said, now_ms, wall_ms)
        except LoginRefused as refused:
            return self._refuse(header, refused)

    def resume(self, derived: bytes, now_ms: int, wall_ms: int) -> Action:
        """After WAIT: goes on with what was derived."""
        assert self._awaited is not None
        header, derivation = self._awaited
        self._awaited = None
        try:
            return self._respond(header, derivation.resume(derived), now_ms, wall_ms)
        except LoginRefused as refused:
            return self._refuse(header, refused)

    def _respond(self, header: RequestHeader | None, said: bytes, now_ms: int, wall_ms: int) -> Action:
        assert self._server is not None
        lifetime_ms = 0
        if self._server.is_complete:
            lifetime_ms = self._complete(self._server, now_ms, wall_ms)
        if header is None:
            return Action(SEND, said)
        return Action(SEND, encode(header, SaslAuthenticateResponse(errors.NONE, "", said, lifetime_ms)))

    def _complete(self, server: SaslServer, now_ms: int, wall_ms: int) -> int:
        """Returns for how long the login counts; 0 where it is for good, or over at once."""
        before = self._before
        if before is not None and before.principal != server.principal:
            old, new = before.principal.replace(":", ".", 1), server.principal.replace(":", ".", 1)
            raise LoginRefused(f"Cannot change principals during re-authentication from {old}: {new}")
        lifetime_ms = self._lifetime_ms(server, wall_ms)
        session_end_ms = NO_EXPIRY_MS if lifetime_ms is None else now_ms + lifetime_ms
        self.identity = Identity(
            server.principal, server.token_authenticated, server.mechanism, session_end_ms, server.confirm
        )
        self._become(COMPLETE)
        return lifetime_ms or 0

    def _lifetime_ms(self, server: SaslServer, wall_ms: int) -> int | None:
        max_reauth_ms = self._mechanisms[server.mechanism].max_reauth_ms
        if server.expires_wall_ms >= NO_EXPIRY_MS:
            return max_reauth_ms if max_reauth_ms > 0 else None
        left_ms = max(0, server.expires_wall_ms - wall_ms)
        return min(left_ms, max_reauth_ms) if max_reauth_ms > 0 else left_ms

    def _refuse(self, header: RequestHeader | None, refused: LoginRefused) -> Action:
        self._become(ENDED)
        told = refused.told
        if told is None:
            action = "authentication" if self._before is None else "re-authentication"
            told = f"Authentication failed during {action} due to invalid credentials with SASL mechanism "
            told += self._mechanism
        if header is None:
            return Action(REFUSE, reason=refused.reason)
        response = SaslAuthenticateResponse(errors.SASL_AUTHENTICATION_FAILED, told, b"", 0)
        return Action(REFUSE, encode(header, response), reason=refused.reason)


class Session:
    """A login that counts for a limited time, or has to be confirmed: what may come, and when it is over."""

    def __init__(self, mechanisms: dict[str, Mechanism], identity: Identity) -> None:
        self._mechanisms = mechanisms
        self.identity = identity
        self._began_again_ms = -REAUTHENTICATION_INTERVAL_MS

    def begins_again(self, data: bytes, start: int, end: int, now_ms: int) -> Login | None:
        """The new login, if the frame is a handshake that begins one. At most once a second; what comes sooner is an
        ordinary request."""
        is_handshake = end - start >= 2 and int.from_bytes(data[start : start + 2], "big") == SASL_HANDSHAKE
        if not is_handshake or now_ms - self._began_again_ms < REAUTHENTICATION_INTERVAL_MS:
            return None
        self._began_again_ms = now_ms
        return Login(self._mechanisms, self.identity)

    def is_over(self, now_ms: int) -> bool:
        return now_ms >= self.identity.session_end_ms or self._is_refuted(self.identity)

    def _is_refuted(self, identity: Identity) -> bool:
        """Asked only until it is known: a login outlives a later change of the password."""
        confirmed = identity.confirm() if identity.confirm is not None else True
        if confirmed:
            identity.confirm = None
        return confirmed is False


def shown(text: str) -> str:
    """What a stranger sent, short and in one line."""
    return repr(text[:40])


def _decode(data: bytes, start: int, end: int) -> tuple[RequestHeader, Message]:
    """Header and body; DecodeError where this broker does not serve that version of that API."""
    reader = Reader(data, start, end)
    api_key, version = reader.int16(), reader.int16()
    api = BY_KEY.get(api_key)
    if api is None or not api.serves(version):
        raise DecodeError(f"version {version} of API key {api_key} does not exist")
    reader = Reader(data, start, end)
    header = RequestHeader.decode(reader, request_header_version(api_key, version))
    return header, request_class(api_key).decode(reader, version)


def encode(header: RequestHeader, response: Message) -> bytes:
    writer = Writer()
    writer.int32(header.correlation_id)
    if header_version_of(header.request_api_key, header.request_api_version) > 0:
        writer.uvarint(0)
    response.encode(writer, header.request_api_version)
    return writer.to_bytes()


def illegal_state_response(header: RequestHeader) -> bytes | None:
    """The response of any API with ILLEGAL_SASL_STATE where it has a place for it; None where it cannot be written."""
    response = response_class(header.request_api_key)()
    if "error_code" in type(response).FIELDS:
        response.error_code = errors.ILLEGAL_SASL_STATE  # type: ignore[attr-defined]
    try:
        return encode(header, response)
    except EncodeError:
        return None
