"""The log that Kafka's tools write to the error output, in its form."""

from __future__ import annotations

import sys
import threading
import time

from moldau.cli.kafka.options import JavaFailure


def log_line(level: str, text: str, logger: str) -> str:
    """A line of the log that the tools write to the error output."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    return f"[{stamp},{int(now * 1000) % 1000:03d}] {level} {text} ({logger})\n"


_log_lock = threading.Lock()


def write_log(level: str, sentence: str, logger: str, failure: JavaFailure | None = None) -> None:
    """A line of the log, and the exception behind it; the sender's thread writes lines too."""
    text = log_line(level, sentence, logger)
    if failure is not None:
        text += failure.java_text() + "\n"
    with _log_lock:
        sys.stdout.flush()
        sys.stderr.write(text)
        sys.stderr.flush()
