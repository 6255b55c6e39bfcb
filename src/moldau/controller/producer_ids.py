"""Producer ids, handed to brokers in blocks of a thousand."""

from __future__ import annotations

from moldau.controller.brokers import Brokers
from moldau.controller.result import Result
from moldau.controller.state import ControllerState
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from moldau.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from moldau.protocol.stored.metadata_records import ProducerIdsRecord

BLOCK_SIZE = 1000
PRODUCER_ID_MAX = (1 << 63) - 1


class ProducerIds:
    def __init__(self, state: ControllerState, brokers: Brokers) -> None:
        self.state = state
        self.brokers = brokers

    def allocate(self, request: AllocateProducerIdsRequest) -> Result:
        self.brokers.check_epoch(request.broker_id, request.broker_epoch)
        first = self.state.image.next_producer_id
        if first > PRODUCER_ID_MAX - BLOCK_SIZE:
            message = "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit"
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR, message)
        record = ProducerIdsRecord(request.broker_id, request.broker_epoch, first + BLOCK_SIZE)
        return Result([(record, 0)], AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE))
