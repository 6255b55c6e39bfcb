"""`moldau cert dev`: what is made, by either way of signing, that TLS takes it, and what a second run renews."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import ssl
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli.root import root
from moldau.net.tls_contexts import check_handshake
from moldau.security.der import read_certificate
from moldau.security.distinguished_names import distinguished_name
from moldau.security.keystores import pem_certificates, read_key_store
from moldau.server import signing
from moldau.server.dev_certificates import DevCertificates, canonical_host
from moldau.server.signing import CryptographySigner, OpensslSigner, Signer, SigningError, write_private


@pytest.fixture(params=["cryptography", "openssl"])
def signer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Signer:
    """Both ways of signing, each taken by the command."""
    found: Signer
    if request.param == "cryptography":
        pytest.importorskip("cryptography", reason="pip install 'moldau[keystores]'")
        found = CryptographySigner()
    else:
        if shutil.which("openssl") is None:
            pytest.skip("openssl is missing: install it and put it on PATH")
        found = OpensslSigner()
    monkeypatch.setattr(signing, "find_signer", lambda: found)
    return found


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(root, ["cert", "dev", "-d", str(folder), *arguments])


def run_json(folder: Path, *arguments: str) -> Any:
    result = run(folder, *arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def what(found: Any) -> dict[str, str]:
    return {row["name"]: row["what"] for row in found["certificates"]}


def contexts(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "broker.pem")
    server.load_verify_locations(folder / "ca.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    client.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return server, client


def names(folder: Path) -> list[str]:
    return read_certificate(pem_certificates((folder / "broker.crt").read_text(), "")[0]).host_names()


def test_broker_and_client_trust_each_other(tmp_path: Path, signer: Signer) -> None:
    found = run_json(tmp_path / "certs", "--host", "Kafka.Test", "--host", "10.0.0.7", "--client", "anna")
    assert what(found) == {"ca": "made", "broker": "made", "anna": "made"}
    assert check_handshake(*contexts(tmp_path / "certs", "anna")) is None
    assert names(tmp_path / "certs") == ["10.0.0.7", "127.0.0.1", "::1", "kafka.test", "localhost"]
    own = read_certificate(pem_certificates((tmp_path / "certs" / "anna.crt").read_text(), "")[0])
    assert distinguished_name(own.subject) == "CN=anna"
    begin, end = own.valid_seconds()
    assert begin <= time.time() < end <= time.time() + 366 * 86400


def test_nobody_else_can_read_keys(tmp_path: Path, signer: Signer) -> None:
    old = os.umask(0)
    try:
        run_json(tmp_path / "certs", "--client", "anna")
    finally:
        os.umask(old)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "certs").iterdir()}
    public = {"ca.pem", "broker.crt", "anna.crt"}
    assert {name for name, mode in modes.items() if mode != 0o600} == public
    assert stat.S_IMODE((tmp_path / "certs").stat().st_mode) == 0o700
    for name in public:
        assert "PRIVATE KEY" not in (tmp_path / "certs" / name).read_text()


def test_the_pkcs12_store_opens_with_the_password_beside_it(tmp_path: Path, signer: Signer) -> None:
    pytest.importorskip("cryptography", reason="pip install 'moldau[keystores]'")
    run_json(tmp_path, "--client", "anna")
    password = (tmp_path / "store.password").read_text().strip()
    store = read_key_store((tmp_path / "anna.p12").read_bytes(), "anna.p12", password, None)
    assert store.chain[0] == pem_certificates((tmp_path / "anna.crt").read_text(), "")[0]
    assert len(store.chain) == 2


def test_a_second_run_keeps_everything(tmp_path: Path, signer: Signer) -> None:
    run_json(tmp_path, "--client", "anna")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert set(what(run_json(tmp_path, "--client", "anna")).values()) == {"kept"}
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_missing_name_renews_the_broker_and_keeps_the_old_names(tmp_path: Path, signer: Signer) -> None:
    run_json(tmp_path, "--host", "first.test", "--client", "anna")
    authority = (tmp_path / "ca.pem").read_bytes()
    found = run_json(tmp_path, "--host", "second.test", "--client", "anna")
    assert what(found) == {"ca": "kept", "broker": "renewed", "anna": "kept"}
    assert found["certificates"][1]["why"] == "it lacks second.test"
    assert {"first.test", "second.test"} <= set(names(tmp_path))
    assert (tmp_path / "ca.pem").read_bytes() == authority
    assert check_handshake(*contexts(tmp_path, "anna")) is None


def test_force_renews_certificates_and_keeps_the_authority(tmp_path: Path, signer: Signer) -> None:
    run_json(tmp_path, "--client", "anna")
    authority, own = (tmp_path / "ca.pem").read_bytes(), (tmp_path / "anna.crt").read_bytes()
    assert what(run_json(tmp_path, "--client", "anna", "--force")) == {
        "ca": "kept",
        "broker": "renewed",
        "anna": "renewed",
    }
    assert (tmp_path / "ca.pem").read_bytes() == authority
    assert (tmp_path / "anna.crt").read_bytes() != own


def test_a_new_authority_signs_everything_anew(tmp_path: Path, signer: Signer) -> None:
    run_json(tmp_path)
    found = run_json(tmp_path, "--new-authority")
    assert what(found) == {"ca": "renewed", "broker": "renewed"}
    assert found["certificates"][1]["why"] == "another authority has signed it"
    assert check_handshake(*contexts(tmp_path, "broker")) is None


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda folder: (folder / "broker.key").unlink(), "a file of it is missing"),
        (lambda folder: shutil.copy(folder / "anna.p12", folder / "broker.pem"), ""),
        (lambda folder: (folder / "broker.pem").write_text("nothing"), ""),
        (
            lambda folder: (folder / "broker.pem").write_bytes(
                (folder / "anna.key").read_bytes() + (folder / "broker.crt").read_bytes()
            ),
            "its key does not fit",
        ),
    ],
)
def test_what_is_damaged_is_made_anew(tmp_path: Path, damage: Any, why: str) -> None:
    if importlib.util.find_spec("cryptography") is None and shutil.which("openssl") is None:
        pytest.skip("neither cryptography nor openssl is there")
    run_json(tmp_path, "--client", "anna")
    damage(tmp_path)
    broker = run_json(tmp_path, "--client", "anna")["certificates"][1]
    assert (broker["what"] in ("made", "renewed"), broker["why"]) == (True, why)
    assert check_handshake(*contexts(tmp_path, "anna")) is None


def test_what_is_about_to_expire_is_renewed(tmp_path: Path, signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    run_json(tmp_path, "--days", "365")
    now = time.time()
    for days, expected, why in ((300, "kept", ""), (340, "renewed", "it is about to expire")):
        monkeypatch.setattr("moldau.server.dev_certificates.time.time", lambda days=days: now + days * 86400)
        broker = run_json(tmp_path)["certificates"][1]
        assert (broker["what"], broker["why"]) == (expected, why)


def test_an_authority_without_its_key_is_not_replaced_silently(tmp_path: Path, signer: Signer) -> None:
    run_json(tmp_path)
    (tmp_path / "ca.key").unlink()
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "ca.key is not: put it back, or say --new-authority" in result.output


@pytest.mark.parametrize("name", ["ca", "broker", "CA", "Broker", "../x", "", "a b", "-x"])
def test_a_client_needs_a_name_that_a_file_can_have(tmp_path: Path, signer: Signer, name: str) -> None:
    result = run(tmp_path, f"--client={name}")
    assert result.exit_code == 1
    assert "cannot be the name of a client" in result.output


def test_names_that_differ_in_capitals_alone_are_refused(tmp_path: Path, signer: Signer) -> None:
    """Some file systems have one file for both."""
    result = run(tmp_path / "certs", "--client", "Anna", "--client", "anna")
    assert (result.exit_code, (tmp_path / "certs").exists()) == (1, False)
    assert "'anna' cannot be the name of a client here: its files would be those of 'Anna'" in result.output


def test_an_address_of_one_interface_is_refused(tmp_path: Path, signer: Signer) -> None:
    result = run(tmp_path, "--host", "fe80::1%eth0")
    assert result.exit_code == 1
    assert "'fe80::1%eth0' names an interface of this machine" in result.output


def test_a_planted_link_is_replaced_and_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither at the path itself nor at the name that the file has before it is whole."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / "own.key").symlink_to(victim)
    write_private(tmp_path / "own.key", b"secret")
    assert (tmp_path / "own.key").is_symlink() is False
    assert ((tmp_path / "own.key").read_bytes(), victim.read_bytes()) == (b"secret", b"mine")
    monkeypatch.setattr("moldau.server.signing.secrets.token_hex", lambda count: "guessed")
    (tmp_path / ".own.key.guessed.new").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "own.key", b"other")
    assert ((tmp_path / "own.key").read_bytes(), victim.read_bytes()) == (b"secret", b"mine")


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "own.key").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_private(tmp_path / "own.key", b"secret")
    assert [file.name for file in tmp_path.iterdir()] == ["own.key"]


@pytest.mark.parametrize("host", ["", "a b", "x,DNS:evil", "x\ny", "http://x"])
def test_a_host_is_a_name_or_an_address(host: str) -> None:
    with pytest.raises(SigningError, match="neither the name of a host"):
        canonical_host(host)


def test_addresses_have_one_form() -> None:
    assert [canonical_host(host) for host in ("[::1]", "0:0:0:0:0:0:0:1", "LOCALHOST")] == ["::1", "::1", "localhost"]


def test_the_lines_name_the_files(tmp_path: Path, signer: Signer) -> None:
    result = run(tmp_path, "--client", "anna")
    for line in (
        f"ssl.keystore.location={tmp_path}/broker.pem",
        f"ssl.truststore.location={tmp_path}/ca.pem",
        "ssl.client.auth=required",
        f"ssl.ca.location={tmp_path}/ca.pem",
        f"ssl.certificate.location={tmp_path}/anna.crt",
        f"    ssl_keyfile='{tmp_path}/anna.key',",
    ):
        assert line in result.output.splitlines(), line
    assert (tmp_path / "store.password").read_text().strip() not in result.output


def test_without_a_way_to_sign_the_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.x509", None)
    monkeypatch.setattr(shutil, "which", lambda command: None)
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "pip install 'moldau[keystores]'" in result.output


def test_java_reads_the_stores(tmp_path: Path, signer: Signer) -> None:
    if shutil.which("keytool") is None:
        pytest.skip("keytool is missing: install Java and put it on PATH")
    run_json(tmp_path, "--client", "anna")
    password = (tmp_path / "store.password").read_text().strip()
    done = subprocess.run(
        ["keytool", "-list", "-keystore", str(tmp_path / "anna.p12"), "-storepass", password],
        capture_output=True,
        text=True,
    )
    assert "PrivateKeyEntry" in done.stdout, done.stdout + done.stderr


def test_a_subject_with_odd_letters_is_kept(tmp_path: Path, signer: Signer) -> None:
    folder = DevCertificates(tmp_path, signer)
    folder.ensure_authority()
    folder.ensure("odd", "Jiří/O=x+y")
    own = read_certificate(pem_certificates((tmp_path / "odd.crt").read_text(), "")[0])
    assert distinguished_name(own.subject) == "CN=Jiří/O\\=x\\+y"
