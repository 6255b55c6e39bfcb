"""The keys of an issuer of tokens, fetched on a thread of their own and refreshed.

A token with a key that is not there makes the next fetch come early; the login that showed it fails. Which keys were
missing is remembered for a while, so that strangers cannot make this node ask again and again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from moldau.security.bearer_tokens import KeySet, PublicKey, find_key, parse_key_set
from moldau.security.token_sources import SourceError

MISSING_S = 60.0
MISSING_MAX = 16
KEY_ID_SIZE_MAX = 1000

log = logging.getLogger("moldau.security")


class IssuerKeys:
    """See the module. `fetch` returns the JWKS' bytes or raises SourceError."""

    def __init__(
        self, shown: str, fetch: Callable[[], bytes], refresh_ms: int, retry_ms: int, retry_max_ms: int
    ) -> None:
        self._shown = shown
        self._fetch = fetch
        self._refresh_s = refresh_ms / 1000
        self._retry_s = retry_ms / 1000
        self._retry_max_s = retry_max_ms / 1000
        self._keys: KeySet = {}
        self._missing: dict[str, float] = {}
        self._wake = threading.Event()
        self._is_over = False
        self._thread: threading.Thread | None = None
        self.fetches = 0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="jwks", daemon=True)
        self._thread.start()

    def find(self, key_id: str | None, algorithm: str) -> PublicKey | None:
        """In the loop: what is known now."""
        found = find_key(self._keys, key_id, algorithm)
        if found is None and key_id is not None and key_id not in self._keys:
            self._note_missing(key_id)
        return found

    def _note_missing(self, key_id: str) -> None:
        if len(key_id) > KEY_ID_SIZE_MAX:
            return
        now_s = time.monotonic()
        self._missing = {name: at for name, at in self._missing.items() if now_s - at < MISSING_S}
        if key_id not in self._missing and len(self._missing) < MISSING_MAX:
            self._missing[key_id] = now_s
            self._wake.set()

    def _run(self) -> None:
        pause_s = self._retry_s
        while not self._is_over:
            if self.refresh():
                wait_s, pause_s = self._refresh_s, self._retry_s
            else:
                wait_s, pause_s = pause_s, min(2 * pause_s, self._retry_max_s)
            self._wake.wait(wait_s)
            self._wake.clear()

    def refresh(self) -> bool:
        self.fetches += 1
        try:
            self._keys = parse_key_set(self._fetch())
        except SourceError as error:
            log.error("the keys for OAUTHBEARER are not refreshed: %s", error)
            return False
        except (ValueError, RecursionError):
            log.error("the keys for OAUTHBEARER are not refreshed: %s is not a JWKS", self._shown)
            return False
        except Exception as error:  # the thread must not end, or keys that are withdrawn stay trusted
            log.error("the keys for OAUTHBEARER are not refreshed: %s", type(error).__name__)
            return False
        return True

    def close(self) -> None:
        self._is_over = True
        self._wake.set()
