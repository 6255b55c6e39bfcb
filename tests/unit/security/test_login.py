"""Every row of what may come before a login, and of logging in again."""

from __future__ import annotations

import re
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.api_table import API_VERSIONS, METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.api_versions_response import ApiVersionsResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.primitives import DecodeError
from moldau.security.exchange import NO_EXPIRY_MS, Derivation, LoginRefused, SaslServer
from moldau.security.login import (
    COMPLETE,
    ENDED,
    PASS,
    REFUSE,
    SEND,
    TRANSITIONS,
    WAIT,
    Action,
    Identity,
    Login,
    Mechanism,
    Session,
)
from moldau.security.plain import PlainServer
from tests.unit.security.wire import answer, authenticate, frame, handshake

USERS = {"alice": "secret", "bob": "other"}
NOW_MS, WALL_MS = 1_000, 5_000_000
VERSIONS_FRAME = frame(ApiVersionsRequest(), 0)


class Expiring(SaslServer):
    """Its client shows something that is over at a time."""

    def __init__(self, expires_wall_ms: int = WALL_MS + 400) -> None:
        super().__init__("EXPIRING")
        self._expires = expires_wall_ms

    def evaluate(self, token: bytes, wall_ms: int) -> bytes:
        if token == b"more":
            return b"go on"
        self.expires_wall_ms = self._expires
        self.complete(token.decode())
        return b"done"


class Slow(SaslServer):
    """Has to compute."""

    def __init__(self) -> None:
        super().__init__("SLOW")

    def evaluate(self, token: bytes, wall_ms: int) -> Derivation:
        def resume(derived: bytes) -> bytes:
            if token == b"bad":
                raise LoginRefused(None, "computed in vain")
            self.complete("slow")
            return derived

        return Derivation(lambda: b"computed", resume)


def mechanisms(max_reauth_ms: int = 0) -> dict[str, Mechanism]:
    return {
        "PLAIN": Mechanism(lambda: PlainServer(USERS), max_reauth_ms),
        "EXPIRING": Mechanism(Expiring, max_reauth_ms),
        "SLOW": Mechanism(Slow, max_reauth_ms),
    }


def say(login: Login, data: bytes) -> Action:
    padded = b"\xff" * 3 + data + b"\xff" * 2
    return login.receive(padded, 3, 3 + len(data), NOW_MS, WALL_MS)


def shake(login: Login, mechanism: str = "PLAIN", version: int = 1) -> Any:
    action = say(login, handshake(mechanism, version))
    assert action.kind == SEND
    return answer(action.frame, SASL_HANDSHAKE, version)


def told(action: Action, version: int = 2) -> Any:
    return answer(action.frame, SASL_AUTHENTICATE, version)


def logged_in(max_reauth_ms: int = 0, mechanism: str = "PLAIN", token: bytes = b"\0alice\0secret") -> Login:
    login = Login(mechanisms(max_reauth_ms))
    shake(login, mechanism)
    assert say(login, authenticate(token)).kind == SEND
    assert login.state == COMPLETE
    return login


def test_a_login_from_versions_to_the_end() -> None:
    login = Login(mechanisms())
    assert say(login, VERSIONS_FRAME).kind == PASS
    login.on_versions_response(errors.NONE)
    response = shake(login)
    assert (response.error_code, sorted(response.mechanisms)) == (0, ["EXPIRING", "PLAIN", "SLOW"])
    response = told(say(login, authenticate(b"\0alice\0secret")))
    fields = (response.error_code, response.error_message, response.auth_bytes, response.session_lifetime_ms)
    assert fields == (0, "", b"", 0)
    identity = login.identity
    assert identity is not None and not identity.may_end
    assert (identity.principal, identity.token_authenticated, identity.mechanism) == ("User:alice", False, "PLAIN")


def test_versions_may_be_repeated_until_they_were_answered_well() -> None:
    login = Login(mechanisms())
    for code in (errors.UNSUPPORTED_VERSION, errors.INVALID_REQUEST, errors.NONE):
        assert say(login, VERSIONS_FRAME).kind == PASS
        login.on_versions_response(code)
    with pytest.raises(DecodeError, match="ApiVersions came where a login has to begin"):
        say(login, VERSIONS_FRAME)
    assert login.state == ENDED


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0\x11",
        b"\0\x11\0\1\0\0",
        b"GET / HTTP/1.1\r\n\r\n",
        frame(MetadataRequest(topics=[]), 5),
        authenticate(b"\0alice\0secret"),
        b"\x7f\xff\0\0\0\0\0\1\xff\xff",
        b"\0\x11\0\7\0\0\0\1\xff\xff\0\0",
        handshake("PLAIN")[:-2],
    ],
)
def test_anything_else_first_ends_the_connection_without_an_answer(data: bytes) -> None:
    login = Login(mechanisms())
    with pytest.raises(DecodeError):
        say(login, data)
    assert login.identity is None


