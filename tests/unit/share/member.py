"""A member of a share group that sends its requests one by one, to whatever answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.protocol.messages import share_acknowledge_request, share_fetch_request
from moldau.protocol.messages.share_acknowledge_request import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from moldau.protocol.messages.share_fetch_request import (
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.primitives import Message

Ask = Callable[[Message, int], Any]
Said = list[tuple[int, int, list[int]]]
"""First offset, last offset, types."""
Place = tuple[bytes, int]

FETCH_VERSION = 2
ACKNOWLEDGE_VERSION = 2
NEXT = -2
"""The epoch that is expected next."""


class Member:
    """Counts the epochs of its membership and of its session, as long as nobody tells it others."""

    def __init__(self, ask: Ask, group: str | None, member_id: str | None = "m1") -> None:
        self.ask = ask
        self.group = group
        self.member_id = member_id
        self.epoch = 0
        self.session = 0
        self.wait_ms = 500
        """How long a fetch waits if nothing else is said."""

    # The group

    def heartbeat_request(self, epoch: int, topics: list[str] | None, **fields: Any) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(self.group or "", self.member_id or "", epoch, None, topics, **fields)

    def beat(self, *topics: str, epoch: int = NEXT) -> Any:
        """Tells topics only if there are some."""
        used = self.epoch if epoch == NEXT else epoch
        answer = self.ask(self.heartbeat_request(used, list(topics) or None), 1)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
        return answer

    def leave(self) -> Any:
        answer = self.ask(self.heartbeat_request(-1, None), 1)
        self.epoch = 0
        return answer

    # The session

    def fetch_request(
        self,
        places: list[Place],
        said: Mapping[Place, Said] | None = None,
        forget: list[Place] | None = None,
        epoch: int = NEXT,
        **fields: Any,
    ) -> ShareFetchRequest:
        rows: dict[bytes, dict[int, FetchPartition]] = {}
        for topic_id, index in [*places, *(said or {})]:
            rows.setdefault(topic_id, {}).setdefault(index, FetchPartition(index))
        for (topic_id, index), batches in (said or {}).items():
            rows[topic_id][index].acknowledgement_batches = [
                share_fetch_request.AcknowledgementBatch(*batch) for batch in batches
            ]
        gone: dict[bytes, list[int]] = {}
        for topic_id, index in forget or []:
            gone.setdefault(topic_id, []).append(index)
        values: dict[str, Any] = {"max_wait_ms": self.wait_ms, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500}
        values |= {"batch_size": 500, **fields}
        return ShareFetchRequest(
            self.group,
            self.member_id,
            self.session if epoch == NEXT else epoch,
            topics=[FetchTopic(topic_id, list(found.values())) for topic_id, found in rows.items()],
            forgotten_topics_data=[ForgottenTopic(topic_id, indexes) for topic_id, indexes in gone.items()],
            **values,
        )

    def fetch(
        self,
        *places: Place,
        said: Mapping[Place, Said] | None = None,
        forget: list[Place] | None = None,
        epoch: int = NEXT,
        version: int = FETCH_VERSION,
        **fields: Any,
    ) -> Any:
        request = self.fetch_request(list(places), said, forget, epoch, **fields)
        return self._counted(self.ask(request, version), request.share_session_epoch)

    def acknowledge(
        self,
        said: Mapping[Place, Said],
        epoch: int = NEXT,
        version: int = ACKNOWLEDGE_VERSION,
        is_renew_ack: bool = False,
    ) -> Any:
        request = self.acknowledge_request(said, epoch, is_renew_ack)
        return self._counted(self.ask(request, version), request.share_session_epoch)

    def acknowledge_request(
        self, said: Mapping[Place, Said], epoch: int = NEXT, is_renew_ack: bool = False
    ) -> ShareAcknowledgeRequest:
        rows: dict[bytes, list[AcknowledgePartition]] = {}
        for (topic_id, index), batches in said.items():
            found = [share_acknowledge_request.AcknowledgementBatch(*batch) for batch in batches]
            rows.setdefault(topic_id, []).append(AcknowledgePartition(index, found))
        used = self.session if epoch == NEXT else epoch
        topics = [AcknowledgeTopic(topic_id, found) for topic_id, found in rows.items()]
        return ShareAcknowledgeRequest(self.group, self.member_id, used, is_renew_ack, topics)

    def _counted(self, answer: Any, epoch: int) -> Any:
        if answer.error_code == 0:
            self.session = 0 if epoch == -1 else epoch + 1
        return answer


def acquired(answer: Any) -> list[tuple[int, int, int, int]]:
    """Partition, first offset, last offset, delivery count."""
    assert answer.error_code == 0, answer
    return [
        (row.partition_index, found.first_offset, found.last_offset, found.delivery_count)
        for topic in answer.responses
        for row in topic.partitions
        for found in row.acquired_records
    ]


def codes(answer: Any) -> list[tuple[int, ...]]:
    """Partition and error code; of a ShareFetch also the code of the acknowledgements."""
    assert answer.error_code == 0, answer
    found: list[tuple[int, ...]] = []
    for topic in answer.responses:
        for row in topic.partitions:
            more = (row.acknowledge_error_code,) if hasattr(row, "acknowledge_error_code") else ()
            found.append((row.partition_index, row.error_code, *more))
    return found
