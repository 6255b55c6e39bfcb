"""Writes records that cannot be decoded to a dead-letter topic, with where they came from and what is wrong in headers.

A task that runs again writes them again: the topic has each bad record at least once, and its headers tell which one
it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from moldau.client import config as client_settings
from moldau.client.errors import ClientError
from moldau.client.produce.delivery import DeliveryFuture
from moldau.client.producer import Producer
from moldau.spark.lookup import ReadError

PREFIX = "moldau.dead_letter."


class DeadLetterTopic:
    """The topic for one task's bad records; connects with the first of them."""

    def __init__(self, topic: str, client_config: Mapping[str, str]) -> None:
        self._topic = topic
        self._config = {name: value for name, value in client_config.items() if name in client_settings.PRODUCER}
        self._producer: Producer | None = None
        self._futures: list[DeliveryFuture] = []

    def send(self, batch: pa.RecordBatch, reasons: pa.Array) -> None:
        """The rows of the batch that have a reason: key, value and headers as they were, and four headers more."""
        if self._producer is None:
            self._producer = Producer(config=self._config)
        chosen = batch.append_column("reason", reasons).filter(reasons.is_valid())
        try:
            for row in chosen.to_pylist():
                headers = [(item["key"], item["value"]) for item in row.get("headers") or []]
                for name in ("topic", "partition", "offset", "reason"):
                    headers.append((f"{PREFIX}{name}", str(row[name]).encode()))
                future = self._producer.send(self._topic, row["value"], key=row["key"], headers=headers)
                self._futures.append(future)
        except ClientError as error:
            raise self._failed(error) from None

    def flush(self) -> None:
        """Returns when all of them are written; a bad record must not be lost because it is bad."""
        if self._producer is None:
            return
        producer, self._producer = self._producer, None
        try:
            producer.flush()
            for future in self._futures:
                future.result()
        except ClientError as error:
            raise self._failed(error) from None
        finally:
            producer.close()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _failed(self, error: ClientError) -> ReadError:
        return ReadError(f"A bad record could not be written to deadLetterTopic {self._topic}: {error.message}")
