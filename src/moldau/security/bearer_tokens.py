"""Checks JSON web tokens: signature, issuer, audience, times, subject and scope.

Signed ones need the library `cryptography` (the extra `keystores`). Those without a signature are for tests, and are
taken only where somebody has asked for that. Nothing of a token is told in an error.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any, Final

TOKEN_BYTES_MAX: Final = 64 * 1024
RSA_BITS_MIN: Final = 2048
HASHES: Final = {"256": "SHA256", "384": "SHA384", "512": "SHA512"}
CURVES: Final = {
    "P-256": ("SECP256R1", "ES256", 32),
    "P-384": ("SECP384R1", "ES384", 48),
    "P-521": ("SECP521R1", "ES512", 66),
}
ALGORITHMS: Final = frozenset(f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in HASHES)
MISSING_LIBRARY: Final = (
    "OAUTHBEARER with signed tokens needs the library cryptography: install it with `pip install 'moldau[keystores]'`"
)


class TokenRefused(Exception):
    """A token that is not good. `reason` is for the log and holds nothing of the token."""

    def __init__(self, reason: str, status: str = "invalid_token", scope: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self._status = status
        self._scope = scope

    def as_json(self) -> str:
        """What the client is told (RFC 7628)."""
        fields = {"status": self._status} | ({} if self._scope is None else {"scope": self._scope})
        return json.dumps(fields, separators=(",", ":"))


class BearerToken:
    """What a broker takes from a good token."""

    def __init__(self, principal_name: str, expires_ms: int, scopes: frozenset[str]) -> None:
        self.principal_name = principal_name
        self.expires_ms = expires_ms
        self.scopes = scopes


class Parts:
    """A token taken apart; its signature is not checked."""

    def __init__(self, token: str) -> None:
        pieces = token.split(".")
        if len(token) > TOKEN_BYTES_MAX or len(pieces) != 3:
            raise TokenRefused("it is not a token of three parts")
        self.header, self.claims = _json_object(pieces[0]), _json_object(pieces[1])
        self.signature = _from_base64url(pieces[2])
        self.signed = f"{pieces[0]}.{pieces[1]}".encode()


def _from_base64url(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise TokenRefused("a part of it is not base64url") from None


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(_from_base64url(text), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise TokenRefused("a part of it is not JSON") from None
    if not isinstance(found, dict):
        raise TokenRefused("a part of it is not a JSON object")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _seconds(claims: dict[str, Any], name: str, required: bool) -> float | None:
    value = claims.get(name)
    if value is None and not required:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1 << 40:
        raise TokenRefused(f"its claim {name} is not a time")
    return float(value)


def _is_no_character(code: int) -> bool:
    """Of control, or half of a pair that no encoding can write."""
    return code < 0x20 or code == 0x7F or 0xD800 <= code <= 0xDFFF


def _text(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value.strip() or any(_is_no_character(ord(c)) for c in value):
        raise TokenRefused(f"its claim {name} is not a name")
    return value


def _scopes(claims: dict[str, Any], name: str) -> list[str]:
    value = claims.get(name)
    if value is None:
        return []
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(item, str) and item.strip() for item in found):
        raise TokenRefused(f"its claim {name} is not a list of scopes")
    return found


class UnsecuredValidator:
    """For tests: whoever can write can write a token. Asked for with the options of Kafka's unsecured validator."""

    def __init__(self, options: dict[str, str]) -> None:
        prefix = "unsecuredValidator"
        self._name_claim = options.get(f"{prefix}PrincipalClaimName") or "sub"
        self._scope_claim = options.get(f"{prefix}ScopeClaimName") or "scope"
        self._required = frozenset((options.get(f"{prefix}RequiredScope") or "").split())
        self._skew_ms = int(options.get(f"{prefix}AllowableClockSkewMs") or 0)

    def validate(self, token: str, wall_ms: int) -> BearerToken:
        parts = Parts(token)
        if parts.header.get("alg") != "none" or parts.signature:
            raise TokenRefused("it has a signature, which nobody checks here")
        name = _text(parts.claims, self._name_claim)
        expiry_s, issued_s = _seconds(parts.claims, "exp", True), _seconds(parts.claims, "iat", False)
        assert expiry_s is not None
        if wall_ms - self._skew_ms >= expiry_s * 1000:
            raise TokenRefused("it has expired")
        if issued_s is not None and (issued_s * 1000 > wall_ms + self._skew_ms or expiry_s <= issued_s):
            raise TokenRefused("its times do not fit")
        scopes = frozenset(_scopes(parts.claims, self._scope_claim))
        if not self._required <= scopes:
            wanted = " ".join(sorted(self._required))
            raise TokenRefused("a scope is missing", "insufficient_scope", wanted)
        return BearerToken(name, int(expiry_s * 1000), scopes)


