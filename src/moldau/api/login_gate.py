"""What stands before the handlers of a listener with SASL: nobody gets further who is not known.

A gate belongs to one connection. Its `handle` takes the place of the dispatcher's until the login is complete, and for
good where a login may end before the connection. What a login does and in which order is in `moldau.security.login`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.node.context import ClientContext
from moldau.node.reply import Reply
from moldau.protocol.primitives import DecodeError
from moldau.security.exchange import Derivation
from moldau.security.login import PASS, REFUSE, SEND, WAIT, Action, Identity, Login, Mechanism, Session

# That of connections: its lines are limited, because strangers cause them.
log = logging.getLogger("moldau.net")

Handle = Callable[[ClientContext, bytes, int, int, int], Reply]


class GateKeeper:
    """What the gates of one listener have in common."""

    def __init__(
        self,
        mechanisms: dict[str, Mechanism],
        *,
        failure_delay_ms: int,
        receive_bytes_max: int,
        timeout_ms: int,
        dispatch: Handle,
        wall_ms: Callable[[int], int],
        later: Callable[[int, Callable[[], None]], None],
        compute: Callable[[Callable[[], bytes], Callable[[bytes, int], None]], None],
    ) -> None:
        """`wall_ms` is the calendar's time of a moment. `later` calls after so many milliseconds, `compute` runs a
        function elsewhere and calls back with what it returned and `now_ms`."""
        self.mechanisms = mechanisms
        self.failure_delay_ms = failure_delay_ms
        self.receive_bytes_max = receive_bytes_max
        self.timeout_ms = timeout_ms
        self.dispatch = dispatch
        self.wall_ms = wall_ms
        self.later = later
        self.compute = compute
        self.successful_total = 0
        self.failed_total = 0
        self.renewed_total = 0
        self.failed_renewal_total = 0
        self.expired_total = 0

    def new_gate(self, context: ClientContext) -> LoginGate:
        return LoginGate(self, context)


class LoginGate:
    """See the module. `on_open` is called when the login is complete, with what handles frames from then on."""

    def __init__(self, keeper: GateKeeper, context: ClientContext) -> None:
        self._keeper = keeper
        self._context = context
        self._login: Login | None = Login(keeper.mechanisms)
        self._session: Session | None = None
        self.on_open: Callable[[Handle], None] | None = None

    def handle(self, context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
        """As that of a dispatcher."""
        login = self._login
        if login is None:
            session = self._session
            assert session is not None, "a gate without a session is not asked any more"
            login = self._login = session.begins_again(data, start, end, now_ms)
            if login is None:
                return self._in_session(session, data, start, end, now_ms)
        keeper = self._keeper
        try:
            action = login.receive(data, start, end, now_ms, keeper.wall_ms(now_ms))
            if action.kind == PASS:
                return self._pass(login, data, start, end, now_ms)
        except DecodeError:
            self._count_failure()
            raise
        reply = Reply()
        if action.kind == WAIT:
            assert action.derivation is not None
            self._wait(reply, login, action.derivation)
        else:
            self._act(reply, login, action)
        return reply

    def _pass(self, login: Login, data: bytes, start: int, end: int, now_ms: int) -> Reply:
        """ApiVersions is answered to everybody."""
        reply = self._keeper.dispatch(self._context, data, start, end, now_ms)
        first = reply.parts[0] if reply.done and reply.parts else None
        if isinstance(first, bytes):
            # Its header has no tags in any version: size, correlation id, error code.
            login.on_versions_response(int.from_bytes(first[8:10], "big"))
        return reply

    def _wait(self, reply: Reply, login: Login, derivation: Derivation) -> None:
        waiting = WaitingLogin(self, reply, login)
        reply.on_abandon = waiting.abandon
        self._keeper.compute(derivation.compute, waiting.resume)

    def resume(self, reply: Reply, login: Login, derived: bytes, now_ms: int) -> None:
        """Goes on with what was derived elsewhere."""
        if self._login is login:
            self._act(reply, login, login.resume(derived, now_ms, self._keeper.wall_ms(now_ms)))

    def _act(self, reply: Reply, login: Login, action: Action) -> None:
        frame = action.frame
        if action.kind == REFUSE:
            self._refuse(reply, action)
            return
        assert action.kind == SEND and frame is not None
        if login.identity is not None:
            self._open(login.identity)
        reply.complete([len(frame).to_bytes(4, "big") + frame])

    def _refuse(self, reply: Reply, action: Action) -> None:
        """Held back, with nothing read meanwhile: who tries passwords has to wait, and only he."""
        self._count_failure()
        name, peer = self._context.listener, self._context.peer
        log.warning("Failed authentication with %s on listener %s (%s)", peer, name, action.reason)
        reply.close_connection = True
        refusal = HeldBackRefusal(reply, action.frame)
        if self._keeper.failure_delay_ms > 0:
            reply.mute_ms = self._keeper.failure_delay_ms
            self._keeper.later(self._keeper.failure_delay_ms, refusal.send)
        else:
            refusal.send()

    def _count_failure(self) -> None:
        if self._session is None:
            self._keeper.failed_total += 1
        else:
            self._keeper.failed_renewal_total += 1

    def _open(self, identity: Identity) -> None:
        keeper, context = self._keeper, self._context
        context.principal = identity.principal
        context.rights = None
        context.token_authenticated = identity.token_authenticated
        self._login = None
        if self._session is not None:
            self._session.identity = identity
            keeper.renewed_total += 1
            return
        keeper.successful_total += 1
        if identity.may_end:
            self._session = Session(keeper.mechanisms, identity)
        if self.on_open is not None:
            self.on_open(keeper.dispatch if self._session is None else self.handle)

    def _in_session(self, session: Session, data: bytes, start: int, end: int, now_ms: int) -> Reply:
        if not session.is_over(now_ms):
            return self._keeper.dispatch(self._context, data, start, end, now_ms)
        self._keeper.expired_total += 1
        reply = Reply()
        reply.close_connection = True
        reply.complete(None)
        return reply


class WaitingLogin:
    """A login whose next response is derived elsewhere, until its connection is gone."""

    def __init__(self, gate: LoginGate, reply: Reply, login: Login) -> None:
        self._gate = gate
        self._reply = reply
        self._login = login
        self._is_abandoned = False

    def abandon(self) -> None:
        self._is_abandoned = True

    def resume(self, derived: bytes, now_ms: int) -> None:
        if not self._is_abandoned:
            self._gate.resume(self._reply, self._login, derived, now_ms)


class HeldBackRefusal:
    """The response to a login that failed, sent when its delay is over."""

    def __init__(self, reply: Reply, frame: bytes | None) -> None:
        self._reply = reply
        self._frame = frame

    def send(self) -> None:
        reply, frame = self._reply, self._frame
        reply.mute_ms = 0
        if not reply.done:
            reply.complete(None if frame is None else [len(frame).to_bytes(4, "big") + frame])
