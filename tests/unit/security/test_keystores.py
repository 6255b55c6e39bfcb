"""Stores of every kind give the same key and certificates, and what is wrong with one is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.security.keystores import (
    StoreError,
    pem_key_store,
    read_key_store,
    read_trust_store,
)
from tests.certificates import PASSWORD, Authority, Signed, make_jks, make_jks_trust, make_p12, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def signed(authority: Authority) -> Signed:
    return authority.sign("node")


def test_pem_jks_and_pkcs12_have_the_same_inside(signed: Signed, folder: Path) -> None:
    expected = pem_key_store(signed.pem.read_text(), "it")
    assert len(expected.chain) == 2 and not expected.is_encrypted
    jks = read_key_store(make_jks(signed, folder / "node.jks").read_bytes(), "it", PASSWORD, None)
    assert jks.chain == expected.chain
    assert "".join(jks.key.split()) == "".join(expected.key.split())
    pytest.importorskip("cryptography")
    p12 = read_key_store(make_p12(signed, folder / "node.p12").read_bytes(), "it", PASSWORD, None)
    assert p12.chain == expected.chain and "".join(p12.key.split()) == "".join(expected.key.split())


def test_text_around_the_blocks_is_skipped(signed: Signed) -> None:
    text = signed.pem.read_text()
    dressed = "Bag Attributes\n  friendlyName: x\n" + text.replace("-----\nM", "-----\nName: value\n M", 1).rstrip()
    assert pem_key_store(dressed, "it").pem() == pem_key_store(text, "it").pem()


def test_an_encrypted_key_is_known_as_one(signed: Signed, folder: Path) -> None:
    path = folder / "encrypted.key"
    run("openssl", "pkcs8", "-topk8", "-in", str(signed.key), "-passout", "pass:x", "-out", str(path))
    store = pem_key_store(path.read_text() + signed.chain.read_text(), "it")
    assert store.is_encrypted and "ENCRYPTED PRIVATE KEY" in store.key


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda signed: signed.chain.read_text(), "no private keys"),
        (lambda signed: signed.key.read_text(), "no certificate"),
        (lambda signed: signed.key.read_text() + signed.pem.read_text(), "2 private keys"),
        (lambda signed: signed.pem.read_text().replace("END CERTIFICATE", "END CERT"), "no certificate"),
    ],
)
def test_what_a_pem_store_must_have(signed: Signed, make: object, complaint: str) -> None:
    with pytest.raises(StoreError, match=complaint):
        pem_key_store(make(signed), "it")  # type: ignore[operator]


def test_a_wrong_password_or_a_changed_store_is_refused(signed: Signed, folder: Path) -> None:
    data = make_jks(signed, folder / "guarded.jks").read_bytes()
    with pytest.raises(StoreError, match="password does not fit"):
        read_key_store(data, "it", "wrong", None)
    with pytest.raises(StoreError, match="password of its key"):
        read_key_store(data, "it", PASSWORD, "wrong")
    changed = data[:200] + bytes([data[200] ^ 1]) + data[201:]
    with pytest.raises(StoreError):
        read_key_store(changed, "it", PASSWORD, None)
    for size in range(4, len(data), 97):
        with pytest.raises(StoreError):
            read_key_store(data[:size], "it", PASSWORD, None)


def test_trust_stores_of_every_kind(authority: Authority, folder: Path, signed: Signed) -> None:
    pem = read_trust_store(authority.certificate.read_bytes(), "it", None)
    assert len(pem) == 1
    jks = make_jks_trust(authority.certificate, folder / "trust.jks").read_bytes()
    assert read_trust_store(jks, "it", PASSWORD) == pem
    assert read_trust_store(jks, "it", None) == pem, "the password only guards against changes"
    with pytest.raises(StoreError, match="password does not fit"):
        read_trust_store(jks, "it", "wrong")
    with pytest.raises(StoreError, match="No trusted certificates"):
        read_trust_store(make_jks(signed, folder / "keys.jks").read_bytes(), "it", PASSWORD)
    with pytest.raises(StoreError, match="No trusted certificates"):
        read_trust_store(signed.key.read_bytes(), "it", None)
    pytest.importorskip("cryptography")
    p12 = make_jks_trust(authority.certificate, folder / "trust.p12", "PKCS12").read_bytes()
    assert read_trust_store(p12, "it", PASSWORD) == pem
    with pytest.raises(StoreError, match="cannot be read"):
        read_trust_store(p12, "it", "wrong")
    with pytest.raises(StoreError, match="cannot be read"):
        read_trust_store(b"nonsense", "it", None)
