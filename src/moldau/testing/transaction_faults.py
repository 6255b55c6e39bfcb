"""What clients are told when the log of transactions cannot be written."""

from __future__ import annotations

from moldau.protocol import api_table as apis
from moldau.protocol import errors
from moldau.protocol.primitives import Message
from moldau.testing.faults import FAIL, Fault


def full_transaction_log() -> list[Fault]:
    """What befalls the requests that would write to the log of transactions."""
    what = "the transaction log is full"
    told = frozenset([apis.INIT_PRODUCER_ID, apis.ADD_PARTITIONS_TO_TXN, apis.ADD_OFFSETS_TO_TXN, apis.END_TXN])
    return [
        Fault(FAIL, what, apis=told, error=errors.NOT_COORDINATOR, only=_is_transactional),
        # From these versions on the broker itself adds what they write to the transaction (KIP-890).
        Fault(FAIL, what, apis=frozenset([apis.PRODUCE]), error=errors.NOT_ENOUGH_REPLICAS, only=_adds_partitions),
        Fault(
            FAIL,
            what,
            apis=frozenset([apis.TXN_OFFSET_COMMIT]),
            error=errors.COORDINATOR_NOT_AVAILABLE,
            only=_adds_offsets,
        ),
    ]


def _is_transactional(request: Message, version: int) -> bool:
    """A producer that is only idempotent asks for its id too."""
    return request.API_KEY != apis.INIT_PRODUCER_ID or getattr(request, "transactional_id", None) is not None


def _adds_partitions(request: Message, version: int) -> bool:
    return version >= 12 and getattr(request, "transactional_id", None) is not None


def _adds_offsets(request: Message, version: int) -> bool:
    return version >= 5