class SecuredSettings:
    def __init__(self) -> None:
        self.audiences: frozenset[str] = frozenset()
        self.issuer: str | None = None
        self.skew_s = 30
        self.sub_claim = "sub"
        self.scope_claim = "scope"


class SecuredValidator:
    """`find_key` gives the key of an id (None: the only one there is) for an algorithm, or None."""

    def __init__(self, settings: SecuredSettings, find_key: Callable[[str | None, str], PublicKey | None]) -> None:
        self._settings = settings
        self._find_key = find_key

    def validate(self, token: str, wall_ms: int) -> BearerToken:
        parts = Parts(token)
        self._check_signature(parts)
        settings, claims, now_s = self._settings, parts.claims, wall_ms / 1000
        expiry_s, issued_s = _seconds(claims, "exp", True), _seconds(claims, "iat", True)
        not_before_s = _seconds(claims, "nbf", False)
        assert expiry_s is not None and issued_s is not None
        if now_s - settings.skew_s >= expiry_s:
            raise TokenRefused("it has expired")
        if issued_s - settings.skew_s > now_s or (not_before_s is not None and not_before_s - settings.skew_s > now_s):
            raise TokenRefused("it is not valid yet")
        if expiry_s <= issued_s:
            raise TokenRefused("its times do not fit")
        if settings.issuer is not None and claims.get("iss") != settings.issuer:
            raise TokenRefused("it is of another issuer")
        self._check_audience(claims)
        scopes = _scopes(claims, settings.scope_claim)
        if len(set(scopes)) != len(scopes):
            raise TokenRefused("a scope is named twice")
        return BearerToken(_text(claims, settings.sub_claim), int(expiry_s * 1000), frozenset(scopes))

    def _check_signature(self, parts: Parts) -> None:
        algorithm, key_id = parts.header.get("alg"), parts.header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise TokenRefused("its algorithm is none of those with a public key")
        if "crit" in parts.header:
            raise TokenRefused("its header names extensions that are not known")
        if key_id is not None and not isinstance(key_id, str):
            raise TokenRefused("its key id is no text")
        key = self._find_key(key_id, algorithm)
        if key is None:
            raise TokenRefused("the issuer has no such key")
        if not key.verifies(algorithm, parts.signature, parts.signed):
            raise TokenRefused("its signature is wrong")

    def _check_audience(self, claims: dict[str, Any]) -> None:
        named = claims.get("aud")
        audiences = [named] if isinstance(named, str) else named
        if named is None and not self._settings.audiences:
            return
        if not isinstance(audiences, list) or not self._settings.audiences & {
            a for a in audiences if isinstance(a, str)
        }:
            raise TokenRefused("it is for another audience")


# The issuer's keys


