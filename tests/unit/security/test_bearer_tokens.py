"""Tokens: which are good, and that nothing else is."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest

from moldau.security.bearer_tokens import (
    KeySet,
    SecuredSettings,
    SecuredValidator,
    TokenRefused,
    UnsecuredValidator,
    expiry_of,
    find_key,
    parse_key_set,
    unsecured_token,
)

NOW_S = 1_800_000_000
NOW_MS = NOW_S * 1000
NOT_A_NUMBER = b'{"exp": NaN, "sub": "a"}'


def text_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def part(value: Any) -> str:
    return text_of(json.dumps(value).encode())


def claims(**changes: Any) -> dict[str, Any]:
    given = {"sub": "carol", "iss": "issuer", "aud": ["other", "us"], "iat": NOW_S - 10, "exp": NOW_S + 60, **changes}
    return {name: value for name, value in given.items() if value is not None}


# Without a signature


def unsigned(header: dict[str, Any] | None = None, signature: str = "", **changes: Any) -> str:
    return f"{part(header or {'alg': 'none'})}.{part(claims(**changes))}.{signature}"


def test_an_unsecured_token_where_they_are_asked_for() -> None:
    token = UnsecuredValidator({}).validate(unsigned(scope="a b"), NOW_MS)
    assert (token.principal_name, token.expires_ms, token.scopes) == ("carol", NOW_MS + 60_000, {"a", "b"})
    options = {"unsecuredValidatorPrincipalClaimName": "name", "unsecuredValidatorRequiredScope": "a"}
    assert UnsecuredValidator(options).validate(unsigned(name="x", scope=["a"]), NOW_MS).principal_name == "x"


@pytest.mark.parametrize(
    "token",
    [
        unsigned({"alg": "RS256"}),
        unsigned({"alg": "None"}),
        unsigned({"typ": "JWT"}),
        unsigned(signature="AAAA"),
        unsigned(sub=None),
        unsigned(sub=7),
        unsigned(sub="a\nb"),
        unsigned(exp=None),
        unsigned(exp="soon"),
        unsigned(exp=True),
        unsigned(exp=NOW_S),
        unsigned(exp=1e300),
        unsigned(iat=NOW_S + 5),
        unsigned(iat=NOW_S + 5, exp=NOW_S + 1),
        unsigned()[:-1],
        unsigned() + ".",
        "",
        "..",
        "a.b.c",
        f"{text_of(b'[]')}.{part({})}.",
        f"{part({'alg': 'none'})}.{text_of(b'{' * 30000)}.",
        f"{part({'alg': 'none'})}.{text_of(b'[' * 30000)}.",
        f"{part({'alg': 'none'})}.{text_of(NOT_A_NUMBER)}.",
        "a" * 100_000,
    ],
)
def test_what_is_no_unsecured_token(token: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        UnsecuredValidator({}).validate(token, NOW_MS)
    assert caught.value.as_json() == '{"status":"invalid_token"}'


def test_skew_and_scope_of_unsecured_tokens() -> None:
    validator = UnsecuredValidator({"unsecuredValidatorAllowableClockSkewMs": "5000"})
    validator.validate(unsigned(exp=NOW_S - 4, iat=None), NOW_MS)
    with pytest.raises(TokenRefused, match="expired"):
        validator.validate(unsigned(exp=NOW_S - 5, iat=None), NOW_MS)
    with pytest.raises(TokenRefused) as caught:
        UnsecuredValidator({"unsecuredValidatorRequiredScope": "b a"}).validate(unsigned(scope="a"), NOW_MS)
    assert caught.value.as_json() == '{"status":"insufficient_scope","scope":"a b"}'


def test_what_a_client_makes_for_tests() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "anna",
        "unsecuredLoginListClaim_scope": "|a|b",
        "unsecuredLoginLifetimeSeconds": "50",
    }
    token = unsecured_token(options, NOW_MS)
    found = UnsecuredValidator({}).validate(token, NOW_MS)
    assert (found.principal_name, found.scopes) == ("anna", {"a", "b"})
    assert expiry_of(token) == NOW_MS + 50_000
    assert expiry_of("opaque") is None and expiry_of(f"{part({})}.{part({})}.") is None


# With a signature

cryptography = pytest.importorskip("cryptography", reason="cryptography is not installed")
from cryptography.hazmat.primitives import hashes  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils  # noqa: E402

RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_KEY = rsa.generate_private_key(65537, 2048)
CURVES = {"ES256": ("P-256", ec.SECP256R1(), 32), "ES384": ("P-384", ec.SECP384R1(), 48)}
EC_KEYS = {name: ec.generate_private_key(curve) for name, (_, curve, _) in CURVES.items()}
DIGESTS = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


def number(value: int, size: int = 0) -> str:
    return text_of(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


def rsa_row(**changes: Any) -> dict[str, Any]:
    numbers = RSA_KEY.public_key().public_numbers()
    return {"kid": "rsa", "kty": "RSA", "n": number(numbers.n), "e": number(numbers.e), **changes}


def ec_row(algorithm: str) -> dict[str, Any]:
    name, _, size = CURVES[algorithm]
    numbers = EC_KEYS[algorithm].public_key().public_numbers()
    return {"kid": algorithm, "kty": "EC", "crv": name, "x": number(numbers.x, size), "y": number(numbers.y, size)}


def key_set(*rows: dict[str, Any]) -> bytes:
    return json.dumps({"keys": rows}).encode()


KEYS = parse_key_set(key_set(rsa_row(), *(ec_row(name) for name in CURVES)))


def sign(algorithm: str, data: bytes, key: rsa.RSAPrivateKey = RSA_KEY) -> bytes:
    digest = DIGESTS[algorithm[2:]]
    if algorithm.startswith("RS"):
        return key.sign(data, padding.PKCS1v15(), digest)
    if algorithm.startswith("PS"):
        return key.sign(data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    if algorithm.startswith("HS"):
        return hmac.digest(key_set(rsa_row()), data, "sha256")
    size = CURVES[algorithm][2]
    r, s = utils.decode_dss_signature(EC_KEYS[algorithm].sign(data, ec.ECDSA(digest)))
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def signed(algorithm: str = "RS256", key_id: str | None = "rsa", head: Any = None, **changes: Any) -> str:
    header = {"alg": algorithm, "kid": key_id, **(head or {})}
    text = f"{part({n: v for n, v in header.items() if v is not None})}.{part(claims(**changes))}"
    return f"{text}.{text_of(sign(algorithm, text.encode()))}"


def validator(keys: KeySet = KEYS, **changes: Any) -> SecuredValidator:
    settings = SecuredSettings()
    settings.issuer, settings.audiences = "issuer", frozenset({"us"})
    for name, value in changes.items():
        setattr(settings, name, value)
    return SecuredValidator(settings, lambda key_id, algorithm: find_key(keys, key_id, algorithm))


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS512", "ES256", "ES384"])
def test_signed_tokens(algorithm: str) -> None:
    key_id = algorithm if algorithm in CURVES else "rsa"
    token = validator().validate(signed(algorithm, key_id, scope=["a"]), NOW_MS)
    assert (token.principal_name, token.expires_ms, token.scopes) == ("carol", NOW_MS + 60_000, {"a"})


@pytest.mark.parametrize(
    "token",
    [
        unsigned(),
        unsigned({"alg": "none", "kid": "rsa"}),
        unsigned({"alg": "NONE", "kid": "rsa"}),
        unsigned({"alg": "RS256", "kid": "rsa"}),
        unsigned({"alg": ["RS256"], "kid": "rsa"}),
        signed("HS256"),
        signed("ES256", "rsa"),
        signed("RS256", "ES256"),
        signed("RS256", "gone"),
        signed("RS256", None, {"kid": 7}),
        signed(head={"crit": ["b64"], "b64": False}),
        signed()[:-4],
        signed() + "AAAA",
        signed().replace(".", "..", 1),
        signed(exp=NOW_S - 30),
        signed(exp=None),
        signed(iat=None),
        signed(iat=NOW_S + 31, exp=NOW_S + 60),
        signed(nbf=NOW_S + 31),
        signed(iat=NOW_S, exp=NOW_S),
        signed(iss="other"),
        signed(iss=None),
        signed(iss=["issuer"]),
        signed(aud="other"),
        signed(aud=None),
        signed(aud=7),
        signed(aud=[{"us": 1}]),
        signed(sub=None),
        signed(sub=""),
        signed(sub=7),
        signed(scope=["a", "a"]),
        signed(scope=["a", " "]),
        signed(scope=7),
    ],
)
def test_what_is_not_good(token: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        validator().validate(token, NOW_MS)
    assert token not in str(caught.value) and "carol" not in str(caught.value)


def test_the_signature_of_another_key() -> None:
    text, _, _ = signed().rpartition(".")
    with pytest.raises(TokenRefused, match="signature is wrong"):
        validator().validate(f"{text}.{text_of(sign('RS256', text.encode(), OTHER_KEY))}", NOW_MS)
    head, _, signature = signed().split(".")
    with pytest.raises(TokenRefused, match="signature is wrong"):
        validator().validate(f"{head}.{part(claims(sub='admin'))}.{signature}", NOW_MS)


def test_clocks_may_differ_a_little() -> None:
    validator().validate(signed(exp=NOW_S - 29, iat=NOW_S - 60), NOW_MS)
    validator().validate(signed(iat=NOW_S + 29), NOW_MS)
    with pytest.raises(TokenRefused):
        validator(skew_s=0).validate(signed(exp=NOW_S), NOW_MS)


def test_settings_that_are_left_out() -> None:
    without = {"issuer": None, "audiences": frozenset()}
    validator(**without).validate(signed(iss=None, aud=None), NOW_MS)
    with pytest.raises(TokenRefused, match="audience"):
        validator(**without).validate(signed(), NOW_MS)
    found = validator(sub_claim="name", scope_claim="scp").validate(signed(name="x", scp="a b"), NOW_MS)
    assert (found.principal_name, found.scopes) == ("x", {"a", "b"})


def test_a_key_is_found_by_its_id_or_because_it_is_the_only_one() -> None:
    validator().validate(signed("RS256", None), NOW_MS)
    two = parse_key_set(key_set(rsa_row(), rsa_row(kid="second")))
    with pytest.raises(TokenRefused, match="no such key"):
        validator(two).validate(signed("RS256", None), NOW_MS)
    for row in (rsa_row(alg="RS512"), rsa_row(use="enc")):
        with pytest.raises(TokenRefused):
            validator(parse_key_set(key_set(row))).validate(signed(), NOW_MS)


def test_keys_that_cannot_be_used_are_left_out() -> None:
    small = rsa.generate_private_key(65537, 1024).public_key().public_numbers()
    rows: list[Any] = [
        {"kty": "oct", "k": "AAAA", "kid": "secret"},
        {"kty": "RSA", "kid": "small", "n": number(small.n), "e": number(small.e)},
        {"kty": "RSA", "kid": "no-numbers"},
        {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA", "kid": "not-on-curve"},
        {"kty": "EC", "crv": "P-1", "kid": "curve"},
        "text",
        rsa_row(),
    ]
    assert list(parse_key_set(key_set(*rows))) == ["rsa"]
    for wrong in (b"", b"[]", b"{}", b'{"keys": 7}', b"\xff"):
        with pytest.raises(ValueError):
            parse_key_set(wrong)
