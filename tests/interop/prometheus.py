"""A real Prometheus and its promtool, from the system or from Debian's package, which is unpacked but not installed."""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from tests.interop.nodes import HOST, free_ports
from tests.pace import patience, wait_until

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moldau-tests" / "prometheus"
PROGRAMS = ("prometheus", "promtool")
FETCH_S_MAX = patience(120)
STOP_S_MAX = patience(10)

Labels = dict[str, str]


@functools.cache
def missing() -> str | None:
    """Why Prometheus cannot be run here, or None when it can."""
    if all(find(name) for name in PROGRAMS):
        return None
    fetched = fetch()
    return (
        None if fetched is None else f"Prometheus is missing ({fetched}): install it (Debian: apt install prometheus)"
    )


def program(name: str) -> str:
    found = find(name)
    assert found is not None, f"{name} is missing"
    return found


def find(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=str(CACHE / "usr" / "bin"))


def fetch() -> str | None:
    """Unpacks Debian's package into the cache: no service is set up, nobody has to be root. Why not, if it fails."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return "there is no apt-get to fetch it with"
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent, ignore_cleanup_errors=True) as folder:
        # The user that apt-get fetches as must be able to write there.
        os.chmod(folder, 0o755)
        download = ["apt-get", "-qq", "download", "prometheus"]
        got = run(download, folder)
        if got is not None and os.getuid() == 0 and run(["apt-get", "-qq", "update"], folder) is None:
            got = run(download, folder)
        packages = list(Path(folder).glob("prometheus_*.deb"))
        if got is not None or not packages:
            return got or "apt-get fetched nothing"
        unpacked = run(["dpkg-deb", "-x", str(packages[0]), "unpacked"], folder)
        if unpacked is not None:
            return unpacked
        shutil.rmtree(CACHE, ignore_errors=True)
        os.replace(Path(folder) / "unpacked", CACHE)
    return None if all(find(name) for name in PROGRAMS) else "the package is not what it was"


def run(command: list[str], folder: str) -> str | None:
    """What it said if it failed."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FETCH_S_MAX)
    except subprocess.TimeoutExpired:
        return f"{command[0]} took too long"
    return None if done.returncode == 0 else f"{command[0]}: {done.stderr.strip()[-200:]}"


def promtool(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), *words], input=text, capture_output=True, text=True, timeout=patience(30)
    )


class Prometheus:
    """One process with a configuration file and storage of its own; `with` stops it."""

    def __init__(self, folder: Path, config: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "prometheus.yml").write_text(config)
        self.address = f"{HOST}:{free_ports(1)[0]}"
        self._log_file = folder / "output.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Prometheus:
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    program("prometheus"),
                    "--config.file=prometheus.yml",
                    "--storage.tsdb.path=data",
                    f"--web.listen-address={self.address}",
                    "--log.level=warn",
                ],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        wait_until(self._is_ready, 30, lambda: f"Prometheus is not ready:\n{self.output()[-3000:]}", 0.05)
        return self

    def __exit__(self, *exception: object) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def output(self) -> str:
        return self._log_file.read_text(errors="replace")

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"Prometheus ended:\n{self.output()[-3000:]}"
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=patience(1)):
                return True
        except OSError:
            return False

    def ask(self, path: str, **words: str) -> dict[str, object]:
        """The data of an answer of its HTTP API."""
        url = f"http://{self.address}/api/v1/{path}"
        if words:
            url += "?" + urllib.parse.urlencode(words)
        try:
            with urllib.request.urlopen(url, timeout=patience(10)) as answer:
                data: dict[str, object] = json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{words or path}: {error.read().decode(errors='replace')}") from None
        return data

    def query(self, expression: str) -> list[tuple[Labels, float]]:
        """What an expression is now, by labels. A series that is not a number has no value."""
        found: list[tuple[Labels, float]] = []
        rows = self.ask("query", query=expression)["result"]
        assert isinstance(rows, list)
        for row in rows:
            value = float(row["value"][1])
            if not math.isnan(value):
                found.append((row["metric"], value))
        return found

    def number(self, expression: str) -> float | None:
        """The value of an expression with one, if it has one."""
        found = self.query(expression)
        assert len(found) <= 1, f"{expression} has {len(found)} values"
        return found[0][1] if found else None

    def scraped(self) -> int:
        """How many scrapes there were: those of the target that had the fewest."""
        counts = self.query("count_over_time(up[1h])")
        return int(min((count for _, count in counts), default=0))
