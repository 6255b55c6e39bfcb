"""Where tokens and keys may be fetched from, and how a token is asked for (OAuth's client credentials).

Kafka's allow lists hold: nothing is fetched from a URL or file that the process was not told of when it was started
(CVE-2025-27817). They are JVM properties there, so they are read from KAFKA_OPTS. No fetching is done here.
"""

from __future__ import annotations

import base64
import json
import shlex
from typing import Final
from urllib.parse import quote_plus, unquote, urlsplit

URLS_PROPERTY: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
FILES_PROPERTY: Final = "org.apache.kafka.sasl.oauthbearer.allowed.files"
RESPONSE_BYTES_MAX: Final = 1 << 20


class SourceError(ValueError):
    """A source that may not be used, or that responded with something else; the sentence says what to do."""


class AllowLists:
    """URLs and files that may be used."""

    def __init__(self, urls: frozenset[str], files: frozenset[str]) -> None:
        self.urls = urls
        self.files = files


def read_allow_lists(java_options: str) -> AllowLists:
    """From the value of KAFKA_OPTS: -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=…,…"""
    found: dict[str, frozenset[str]] = {}
    try:
        words = shlex.split(java_options)
    except ValueError:
        words = []
    for word in words:
        name, _, value = word.removeprefix("-D").partition("=")
        if word.startswith("-D"):
            found[name] = frozenset(item.strip() for item in value.split(",") if item.strip())
    return AllowLists(found.get(URLS_PROPERTY, frozenset()), found.get(FILES_PROPERTY, frozenset()))


def check_source(url: str, key: str, allowed: AllowLists) -> str | None:
    """The path where it is a file, None where it is an address; SourceError where it may not be used."""
    split = urlsplit(url)
    if split.scheme not in ("file", "http", "https") or (split.scheme != "file" and not split.hostname):
        raise SourceError(f"{key} has to begin with https://, http:// or file:")
    if split.scheme == "file":
        path = unquote(split.path)
        if url not in allowed.urls and path not in allowed.files:
            raise SourceError(
                f"{key} names a file that is not allowed: start with KAFKA_OPTS=-D{FILES_PROPERTY}={path}"
            )
        return path
    if url not in allowed.urls:
        raise SourceError(f"{key} names a URL that is not allowed: start with KAFKA_OPTS=-D{URLS_PROPERTY}={url}")
    return None


def credentials_request(client_id: str, secret: str, scope: str | None) -> tuple[dict[str, str], bytes]:
    """Headers and body of a request for a token."""
    basic = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    headers = {
        "Authorization": f"Basic {basic}",
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    body = "grant_type=client_credentials" + (f"&scope={quote_plus(scope)}" if scope else "")
    return headers, body.encode()


def token_of_response(body: bytes) -> str:
    """The access token of a response; what else it says is not told."""
    try:
        found = json.loads(body)
        token = found["access_token"]
    except (ValueError, KeyError, TypeError):
        raise SourceError("the token endpoint's response has no access_token") from None
    if not isinstance(token, str) or not token.strip():
        raise SourceError("the token endpoint's access_token is empty")
    return token.strip()
