"""Who is looking: sessions of browsers, and logins with the broker's own users.

A login is a connection to the broker as that user; the password stays in the memory of the session's clients and goes
with them. The console has no users and no rights of its own.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping

from moldau.actions.clients import ADMIN, in_thread
from moldau.actions.refusals import Refused
from moldau.actions.viewer import Viewer
from moldau.client.errors import ClientError
from moldau.console.errors import LoginWanted
from moldau.console.sasl_probe import Listener, ask_listener
from moldau.console.settings import ConsoleSettings
from moldau.protocol.errors import UNSUPPORTED_SASL_MECHANISM

SESSIONS_MAX = 1_000
LOGINS_MAX = 4
ADDRESSES_MAX = 10_000
FAILED_DELAY_S = 0.5
FAILED_DELAY_MAX_S = 5.0
# In the order in which they are tried: the password does not leave the console with the first two.
SCRAM = ("SCRAM-SHA-512", "SCRAM-SHA-256")
PLAIN = "PLAIN"
NOBODY = "anonymous"


class Session:
    """One browser: its secret for changes, and the viewer that acts for it, None before a login."""

    def __init__(self, viewer: Viewer | None, user: str) -> None:
        self.id = secrets.token_urlsafe(32)
        self.csrf = secrets.token_urlsafe(32)
        self.viewer = viewer
        self.user = user
        self.used_at = time.monotonic()


class Sessions:
    """All sessions; those that nobody uses end."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._settings = settings
        self._sessions: dict[str, Session] = {}
        self._everybody: Viewer | None = None
        self._listener: Listener | None = None
        self._logins = asyncio.Semaphore(LOGINS_MAX)
        self._failures: dict[str, int] = {}

    # Whether a login is wanted

    async def login_wanted(self) -> bool:
        """As told, or as the settings of the client or the broker's listener say."""
        settings = self._settings
        if settings.login is not None:
            return settings.login
        if settings.has_credentials:
            return False
        protocol = settings.clients.get(ADMIN, {}).get("security.protocol")
        if protocol is not None:
            return str(protocol).upper().startswith("SASL")
        return (await self._ask_listener()).wants_login

    async def _ask_listener(self) -> Listener:
        if self._listener is None:
            found = await in_thread(lambda: ask_listener(self._settings.bootstrap))
            if not found.responded:
                raise Refused(f"No broker responds at {self._settings.bootstrap}.", 503, "AWAY")
            self._listener = found
        return self._listener

    # Sessions

    def find(self, session_id: str | None) -> Session | None:
        """The session of a cookie, unless it has ended."""
        self._end_idle()
        session = self._sessions.get(session_id or "")
        if session is not None:
            session.used_at = time.monotonic()
        return session

    async def begin(self) -> Session:
        """A session of somebody who has not logged in, where that is not wanted with rights to look."""
        session = Session(None if await self.login_wanted() else self._viewer_of_everybody(), NOBODY)
        self._add(session)
        return session

    def _viewer_of_everybody(self) -> Viewer:
        if self._everybody is None:
            self._everybody = Viewer(self._settings.clients)
        return self._everybody

    def _add(self, session: Session) -> None:
        while len(self._sessions) >= SESSIONS_MAX:
            oldest = min(self._sessions.values(), key=lambda each: each.used_at)
            self._drop(oldest)
        self._sessions[session.id] = session

    def _end_idle(self) -> None:
        limit = time.monotonic() - self._settings.idle_s
        for session in [each for each in self._sessions.values() if each.used_at < limit]:
            self._drop(session)

    def _drop(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
        viewer, session.viewer = session.viewer, None
        if viewer is not None and viewer is not self._everybody:
            asyncio.get_running_loop().create_task(viewer.close())

    async def warm_up(self) -> None:
        """Asks for what the first page will want, where everybody sees the same."""
        try:
            if not await self.login_wanted():
                viewer = self._viewer_of_everybody()
                await asyncio.gather(viewer.cluster.get(), viewer.topics.get(), viewer.groups.get())
        except (ClientError, Refused):
            pass

    async def end_idle_forever(self) -> None:
        """Credentials do not stay in memory until the next request."""
        while True:
            await asyncio.sleep(min(30.0, self._settings.idle_s))
            self._end_idle()

    async def close(self) -> None:
        for session in list(self._sessions.values()):
            self._drop(session)
        if self._everybody is not None:
            await self._everybody.close()

    # Logins

    async def log_in(self, before: Session, user: str, password: str, mechanism: str, address: str) -> Session:
        """A new session as that user; raises LoginWanted where the broker does not take them."""
        if not await self.login_wanted():
            raise Refused("This console does not ask for logins: the broker wants none.")
        if not user or not password:
            raise LoginWanted("Give a user and a password.")
        async with self._logins:
            try:
                viewer = await self._connect(user, password, await self._mechanisms(mechanism))
            except ClientError:
                failed = min(self._failures.pop(address, 0) + 1, 10)
                while len(self._failures) >= ADDRESSES_MAX:
                    del self._failures[next(iter(self._failures))]  # that of the longest ago
                self._failures[address] = failed
                await asyncio.sleep(min(FAILED_DELAY_S * 2 ** (failed - 1), FAILED_DELAY_MAX_S))
                raise
        self._failures.pop(address, None)
        # Another id than before: nobody who knew the old one is logged in by this.
        self._drop(before)
        session = Session(viewer, user)
        self._add(session)
        return session

    def log_out(self, session: Session) -> None:
        self._drop(session)

    async def _mechanisms(self, given: str) -> list[str]:
        """Those to try: the one that was chosen or is set, else what the broker has, PLAIN as the last."""
        told = given or self._settings.clients.get(ADMIN, {}).get("sasl.mechanism")
        if told:
            return [str(told)]
        offered: tuple[str, ...] = ()
        if not self._has_tls:
            try:
                offered = (await self._ask_listener()).mechanisms
            except Refused:
                pass  # the login itself will tell that nobody is there
        known = [name for name in (*SCRAM, PLAIN) if not offered or name in offered]
        # A password goes over the wire in the clear only to a broker that has nothing better.
        return known if self._has_tls or not set(known) & set(SCRAM) else [name for name in known if name != PLAIN]

    @property
    def _has_tls(self) -> bool:
        return "SSL" in str(self._settings.clients.get(ADMIN, {}).get("security.protocol", "")).upper()

    async def _connect(self, user: str, password: str, mechanisms: list[str]) -> Viewer:
        error: ClientError | None = None
        for mechanism in mechanisms:
            viewer = Viewer(self._settings.clients, self._credentials(user, password, mechanism))
            try:
                await viewer.cluster.get()
                return viewer
            except ClientError as failed:
                await viewer.close()
                if error is None or error.code == UNSUPPORTED_SASL_MECHANISM:
                    error = failed
        assert error is not None
        raise error

    def _credentials(self, user: str, password: str, mechanism: str) -> Mapping[str, object]:
        return {
            "security.protocol": "SASL_SSL" if self._has_tls else "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
