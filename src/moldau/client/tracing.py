"""Spans of OpenTelemetry for what is sent and read, with the trace's context in the headers of records.

    from moldau.client.tracing import TracingConsumer, TracingProducer, process

    with TracingProducer("localhost:9092") as producer:
        producer.send("orders", b"1")  # a span until it is delivered

    with TracingConsumer("localhost:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        for record in consumer.poll(1000):  # a span with links to those that sent the records
            with process(record):  # a span for the work on it
                ...

Names and attributes are those of OpenTelemetry's conventions for messaging. These are subclasses, so that clients that
are not traced pay nothing; whoever sends rows of Arrow or reads them has no span for each.

Needs opentelemetry-api: `pip install 'moldau[opentelemetry]'`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider, get_current_span

from moldau import __version__
from moldau.client.arguments import GivenHeaders, GivenNumber, GivenTopic
from moldau.client.consumer import Consumer
from moldau.client.errors import ClientError
from moldau.client.produce.delivery import Callback, DeliveryFuture
from moldau.client.producer import NO_KEY, Producer
from moldau.client.record import ConsumerRecord
from moldau.client.results import Headers, RecordMetadata

__all__ = ["TracingConsumer", "TracingProducer", "extract", "process"]

# A poll has a link for each record up to here, which is what an SDK keeps of them by default.
LINKS_MAX = 128


class TracingProducer(Producer):
    """A Producer whose send() has a span, which ends when the record is delivered or has failed."""

    def __init__(self, *arguments: Any, tracer_provider: TracerProvider | None = None, **more: Any) -> None:
        """Takes what Producer takes; tracer_provider: None for that of the process."""
        super().__init__(*arguments, **more)
        self._tracer = _tracer(tracer_provider)

    def send(
        self,
        topic: GivenTopic,
        value: object = None,
        key: object = None,
        *,
        partition: GivenNumber = None,
        timestamp_ms: GivenNumber = None,
        headers: GivenHeaders | None = None,
        on_delivery: Callback | None = None,
    ) -> DeliveryFuture:
        """As Producer.send(), with the context of the span among the headers."""
        attributes = _attributes("send", "send", str(topic), self._config.get_text("client.id"))
        if isinstance(key, str):
            attributes["messaging.kafka.message.key"] = key
        if value is None:
            attributes["messaging.kafka.message.tombstone"] = True
        span = self._tracer.start_span(f"send {topic}", kind=SpanKind.PRODUCER, attributes=attributes)
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        given: list[Any] = list(headers.items()) if isinstance(headers, Mapping) else list(headers or [])  # type: ignore[call-overload]
        context: Headers = [(name, text.encode()) for name, text in carrier.items()]
        try:
            return super().send(
                topic,
                value,
                key,
                partition=partition,
                timestamp_ms=timestamp_ms,
                headers=[*given, *context],
                on_delivery=_Delivery(span, on_delivery).on_delivery,
            )
        except Exception as error:
            _end(span, error)
            raise

    def send_many(
        self,
        topic: GivenTopic,
        values: Iterable[object],
        keys: Iterable[object] | None = None,
        *,
        partition: GivenNumber = None,
        timestamp_ms: GivenNumber = None,
    ) -> list[DeliveryFuture]:
        """As Producer.send_many(), with a span for each record."""
        key_iterator = None if keys is None else iter(keys)
        futures = []
        for value in values:
            key = None if key_iterator is None else next(key_iterator, NO_KEY)
            futures.append(self.send(topic, value, key, partition=partition, timestamp_ms=timestamp_ms))
        return futures


class _Delivery:
    """Ends a span with what became of its record."""

    def __init__(self, span: Span, then: Callback | None) -> None:
        self._span = span
        self._then = then

    def on_delivery(self, metadata: RecordMetadata | None, error: ClientError | None) -> None:
        if metadata is not None:
            self._span.set_attribute("messaging.destination.partition.id", str(metadata.partition))
            if metadata.offset >= 0:
                self._span.set_attribute("messaging.kafka.offset", metadata.offset)
        _end(self._span, error)
        if self._then is not None:
            self._then(metadata, error)


class TracingConsumer(Consumer):
    """A Consumer whose poll() has a span where it gives records, with links to the spans that sent them."""

    def __init__(self, *arguments: Any, tracer_provider: TracerProvider | None = None, **more: Any) -> None:
        """Takes what Consumer takes; tracer_provider: None for that of the process."""
        super().__init__(*arguments, **more)
        self._tracer = _tracer(tracer_provider)

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        """As Consumer.poll()."""
        records = super().poll(timeout_ms, max_records)
        if not records:
            return records
        topics = sorted({record.topic for record in records})
        attributes = _attributes("poll", "receive", ",".join(topics), self._config.get_text("client.id"))
        attributes["messaging.batch.message_count"] = len(records)
        group_id = self._config.get_optional("group.id")
        if group_id is not None:
            attributes["messaging.consumer.group.name"] = group_id
        links = [link for record in records[:LINKS_MAX] if (link := _link(record)) is not None]
        span = self._tracer.start_span(
            f"poll {topics[0]}" if len(topics) == 1 else "poll",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            links=links,
        )
        span.end()
        return records


@contextmanager
def process(record: ConsumerRecord, tracer_provider: TracerProvider | None = None) -> Iterator[Span]:
    """A span for the work on one record, within the trace of whoever sent it. An exception is noted and raised."""
    attributes = _attributes("process", "process", record.topic, None)
    attributes["messaging.destination.partition.id"] = str(record.partition)
    attributes["messaging.kafka.offset"] = int(record.offset)
    link = _link(record)
    with _tracer(tracer_provider).start_as_current_span(
        f"process {record.topic}",
        context=extract(record),
        kind=SpanKind.CONSUMER,
        attributes=attributes,
        links=[] if link is None else [link],
    ) as span:
        yield span


def extract(record: ConsumerRecord) -> Context:
    """The context that the headers of a record carry."""
    carrier = {name: value.decode("ascii", "replace") for name, value in record.headers if value is not None}
    return propagate.extract(carrier)


def _link(record: ConsumerRecord) -> Link | None:
    if not record.headers:
        return None
    context = get_current_span(extract(record)).get_span_context()
    return Link(context) if context.is_valid else None


def _tracer(provider: TracerProvider | None) -> Tracer:
    return trace.get_tracer("moldau.client", __version__, provider)


def _attributes(name: str, kind: str, topic: str, client_id: str | None) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "messaging.system": "kafka",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": topic,
    }
    if client_id is not None:
        attributes["messaging.client.id"] = client_id
    return attributes


def _end(span: Span, error: BaseException | None) -> None:
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(Status(StatusCode.ERROR, str(error)))
    span.end()
