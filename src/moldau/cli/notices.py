"""What the client has to say while it goes on trying: once, until it has something else to say."""

from __future__ import annotations

import logging

from moldau.cli.output import print_note


class Notices(logging.Handler):
    """Prints warnings of the client on the error output; the same one again only after another."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._last = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text != self._last:
            self._last = text
            print_note(text)


def show_notices() -> None:
    """From now on warnings of the client are told in this way."""
    logger = logging.getLogger("moldau.client")
    if not any(isinstance(handler, Notices) for handler in logger.handlers):
        logger.addHandler(Notices())
