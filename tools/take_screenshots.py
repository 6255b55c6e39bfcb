"""`make screenshots`: starts a cluster with something going on in it, and takes the pictures of docs/console.md."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "console"
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

SETTLE_S = 14.0
SHOTS = {
    "overview": ("/", "light", 1280, 860),
    "topics": ("/topics", "light", 1280, 760),
    "topic": ("/topics/orders", "light", 1280, 900),
    "messages": ("/topics/orders/messages?limit=20", "light", 1280, 900),
    "configs": ("/topics/orders/configs", "dark", 1280, 760),
    "group": ("/groups/billing", "dark", 1280, 980),
    "narrow": ("/topics", "light", 400, 760),
}


def main() -> int:
    from playwright.sync_api import sync_playwright

    from moldau.client import Admin, Consumer, Producer
    from moldau.client.admin import NewTopic
    from moldau.testing import Cluster

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("There is no Chromium: apt install chromium", file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    stop = threading.Event()
    with Cluster(3) as cluster, tempfile.TemporaryDirectory() as directory:
        with Admin(cluster.bootstrap_servers) as admin:
            topics = [NewTopic("orders", 12, 3), NewTopic("payments", 6, 3), NewTopic("shipments", 6, 2)]
            topics += [NewTopic(f"sensor.{place}", 3, 2) for place in ("hall", "roof", "street", "yard")]
            for outcome in admin.create_topics(topics).values():
                outcome.get()
        threads = [threading.Thread(target=write, args=(Producer(cluster.bootstrap_servers), stop))]
        for number in range(3):
            consumer = Consumer(cluster.bootstrap_servers, group_id="billing", client_id=f"billing-{number}")
            consumer.subscribe(["orders", "payments"])
            threads.append(threading.Thread(target=read, args=(consumer, stop, number)))
        for thread in threads:
            thread.start()
        command = [
            sys.executable,
            "-m",
            "moldau",
            "console",
            "-b",
            cluster.bootstrap_servers,
            "--listen",
            "127.0.0.1:0",
        ]
        console = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=directory)
        try:
            assert console.stdout is not None
            url = console.stdout.readline().split()[-1].rstrip("/")
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                for name, (path, theme, width, height) in SHOTS.items():
                    context = browser.new_context(
                        viewport={"width": width, "height": height},
                        color_scheme="dark" if theme == "dark" else "light",
                    )
                    page = context.new_page()
                    page.goto(url + path)
                    page.wait_for_timeout(SETTLE_S * 1000 if name in ("overview", "topic", "group") else 3000)
                    if name == "messages":
                        page.locator(".opener").nth(1).click()
                        page.wait_for_timeout(300)
                    page.screenshot(path=str(PICTURES / f"{name}.png"))
                    context.close()
                    print(f"docs/console/{name}.png")
                browser.close()
        finally:
            stop.set()
            console.terminate()
            console.wait()
            for thread in threads:
                thread.join()
    return 0


def write(producer: object, stop: threading.Event) -> None:
    """A shop with better and worse minutes."""
    from moldau.client import Producer

    assert isinstance(producer, Producer)
    rng = random.Random(7)
    number = 0
    with producer:
        while not stop.is_set():
            for _ in range(rng.randint(5, 60)):
                number += 1
                order = {"order": number, "customer": {"id": rng.randint(1, 900)}, "items": rng.randint(1, 9)}
                producer.send("orders", json.dumps(order).encode(), b"%d" % (number % 900), headers=[("shop", b"7")])
                if number % 3 == 0:
                    producer.send("payments", json.dumps({"order": number, "paid": True}).encode(), b"%d" % number)
                if number % 5 == 0:
                    producer.send(
                        f"sensor.{rng.choice(['hall', 'roof', 'street', 'yard'])}", b"%.2f" % rng.gauss(20, 4)
                    )
            time.sleep(0.1)


def read(consumer: object, stop: threading.Event, number: int) -> None:
    """Members of a group, one of them slow."""
    from moldau.client import Consumer

    assert isinstance(consumer, Consumer)
    with consumer:
        while not stop.is_set():
            consumer.poll(200, 20 if number == 1 else 500)
            consumer.commit_async()
            time.sleep(0.4 if number == 1 else 0.05)


if __name__ == "__main__":
    sys.exit(main())