@pytest.mark.parametrize("mechanism", ["GSSAPI", "plain", "", "SCRAM-SHA-256"])
@pytest.mark.parametrize("version", [0, 1])
def test_a_mechanism_that_is_not_enabled(mechanism: str, version: int) -> None:
    login = Login(mechanisms())
    action = say(login, handshake(mechanism, version))
    assert action.kind == REFUSE and login.state == ENDED
    response = answer(action.frame, SASL_HANDSHAKE, version)
    assert response.error_code == errors.UNSUPPORTED_SASL_MECHANISM
    assert sorted(response.mechanisms) == ["EXPIRING", "PLAIN", "SLOW"]


def test_a_mechanism_of_a_stranger_is_logged_short_and_in_one_line() -> None:
    action = say(Login(mechanisms()), handshake("x\n" * 1000))
    assert "\n" not in action.reason and len(action.reason) < 120


def test_bare_tokens_follow_the_first_version_of_the_handshake() -> None:
    login = Login(mechanisms())
    shake(login, version=0)
    action = say(login, b"\0alice\0secret")
    assert (action.kind, action.frame, login.state) == (SEND, b"", COMPLETE)
    login = Login(mechanisms())
    shake(login, version=0)
    action = say(login, b"\0alice\0wrong")
    assert (action.kind, action.frame, login.state) == (REFUSE, None, ENDED)
    login = Login(mechanisms())
    shake(login, version=0)
    assert say(login, b"").kind == REFUSE, "a frame without bytes is a token like others"


def test_another_request_instead_of_a_token_is_answered_with_its_own_error() -> None:
    login = Login(mechanisms())
    shake(login)
    action = say(login, handshake("PLAIN"))
    assert action.kind == REFUSE
    assert answer(action.frame, SASL_HANDSHAKE, 1).error_code == errors.ILLEGAL_SASL_STATE
    login = Login(mechanisms())
    shake(login)
    action = say(login, VERSIONS_FRAME)
    assert action.kind == REFUSE and isinstance(answer(action.frame, API_VERSIONS, 0), ApiVersionsResponse)
    assert answer(action.frame, API_VERSIONS, 0).error_code == errors.ILLEGAL_SASL_STATE
    login = Login(mechanisms())
    shake(login)
    action = say(login, frame(MetadataRequest(topics=[]), 9))
    assert action.kind == REFUSE and answer(action.frame, METADATA, 9).topics == []


def test_rubbish_instead_of_a_token() -> None:
    login = Login(mechanisms())
    shake(login)
    with pytest.raises(DecodeError):
        say(login, b"\0alice\0secret")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_refusal_says_what_may_be_known(version: int) -> None:
    login = Login(mechanisms())
    shake(login)
    action = say(login, authenticate(b"\0alice\0wrong", version))
    response = told(action, version)
    assert response.error_code == errors.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "Authentication failed: Invalid username or password"
    assert action.kind == REFUSE and login.state == ENDED and "wrong" not in action.reason


def test_a_session_has_the_shorter_of_both_times() -> None:
    for max_reauth_ms, expected in ((0, 400), (100, 100), (900, 400)):
        login = Login(mechanisms(max_reauth_ms))
        shake(login, "EXPIRING")
        first = told(say(login, authenticate(b"more")))
        assert (first.auth_bytes, first.session_lifetime_ms) == (b"go on", 0)
        last = told(say(login, authenticate(b"carol")))
        assert (last.auth_bytes, last.session_lifetime_ms) == (b"done", expected)
        assert login.identity is not None and login.identity.session_end_ms == NOW_MS + expected
    login = Login({"EXPIRING": Mechanism(lambda: Expiring(WALL_MS - 9))})
    shake(login, "EXPIRING")
    assert told(say(login, authenticate(b"carol"))).session_lifetime_ms == 0
    assert login.identity is not None and login.identity.session_end_ms == NOW_MS, "over with the next request"


def test_what_has_to_be_computed_is_waited_for() -> None:
    login = Login(mechanisms())
    shake(login, "SLOW")
    action = say(login, authenticate(b"good"))
    assert action.kind == WAIT and action.derivation is not None
    action = login.resume(action.derivation.compute(), NOW_MS, WALL_MS)
    assert told(action).auth_bytes == b"computed" and login.state == COMPLETE
    login = Login(mechanisms())
    shake(login, "SLOW")
    action = say(login, authenticate(b"bad"))
    action = login.resume(b"", NOW_MS, WALL_MS)
    assert action.kind == REFUSE
    generic = "Authentication failed during authentication due to invalid credentials with SASL mechanism SLOW"
    assert told(action).error_message == generic


