"""What a node makes of its settings for rights, and of the address of a client."""

from __future__ import annotations

import pytest

from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.node.authorization import host_text
from moldau.security.authorizer import SessionRights
from moldau.security.rights import READ, TOPIC
from tests.unit.node.world import NodeWorld


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("127.0.0.1:9", "127.0.0.1"),
        ("::1:9", "0:0:0:0:0:0:0:1"),
        ("[fe80::1:2]:9", "fe80:0:0:0:0:0:1:2"),
        ("[fe80::1%eth0]:9", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.1.2.3:9", "10.1.2.3"),
        ("2001:0db8:0:0:0:0:00ff:0:9", "2001:db8:0:0:0:0:ff:0"),
        ("somewhere:9", "somewhere"),
    ],
)
def test_an_address_reads_as_java_writes_it(peer: str, host: str) -> None:
    assert host_text(peer) == host


def test_without_an_authorizer_nobody_is_asked() -> None:
    assert NodeWorld(super_users="User:x").start().node.rights is None


@pytest.mark.parametrize(("text", "is_allowed"), [("true", True), ("TRUE", True), ("false", False), ("", False)])
def test_the_settings_reach_the_authorizer(text: str, is_allowed: bool) -> None:
    world = NodeWorld(
        authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:a;User:b", allow_everyone_if_no_acl_found=text
    ).start()
    rights = world.node.rights
    assert rights is not None and rights.authorizer.is_loaded
    assert rights.authorizer.super_users == {"User:a", "User:b"}
    assert SessionRights(rights.authorizer, "User:c", "1.1.1.1").decide(READ, TOPIC, "t").is_allowed is is_allowed
