"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802) as Kafka has them: no channel binding, no SASLprep.

Both sides prove that they know the password, and nobody who listens or reads what is stored learns it. A user who does
not exist gets a salt that is always the same for its name, and fails at the end like a wrong password.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Container
from typing import Final, NamedTuple

from moldau.security.exchange import NO_EXPIRY_MS, Derivation, LoginRefused, SaslClient, SaslServer

SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
HASHES: Final = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
TYPES: Final = {SCRAM_SHA_256: 1, SCRAM_SHA_512: 2}
"""The numbers of the mechanisms in records and requests."""

ITERATIONS_MIN: Final = 4096
# What a server may ask a client to compute; Kafka's own brokers store at most 16,384.
CLIENT_ITERATIONS_MAX: Final = 1_000_000
TOKEN_EXTENSION: Final = "tokenauth"
SALT_BYTES: Final = 20
TOKENS_KEPT_MIN: Final = 64

# Kafka takes printable characters of ASCII in values; `=` of a name is escaped.
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_EXTENSION: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_NAME}))?,(?P<bare>n=(?P<user>{_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    rf"(?P<extensions>{_EXTENSION}))"
)
_BASE64: Final = r"[a-zA-Z0-9/+]*={0,2}"
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<start>c=(?P<channel>{_BASE64}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+){_EXTENSION}),p=(?P<proof>{_BASE64})"
)


class Keys(NamedTuple):
    """What is stored of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class TokenOwner(NamedTuple):
    """Whom a delegation token stands for, and when it is over."""

    principal: str
    expires_wall_ms: int
    secret: Callable[[], str]
    """The token's password."""


def hmac_of(digest: str, key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, digest)


