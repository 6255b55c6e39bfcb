"""Listens to a producer's responses: what follows an acknowledged batch is never told to be out of order.

A client that reads such a response has to believe that acknowledged records are gone. Requests that were sent before
the response to their predecessor came may be refused like this, but only together with it.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.client.connection.wire import Call
from moldau.protocol import errors
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.messages.produce_response import ProduceResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import FileRecords
from moldau.records.batch import read_header
from moldau.sim.kernel.world import Violation

Place = tuple[str, int, int, int]
"""Topic, partition, producer id and epoch: what a sequence counts for."""
Batches = dict[tuple[str | bytes, int], tuple[Place, int, int]]
"""By topic and partition as a response names them: the place of a batch, its first and its last sequence."""


class SequenceCheck:
    def __init__(self, name: str) -> None:
        self._name = name
        self._acknowledged: dict[Place, int] = {}

    def watch(self, call: Call[Message]) -> None:
        """Looks at the response when it comes, before the client does."""
        request = call.request
        if isinstance(request, ProduceRequest) and call.when_done is not None:
            call.when_done = self._looking(request, call.when_done)

    def _looking(
        self, request: ProduceRequest, when_done: Callable[[Call[Message]], None]
    ) -> Callable[[Call[Message]], None]:
        batches = batches_of(request)

        def look(call: Call[Message]) -> None:
            if call.error is None:
                response = call.response()
                assert isinstance(response, ProduceResponse)
                self._take(batches, response)
            when_done(call)

        return look

    def _take(self, batches: Batches, response: ProduceResponse) -> None:
        for topic in response.responses:
            for row in topic.partition_responses:
                place, first, last = batches[topic.name or topic.topic_id, row.index]
                before = self._acknowledged.get(place, -1)
                if row.error_code == errors.NONE:
                    self._acknowledged[place] = max(before, last)
                elif row.error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER and first == before + 1:
                    raise Violation(
                        f"what follows an acknowledged batch is not out of order: {self._name}, {place}, "
                        f"sequence {first} after {before}"
                    )


def batches_of(request: ProduceRequest) -> Batches:
    found: Batches = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            assert isinstance(records, FileRecords) and isinstance(records.file, list)
            encoded = b"".join(records.file)
            header = read_header(encoded, 0, len(encoded))
            place = (topic.name, data.index, int(header.producer_id), int(header.producer_epoch))
            batch = (place, int(header.base_sequence), int(header.last_sequence))
            found[topic.name, data.index] = found[topic.topic_id, data.index] = batch
    return found
