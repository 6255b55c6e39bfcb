"""Reads a file or asks a web server, for keys and tokens of others: on a thread, with limits, without redirections."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import Any

from moldau.security.token_sources import RESPONSE_BYTES_MAX, SourceError

TIMEOUT_S = 10.0


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Where a response comes from is what the allow list says."""

    def redirect_request(self, *_: Any) -> None:
        return None


def fetch(
    url: str,
    path: str | None,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    timeout_s: float = TIMEOUT_S,
) -> bytes:
    """The bytes of a file, or of a response; SourceError with a sentence that tells nothing of either."""
    try:
        if path is not None:
            with open(path, "rb") as file:
                data = file.read(RESPONSE_BYTES_MAX + 1)
        else:
            request = urllib.request.Request(url, body, headers or {})
            with urllib.request.build_opener(NoRedirect).open(request, timeout=timeout_s) as response:
                data = response.read(RESPONSE_BYTES_MAX + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise SourceError(f"{url} responds with status {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
        raise SourceError(f"{url} cannot be read: {reason}") from None
    if len(data) > RESPONSE_BYTES_MAX:
        raise SourceError(f"{url} has more than {RESPONSE_BYTES_MAX} bytes")
    return data
