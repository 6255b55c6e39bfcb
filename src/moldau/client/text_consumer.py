"""A consumer that writes records as text, batch by batch, without an object for any of them: for the command line."""

from __future__ import annotations

from moldau.client.consumer import ARROW_ROWS, Consumer
from moldau.records.text_writer import TextWriter

__all__ = ["TextConsumer"]


class TextConsumer(Consumer):
    """A Consumer with poll_text() beside poll()."""

    def poll_text(self, writer: TextWriter, timeout_ms: int = 0, max_rows: int = ARROW_ROWS) -> bool:
        """Writes what arrived as text, whole batches of it; False if nothing arrives before the timeout."""
        with self._gate:
            return self._take_within(timeout_ms, lambda: self._fetcher.take_text(max_rows, writer)) > 0