def test_a_frame_before_the_answer_to_the_one_before_it_ends_the_connection() -> None:
    login = Login(mechanisms())
    shake(login, "SLOW")
    say(login, authenticate(b"good"))
    with pytest.raises(DecodeError, match="before the response"):
        say(login, authenticate(b"good"))


# Again


def session_of(login: Login, max_reauth_ms: int = 500) -> Session:
    assert login.identity is not None
    return Session(mechanisms(max_reauth_ms), login.identity)


def begin_again(session: Session, now_ms: int = NOW_MS) -> Login | None:
    data = handshake("PLAIN")
    return session.begins_again(data, 0, len(data), now_ms)


def test_a_session_ends_at_its_time() -> None:
    session = session_of(logged_in(500))
    assert not session.is_over(NOW_MS + 499) and session.is_over(NOW_MS + 500)
    assert not Session({}, Identity("User:a", False, "PLAIN", NO_EXPIRY_MS)).is_over(1 << 60)


def test_a_login_in_doubt_ends_when_it_is_refuted_and_is_asked_about_until_it_is_confirmed() -> None:
    answers: list[bool | None] = [None, False]
    doubtful = Identity("User:a", False, "PLAIN", NO_EXPIRY_MS, lambda: answers.pop(0))
    session = Session({}, doubtful)
    assert doubtful.may_end and not session.is_over(0) and session.is_over(0)
    answers += [None, True, False]
    session = Session({}, Identity("User:a", False, "PLAIN", NO_EXPIRY_MS, lambda: answers.pop(0)))
    assert [session.is_over(0) for _ in range(3)] == [False] * 3 and answers == [False]


def test_a_client_logs_in_again_at_most_once_a_second() -> None:
    session = session_of(logged_in(500))
    login = begin_again(session)
    assert login is not None
    shake(login)
    assert told(say(login, authenticate(b"\0alice\0secret"))).session_lifetime_ms == 500
    assert begin_again(session, NOW_MS + 999) is None
    assert begin_again(session, NOW_MS + 1000) is not None
    data = frame(MetadataRequest(topics=[]), 9)
    assert session.begins_again(data, 0, len(data), NOW_MS + 9000) is None
    assert session.begins_again(b"\0", 0, 1, NOW_MS + 9000) is None


def test_nobody_becomes_somebody_else() -> None:
    login = begin_again(session_of(logged_in(500)))
    assert login is not None
    shake(login)
    action = say(login, authenticate(b"\0bob\0other"))
    assert action.kind == REFUSE and login.identity is None
    assert told(action).error_message == "Cannot change principals during re-authentication from User.alice: User.bob"


def test_the_mechanism_stays() -> None:
    login = begin_again(session_of(logged_in(500)))
    assert login is not None
    shake(login, "EXPIRING")
    action = say(login, authenticate(b"alice"))
    assert (action.kind, action.frame) == (REFUSE, None)
    login = begin_again(session_of(logged_in(500)))
    assert login is not None
    action = say(login, handshake("GSSAPI"))
    assert (action.kind, action.frame) == (REFUSE, None)


def test_a_failure_the_second_time_says_so() -> None:
    login = Login(mechanisms(500), Identity("User:slow", False, "SLOW", NOW_MS))
    shake(login, "SLOW")
    say(login, authenticate(b"bad"))
    message = told(login.resume(b"", NOW_MS, WALL_MS)).error_message
    assert re.match("Authentication failed during re-authentication due to invalid credentials", message)


def test_every_state_can_be_left_only_as_the_table_says() -> None:
    assert TRANSITIONS[COMPLETE] == () and TRANSITIONS[ENDED] == ()
    login = logged_in()
    with pytest.raises(AssertionError):
        say(login, VERSIONS_FRAME)


def test_the_bytes_on_the_wire() -> None:
    """As Java's client sends and reads them."""
    login = Login({"PLAIN": Mechanism(lambda: PlainServer(USERS))})
    asked = bytes.fromhex("0011 0001 00000007 0001 63 0005 504c41494e")
    action = login.receive(asked, 0, len(asked), NOW_MS, WALL_MS)
    assert action.frame == bytes.fromhex("00000007 0000 00000001 0005 504c41494e")
    asked = bytes.fromhex("0024 0002 00000008 0001 63 00 0e 00 616c696365 00 736563726574 00")
    action = login.receive(asked, 0, len(asked), NOW_MS, WALL_MS)
    assert action.frame == bytes.fromhex("00000008 00 0000 01 01 0000000000000000 00")
    assert login.state == COMPLETE
