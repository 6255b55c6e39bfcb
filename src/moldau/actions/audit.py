"""The audit log: a line for each change, who made it, to what, and what came of it."""

from __future__ import annotations

import json
import logging
import time


class Audit:
    """Writes lines of JSON to a file, or to the log of the process."""

    def __init__(self, path: str | None = None, logger: str = "moldau.console.audit") -> None:
        self._log = logging.getLogger(logger)
        # Opened once: a directory that is missing is told at the start, not with the first change.
        self._file = None if path is None else open(path, "a", encoding="utf-8")  # noqa: SIM115

    def note(
        self, user: str, address: str, action: str, target: str, details: object = None, error: str | None = None
    ) -> None:
        """One change that was tried; error: why nothing came of it."""
        row = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "user": user,
            "address": address,
            "action": action,
            "target": target,
        }
        if details is not None:
            row["details"] = details  # type: ignore[assignment]
        row["outcome"] = "done" if error is None else error
        # JSON escapes line ends and control characters: no name can write a line of its own.
        text = json.dumps(row, ensure_ascii=True)
        if self._file is None:
            self._log.info("audit %s", text)
        else:
            self._file.write(text + "\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
