"""Where tokens and keys may come from: nowhere, unless somebody allowed it (CVE-2025-27817)."""

from __future__ import annotations

import base64

import pytest

from moldau.security.token_sources import (
    AllowLists,
    SourceError,
    check_source,
    credentials_request,
    read_allow_lists,
    token_of_response,
)

NOTHING = read_allow_lists("")
PREFIX = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"


def test_nothing_is_allowed_unless_told() -> None:
    for url in ("https://issuer/keys", "http://169.254.169.254/", "file:/etc/passwd", "file:///etc/passwd"):
        with pytest.raises(SourceError, match="not allowed: start with KAFKA_OPTS="):
            check_source(url, "key", NOTHING)
    for url in ("ftp://x/y", "gopher://x", "/etc/passwd", "", "https://", "data:,x"):
        with pytest.raises(SourceError, match="has to begin with"):
            check_source(url, "key", AllowLists(frozenset({url}), frozenset({url})))


def test_what_was_allowed() -> None:
    allowed = read_allow_lists(f"-Xmx1g {PREFIX}.urls=https://a/k,https://b '{PREFIX}.files=/x y/k, /z'")
    assert check_source("https://a/k", "key", allowed) is None
    assert check_source("file:/x%20y/k", "key", allowed) == "/x y/k"
    assert check_source("file:///z", "key", allowed) == "/z"
    for other in ("https://a/k2", "https://a", "http://a/k", "https://a/k/../x", "file:/z/../etc/passwd"):
        with pytest.raises(SourceError):
            check_source(other, "key", allowed)
    assert read_allow_lists("'unbalanced").urls == frozenset()


def test_a_request_for_a_token_and_its_answer() -> None:
    headers, body = credentials_request("me", "s:cret", "a b&c")
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"me:s:cret"
    assert body == b"grant_type=client_credentials&scope=a+b%26c"
    assert token_of_response(b'{"access_token": " t.t.t "}') == "t.t.t"
    for wrong in (b"", b"[]", b"{}", b'{"access_token": 7}', b'{"access_token": " "}', b'{"error": "secret-1"}'):
        with pytest.raises(SourceError) as caught:
            token_of_response(wrong)
        assert "secret-1" not in str(caught.value)
