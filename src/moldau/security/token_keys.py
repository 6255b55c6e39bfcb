"""The secrets of delegation tokens: made from their ids and the cluster's secret, so that nobody has to store them."""

from __future__ import annotations

import base64
import hmac

DIGEST = "sha512"


def token_hmac(secret: str, token_id: str) -> bytes:
    return hmac.digest(secret.encode(), token_id.encode(), DIGEST)


def token_password(token: bytes) -> str:
    """What a client says as its password by SCRAM."""
    return base64.b64encode(token).decode()


class TokenKeys:
    """The secrets of all tokens there are, each made once."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._hmacs: dict[str, bytes] = {}

    def of(self, token_id: str) -> bytes:
        found = self._hmacs.get(token_id)
        if found is None:
            found = self._hmacs[token_id] = token_hmac(self._secret, token_id)
        return found

    def find(self, token: bytes, token_ids: set[str]) -> str | None:
        """The id of the token with that secret. All are looked at, so that the time tells nothing."""
        if len(self._hmacs) > 2 * len(token_ids) + 16:
            self._hmacs = {token_id: key for token_id, key in self._hmacs.items() if token_id in token_ids}
        matching = None
        for token_id in token_ids:
            if hmac.compare_digest(self.of(token_id), token):
                matching = token_id
        return matching
