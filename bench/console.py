"""The console beside ten thousand topics and groups: how soon a page is painted, how large the process is.

    python bench/console.py [--topics 10000] [--groups 10000] [--moldau COMMAND] [--broker COMMAND]

A broker of Moldau is filled, `moldau console` is started beside it, and a real Chromium opens pages, each in a fresh
profile: first contentful paint as the browser tells it, and the moment at which the first row of the table is there.
At the end a producer with one request in flight measures the broker alone and while the console is asked every second
for what its pages ask for: overview, topics, groups. (Without the browser, which would take a core from both.)
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compare import Load

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "bench")]

POLLED = ("/api/overview", "/api/topics", "/api/groups")
POLL_S = 1.0
LATENCY_S = 15.0
LATENCY_ROUNDS = 3

PAGES = {"/": ".health li", "/topics": "tbody tr", "/topics?search=topic-0999": "tbody tr", "/groups": "tbody tr"}
TURNS = 5
TOPICS_AT_ONCE = 500


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--moldau", default=f"{sys.executable} -m moldau", help="the command that runs the console")
    parser.add_argument("--broker", help="the command that runs the broker, where it is another one")
    options = parser.parse_args()
    from tests.interop.nodes import MoldauNode, free_ports

    class Node(MoldauNode):
        @staticmethod
        def command() -> list[str]:
            return shlex.split(options.broker or options.moldau)

        def environment(self) -> dict[str, str]:
            return dict(os.environ)

    with tempfile.TemporaryDirectory() as directory:
        node = Node(Path(directory) / "broker")
        node.format()
        node.start()
        try:
            fill(node.bootstrap, options.topics, options.groups)
            (port,) = free_ports(1)
            measure(shlex.split(options.moldau), node.bootstrap, port)
        finally:
            node.stop()
    return 0


def fill(bootstrap: str, topics: int, groups: int) -> None:
    from moldau.client import Admin, TopicPartition
    from moldau.client.admin import NewTopic

    with Admin(bootstrap, default_api_timeout_ms=600_000) as admin:
        began = time.monotonic()
        for start in range(0, topics, TOPICS_AT_ONCE):
            names = [f"topic-{number:05d}" for number in range(start, min(start + TOPICS_AT_ONCE, topics))]
            for outcome in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
                outcome.get()
        print(f"{topics:,} topics in {time.monotonic() - began:.1f} s", flush=True)
        began = time.monotonic()
        for number in range(groups):
            where = TopicPartition(f"topic-{number % topics:05d}", 0)
            admin.alter_consumer_group_offsets(f"group-{number:05d}", {where: 0})
        print(f"{groups:,} groups in {time.monotonic() - began:.1f} s", flush=True)


def measure(moldau: list[str], bootstrap: str, port: int) -> None:
    began = time.monotonic()
    command = [*moldau, "console", "-b", bootstrap, "--listen", f"127.0.0.1:{port}"]
    console = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        while True:
            try:
                urllib.request.urlopen(f"{url}/healthz").close()
                break
            except OSError:
                time.sleep(0.01)
        print(f"start to first answer {1000 * (time.monotonic() - began):.0f} ms, {memory_mb(console.pid):.1f} MB")
        look(url)
        compare_latencies(int(bootstrap.rsplit(":", 1)[1]), url)
        print(f"memory after all pages {memory_mb(console.pid):.1f} MB (peak {memory_mb(console.pid, 'VmHWM'):.1f} MB)")
    finally:
        console.terminate()
        console.wait()


def look(url: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for page_path, selector in PAGES.items():
            paints, rows = [], []
            for _ in range(TURNS):
                context = browser.new_context()
                page = context.new_page()
                began = time.monotonic()
                page.goto(url + page_path, wait_until="commit")
                page.locator(selector).first.wait_for(timeout=120_000)
                rows.append(1000 * (time.monotonic() - began))
                paints.append(
                    page.evaluate(
                        "performance.getEntriesByType('paint').find((each) => each.name === 'first-contentful-paint')"
                        "?.startTime ?? NaN"
                    )
                )
                context.close()
            print(
                f"{page_path:28} first paint {statistics.median(paints):5.0f} ms ({max(paints):.0f}),"
                f" first row {statistics.median(rows):5.0f} ms (first {rows[0]:.0f}, worst {max(rows):.0f})",
                flush=True,
            )
        browser.close()


def compare_latencies(port: int, url: str) -> None:
    """The producer's, alone and beside a console that is looked at, in turn."""
    import compare

    compare.create_topic(port, "latencies", 1, 1)
    alone: list[float] = []
    beside: list[float] = []
    asked = 0
    with compare.Load(port, "latencies", compare.batch_of(1, 100)) as load:
        load.latencies_us(1000)
        for _ in range(LATENCY_ROUNDS):
            alone += latencies_for(load, LATENCY_S)
            with ThreadPoolExecutor(1) as pool:
                stop = threading.Event()
                answers = pool.submit(poll, url, stop)
                beside += latencies_for(load, LATENCY_S)
                stop.set()
                asked += answers.result()
    for label, times in (("alone", sorted(alone)), ("beside the console", sorted(beside))):
        p50, p99 = (times[int(len(times) * share)] for share in (0.5, 0.99))
        print(f"produce {label:20} p50 {p50:.0f} us, p99 {p99:.0f} us, {len(times):,} requests", flush=True)
    print(f"the console answered {asked} questions meanwhile")


def latencies_for(load: Load, seconds: float) -> list[float]:
    found: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found += load.latencies_us(500)
    return found


def poll(url: str, stop: threading.Event) -> int:
    """How many answers there were; an error ends it."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.open(f"{url}/api/session").read()
    count = 0
    while not stop.is_set():
        for path in POLLED:
            opener.open(url + path).read()
            count += 1
        stop.wait(POLL_S)
    return count


def memory_mb(pid: int, field: str = "VmRSS") -> float:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))


if __name__ == "__main__":
    sys.exit(main())
