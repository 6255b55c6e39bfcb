"""Frames with something wrong, as many as MOLDAU_LOGIN_MUTATIONS says (default: 3,000): nobody gets in."""

from __future__ import annotations

import os
import random

from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.primitives import DecodeError
from moldau.security.bearer_tokens import UnsecuredValidator
from moldau.security.exchange import Derivation
from moldau.security.login import COMPLETE, ENDED, PASS, REFUSE, SEND, WAIT, Login, Mechanism
from moldau.security.oauth_bearer import OAuthBearerServer
from moldau.security.plain import PlainServer
from moldau.security.scram import ScramServer
from tests.unit.security.test_scram import users
from tests.unit.security.wire import authenticate, frame, handshake

MUTATIONS = int(os.environ.get("MOLDAU_LOGIN_MUTATIONS", "3000"))
DIALOGUES = [
    [frame(ApiVersionsRequest(), 0), handshake("PLAIN"), authenticate(b"\0alice\0guess")],
    [handshake("PLAIN", 0), b"\0alice\0guess"],
    [
        frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3),
        handshake("SCRAM-SHA-256"),
        authenticate(b"n,,n=alice,r=nonce"),
        authenticate(b"c=biws,r=nonceserver,p=" + b"A" * 43 + b"="),
    ],
    [handshake("SCRAM-SHA-256", 0), b"n,,n=token-1,r=nonce,tokenauth=true", b"c=biws,r=nonceserver,p=" + b"A" * 44],
    [
        handshake("OAUTHBEARER"),
        authenticate(b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.e30.\x01\x01"),
        authenticate(b"\1"),
    ],
    [handshake("PLAIN"), frame(MetadataRequest(topics=[]), 9)],
]


def new_login() -> Login:
    mechanisms = {
        "PLAIN": Mechanism(lambda: PlainServer({"alice": "secret"})),
        "SCRAM-SHA-256": Mechanism(lambda: ScramServer("SCRAM-SHA-256", users(), "server")),
        "OAUTHBEARER": Mechanism(lambda: OAuthBearerServer(UnsecuredValidator({}).validate)),
    }
    return Login(mechanisms)


def spoiled(rng: random.Random) -> list[bytes]:
    frames = [bytearray(item) for item in rng.choice(DIALOGUES)]
    for _ in range(rng.randint(1, 5)):
        item, kind = rng.choice(frames), rng.randrange(6)
        if kind == 0 and item:
            item[rng.randrange(len(item))] = rng.randrange(256)
        elif kind == 1:
            del item[rng.randrange(len(item) + 1) :]
        elif kind == 2:
            place = rng.randrange(len(item) + 1)
            item[place:place] = rng.randbytes(rng.randint(1, 20))
        elif kind == 3 and len(item) > 8:
            place = rng.randrange(len(item) - 4)
            item[place : place + 4] = rng.choice([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0"])
        elif kind == 4:
            frames.insert(rng.randrange(len(frames) + 1), bytearray(item))
        else:
            rng.shuffle(frames)
    return [bytes(item) for item in frames]


def test_nobody_gets_in_with_frames_that_are_wrong() -> None:
    rng = random.Random(7)
    met: set[int] = set()
    for _ in range(MUTATIONS):
        login = new_login()
        for data in spoiled(rng):
            try:
                action = login.receive(data, 0, len(data), 0, 0)
            except DecodeError:
                break
            met.add(action.kind)
            if action.kind == PASS:
                login.on_versions_response(rng.choice([0, 35]))
            elif action.kind == WAIT:
                assert isinstance(action.derivation, Derivation)
                action = login.resume(bytes(32), 0, 0)
            assert login.state != COMPLETE and login.identity is None, data
            if login.state == ENDED:
                break
    assert met == {PASS, SEND, REFUSE, WAIT}