def salted_password(mechanism: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Costs milliseconds, on purpose."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)


def keys_of(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> Keys:
    """What may be stored: neither the password nor what it could be derived from."""
    digest = HASHES[mechanism]
    client_key = hmac_of(digest, salted, b"Client Key")
    return Keys(salt, hashlib.new(digest, client_key).digest(), hmac_of(digest, salted, b"Server Key"), iterations)


class ScramUsers:
    """Where a server finds what it knows of users and delegation tokens."""

    def __init__(
        self,
        find_user: Callable[[str, str], Keys | None],
        find_token: Callable[[str], TokenOwner | None],
        salt_seed: bytes,
    ) -> None:
        """`find_user` is asked with mechanism and name, `find_token` with the id. `salt_seed` is that of a cluster."""
        self.find_user = find_user
        self.find_token = find_token
        self._salt_seed = salt_seed
        self._token_keys: dict[tuple[str, str], Keys] = {}
        self._tokens_kept_max = TOKENS_KEPT_MIN

    def salt_for(self, mechanism: str, name: str) -> bytes:
        """The same for a name on every node of a cluster, also where there is no such user."""
        return hmac.digest(self._salt_seed, f"{mechanism}\0{name}".encode(), "sha256")[:SALT_BYTES]

    def nobody(self, mechanism: str, name: str) -> Keys:
        """What no proof fits: the stored key is no hash of anything known."""
        size = hashlib.new(HASHES[mechanism]).digest_size
        stored = hmac.digest(self._salt_seed, f"{mechanism}\1{name}".encode(), HASHES[mechanism])
        return Keys(self.salt_for(mechanism, name), stored, bytes(size), ITERATIONS_MIN)

    def token_keys(self, mechanism: str, token_id: str) -> Keys | None:
        return self._token_keys.get((mechanism, token_id))

    def keep_token_keys(self, mechanism: str, token_id: str, keys: Keys) -> None:
        """For as long as the token is there; `forget_tokens` drops the others."""
        self._token_keys[mechanism, token_id] = keys

    def forget_tokens(self, still_there: Container[str]) -> None:
        """Of the tokens that are gone, when there are many."""
        if len(self._token_keys) > self._tokens_kept_max:
            for mechanism, token_id in [key for key in self._token_keys if key[1] not in still_there]:
                del self._token_keys[mechanism, token_id]
            self._tokens_kept_max = max(TOKENS_KEPT_MIN, 2 * len(self._token_keys))


class ScramServer(SaslServer):
    """Two messages of the client: who it is, and the proof. The nonce is chance from above."""

    def __init__(self, mechanism: str, users: ScramUsers, nonce: str) -> None:
        super().__init__(mechanism)
        self._users = users
        self._server_nonce = nonce
        self._digest = HASHES[mechanism]
        self._keys: Keys | None = None
        self._is_known = False
        self._owner = ""
        self._owner_expires_ms = NO_EXPIRY_MS
        self._is_token = False
        self._nonce = ""
        self._message = ""

    @property
    def keys(self) -> Keys | None:
        """What the client's proof is held against."""
        return self._keys

    def evaluate(self, token: bytes, wall_ms: int) -> bytes | Derivation:
        try:
            text = token.decode("ascii")
        except UnicodeDecodeError:
            raise LoginRefused(None, "the message is not in ASCII") from None
        return self._on_first(text) if self._keys is None else self._on_final(text)

    # Who it is

    def _on_first(self, text: str) -> bytes | Derivation:
        found = _CLIENT_FIRST.fullmatch(text)
        if found is None:
            raise LoginRefused(None, "the first message is malformed")
        name = _unescaped(found["user"])
        authorization_id = _unescaped(found["authzid"] or "")
        if authorization_id not in ("", name):
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._message = found["bare"]
        self._nonce = found["nonce"] + self._server_nonce
        if _extensions(found["extensions"]).get(TOKEN_EXTENSION, "").lower() == "true":
            return self._on_token(name)
        keys = self._users.find_user(self.mechanism, name)
        self._is_known = keys is not None
        self._owner = name
        return self._server_first(keys if keys is not None else self._users.nobody(self.mechanism, name))

    def _on_token(self, token_id: str) -> bytes | Derivation:
        owner = self._users.find_token(token_id)
        if owner is None:
            return self._server_first(self._users.nobody(self.mechanism, token_id))
        self._is_known = self._is_token = True
        self.principal_type, _, self._owner = owner.principal.partition(":")
        self._owner_expires_ms = owner.expires_wall_ms
        keys = self._users.token_keys(self.mechanism, token_id)
        if keys is not None:
            return self._server_first(keys)
        derivation = TokenDerivation(self, token_id, self._users.salt_for(self.mechanism, token_id), owner.secret())
        return Derivation(derivation.compute, derivation.resume)

    def on_token_keys(self, token_id: str, keys: Keys) -> bytes:
        """Goes on with what was derived of a token's password."""
        self._users.keep_token_keys(self.mechanism, token_id, keys)
        return self._server_first(keys)

    def _server_first(self, keys: Keys) -> bytes:
        if keys.iterations < ITERATIONS_MIN:
            raise LoginRefused(None, f"the stored credential has {keys.iterations} iterations, too few")
        self._keys = keys
        said = f"r={self._nonce},s={base64.b64encode(keys.salt).decode()},i={keys.iterations}"
        self._message += f",{said}"
        return said.encode()

    # The proof

    def _on_final(self, text: str) -> bytes:
        keys = self._keys
        assert keys is not None
        found = _CLIENT_FINAL.fullmatch(text)
        if found is None:
            raise LoginRefused(None, "the final message is malformed")
        message = f"{self._message},{found['start']}".encode()
        is_right = self._is_proof(keys, found["proof"], message)
        # CVE-2024-56128: a proof of another exchange has another nonce.
        if not hmac.compare_digest(found["nonce"].encode(), self._nonce.encode()):
            raise LoginRefused(None, "the final nonce is not the one of this exchange")
        if not is_right or not self._is_known:
            raise LoginRefused(None, "unknown user or wrong password")
        self.token_authenticated = self._is_token
        self.expires_wall_ms = self._owner_expires_ms
        self.complete(self._owner)
        return f"v={base64.b64encode(hmac_of(self._digest, keys.server_key, message)).decode()}".encode()

    def _is_proof(self, keys: Keys, proof_text: str, message: bytes) -> bool:
        try:
            proof = base64.b64decode(proof_text, validate=True)
        except ValueError:
            return False
        signature = hmac_of(self._digest, keys.stored_key, message)
        if len(proof) != len(signature):
            return False
        client_key = _xor(proof, signature)
        return hmac.compare_digest(hashlib.new(self._digest, client_key).digest(), keys.stored_key)


class TokenDerivation:
    """The keys of a delegation token's password, which nobody has stored."""

    def __init__(self, server: ScramServer, token_id: str, salt: bytes, secret: str) -> None:
        self._server = server
        self._token_id = token_id
        self._salt = salt
        self._secret = secret.encode()

    def compute(self) -> bytes:
        return salted_password(self._server.mechanism, self._secret, self._salt, ITERATIONS_MIN)

    def resume(self, salted: bytes) -> bytes:
        keys = keys_of(self._server.mechanism, salted, self._salt, ITERATIONS_MIN)
        return self._server.on_token_keys(self._token_id, keys)


class ScramClient(SaslClient):
    """The nonce is chance from above. With `is_token` the name is the id of a delegation token."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str, is_token: bool = False) -> None:
        self.mechanism = mechanism
        self._digest = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}" + (f",{TOKEN_EXTENSION}=true" if is_token else "")
        self._expected: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def next(self, response: bytes) -> bytes | None:
        try:
            fields = dict(item.split("=", 1) for item in response.decode().split(","))
            if "e" in fields:
                raise LoginRefused(f"the broker says {fields['e']}")
            if self._expected is not None:
                if not hmac.compare_digest(base64.b64decode(fields["v"], validate=True), self._expected):
                    raise LoginRefused("the broker does not know the password, so it is not the one it should be")
                return None
            salt = base64.b64decode(fields["s"], validate=True)
            return self._proof(response.decode(), fields["r"], salt, int(fields["i"]))
        except (KeyError, ValueError):
            raise LoginRefused("the broker's response is not a SCRAM message") from None

    def _proof(self, server_first: str, nonce: str, salt: bytes, iterations: int) -> bytes:
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise LoginRefused("the broker's nonce does not begin with ours")
        if not ITERATIONS_MIN <= iterations <= CLIENT_ITERATIONS_MAX:
            raise LoginRefused(
                f"the broker wants {iterations} iterations, {ITERATIONS_MIN} to {CLIENT_ITERATIONS_MAX} are allowed"
            )
        salted = salted_password(self.mechanism, self._password, salt, iterations)
        client_key = hmac_of(self._digest, salted, b"Client Key")
        final = f"c=biws,r={nonce}"
        message = f"{self._first_bare},{server_first},{final}".encode()
        signature = hmac_of(self._digest, hashlib.new(self._digest, client_key).digest(), message)
        proof = _xor(client_key, signature)
        self._expected = hmac_of(self._digest, hmac_of(self._digest, salted, b"Server Key"), message)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()


def _xor(one: bytes, other: bytes) -> bytes:
    """Of two that are equally long."""
    assert len(one) == len(other)
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(len(one), "big")


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _extensions(text: str) -> dict[str, str]:
    return dict(item.split("=", 1) for item in text.split(",") if item)
