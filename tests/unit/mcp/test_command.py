"""`moldau mcp`: what does not start, and what is said about it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from moldau.cli.root import root

NEEDS = ("moldau.mcp.http", "moldau.mcp.server", "moldau.mcp.stdio")


def refusal(*options: str) -> str:
    result = CliRunner().invoke(root, ["mcp", "--bootstrap-server", "127.0.0.1:1", *options])
    assert result.exit_code != 0 and result.stdout == ""
    return result.stderr


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import moldau.mcp

    for name in [each for each in sys.modules if each in NEEDS or each == "mcp" or each.startswith("mcp.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in NEEDS:
        monkeypatch.delattr(moldau.mcp, name.rpartition(".")[2], raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert "pip install 'moldau[mcp]'" in refusal()


def test_what_is_not_safe_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp", reason="install the extra mcp: the SDK is missing")
    monkeypatch.delenv("MOLDAU_MCP_TOKEN", raising=False)
    short = tmp_path / "token"
    short.write_text("short\n")
    for options, said in (
        (("--transport", "http", "--host", "0.0.0.0"), "Others can reach 0.0.0.0"),
        (("--transport", "http", "--token-file", str(short)), "The token has 5 characters"),
        (("--transport", "http", "--token-file", str(tmp_path / "none")), "No such file"),
        (("--command-config", str(tmp_path / "none")), "No such file"),
        (("--tls-cert", "chain.pem"), "belong together"),
        (("-X", "fetch.sizes=3"), "fetch.sizes"),
        (("--max-rows", "0"), "--max-rows"),
    ):
        assert said in refusal(*options), options