class PublicKey:
    """One key of a set, with what it may be used for."""

    def __init__(self, key: Any, family: str, algorithm: str | None, size: int) -> None:
        self._key = key
        self.family = family
        self.algorithm = algorithm
        self._size = size  # of one of the two numbers of an ECDSA signature

    def fits(self, algorithm: str) -> bool:
        family = "EC" if algorithm.startswith("ES") else "RSA"
        return family == self.family and self.algorithm in (None, algorithm)

    def verifies(self, algorithm: str, signature: bytes, signed: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

        if not self.fits(algorithm):
            return False
        digest = getattr(hashes, HASHES[algorithm[2:]])()
        try:
            if algorithm.startswith("ES"):
                if len(signature) != 2 * self._size:
                    return False
                numbers = (int.from_bytes(half, "big") for half in (signature[: self._size], signature[self._size :]))
                self._key.verify(utils.encode_dss_signature(*numbers), signed, ec.ECDSA(digest))
            elif algorithm.startswith("PS"):
                self._key.verify(signature, signed, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
            else:
                self._key.verify(signature, signed, padding.PKCS1v15(), digest)
        except InvalidSignature:
            return False
        return True


KeySet = dict[str | None, PublicKey]
"""By key id; a key without one is under None."""


def parse_key_set(text: bytes) -> KeySet:
    """The keys of a JWKS that can be used here; ValueError where it is none. Others are left out."""
    found = json.loads(text)
    rows = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise ValueError("it has no list of keys")
    keys: KeySet = {}
    for row in rows:
        key = _parse_key(row) if isinstance(row, dict) and row.get("use", "sig") == "sig" else None
        if key is not None:
            key_id = row.get("kid")
            keys[key_id if isinstance(key_id, str) else None] = key
    return keys


def find_key(keys: KeySet, key_id: str | None, algorithm: str) -> PublicKey | None:
    """That of the id; without one the only key that fits."""
    if key_id is not None:
        key = keys.get(key_id)
        return key if key is not None and key.fits(algorithm) else None
    fitting = [key for key in keys.values() if key.fits(algorithm)]
    return fitting[0] if len(fitting) == 1 else None


def _parse_key(row: dict[str, Any]) -> PublicKey | None:
    try:
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
    except ImportError:
        raise ValueError(MISSING_LIBRARY) from None
    algorithm = row.get("alg")
    algorithm = algorithm if isinstance(algorithm, str) else None
    try:
        if row.get("kty") == "RSA":
            key = rsa.RSAPublicNumbers(_number(row["e"]), _number(row["n"])).public_key()
            return PublicKey(key, "RSA", algorithm, 0) if key.key_size >= RSA_BITS_MIN else None
        if row.get("kty") == "EC" and row.get("crv") in CURVES:
            curve, fixed, size = CURVES[row["crv"]]
            numbers = ec.EllipticCurvePublicNumbers(_number(row["x"]), _number(row["y"]), getattr(ec, curve)())
            return PublicKey(numbers.public_key(), "EC", fixed, size) if algorithm in (None, fixed) else None
    except (KeyError, TypeError, ValueError, TokenRefused):
        return None
    return None


def _number(text: str) -> int:
    return int.from_bytes(_from_base64url(text), "big")


# Tokens without a signature, for tests


def unsecured_token(options: dict[str, str], wall_ms: int) -> str:
    """What Kafka's login module makes of unsecuredLoginStringClaim_sub and its like."""
    lifetime_s = int(options.get("unsecuredLoginLifetimeSeconds") or 3600)
    claims: dict[str, Any] = {"iat": wall_ms / 1000, "exp": wall_ms / 1000 + lifetime_s}
    for name, value in options.items():
        kind, _, claim = name.partition("Claim_")
        if kind == "unsecuredLoginString":
            claims[claim] = value
        elif kind == "unsecuredLoginNumber":
            claims[claim] = float(value)
        elif kind == "unsecuredLoginList" and value:
            claims[claim] = value[1:].split(value[0])
    return f"{_to_base64url({'alg': 'none'})}.{_to_base64url(claims)}."


def _to_base64url(value: dict[str, Any]) -> str:
    data = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def expiry_of(token: str) -> int | None:
    """When a token is over in milliseconds, as it says itself; None where it does not say. For whoever shows it."""
    try:
        expiry_s = _seconds(Parts(token).claims, "exp", False)
    except TokenRefused:
        return None
    return None if expiry_s is None else int(expiry_s * 1000)
