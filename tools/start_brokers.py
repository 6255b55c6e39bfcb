"""`make starts`: starts brokers for tests again and again, one after the other and several at once; none may fail.

start_brokers.py [--in-a-row 500] [--at-once 200] [--together 8]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from moldau.testing import Broker

SHOWN_EVERY = 50


def start_one(number: int) -> float:
    """Seconds until it was ready; it has also taken a record."""
    began = time.monotonic()
    with Broker() as broker:
        took = time.monotonic() - began
        topic = broker.topic()
        topic.produce(str(number))
        assert [record.value for record in topic.records()] == [str(number).encode()]
    return took


def run(count: int, together: int) -> int:
    """How many failed."""
    failures, took = 0, []
    began = time.monotonic()
    with ThreadPoolExecutor(together) as pool:
        for number, attempt in enumerate([pool.submit(start_one, number) for number in range(count)], 1):
            try:
                took.append(attempt.result())
            except Exception as error:
                failures += 1
                print(f"start {number} failed: {error}", file=sys.stderr)
            if number % SHOWN_EVERY == 0:
                print(f"{number} of {count}, {failures} failed, {time.monotonic() - began:.0f} s", flush=True)
    ready = f"ready after {statistics.median(took):.2f} s, at most {max(took):.2f} s" if took else "none was ready"
    print(f"{count} starts, {together} at once: {failures} failed; {ready}", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--in-a-row", type=int, default=500)
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--together", type=int, default=8)
    arguments = parser.parse_args()
    failures = run(arguments.in_a_row, 1) if arguments.in_a_row else 0
    failures += run(arguments.at_once, arguments.together) if arguments.at_once else 0
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
