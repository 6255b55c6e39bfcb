"""The client's side of a share session: a number per request to one node, and the partitions that node knows of.

The first request of a session has epoch 0 and cannot acknowledge anything; the requests behind it count up, whether
they fetch or acknowledge; -1 ends the session, and the broker releases whatever is still locked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from moldau.client.share.acknowledgements import Range, SharePartition
from moldau.protocol.errors import (
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
)
from moldau.protocol.messages import share_acknowledge_request as acknowledging
from moldau.protocol.messages import share_fetch_request as fetching

FIRST_EPOCH = 0
LAST_EPOCH = -1
EPOCH_MAX = 0x7FFFFFFF

# After these the broker has no session with us, or another one than we think.
SESSION_ERRORS = (SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED)

Ranges = Mapping[SharePartition, list[Range]]


class ShareSession:
    """The session with one node."""

    def __init__(self) -> None:
        self.epoch = FIRST_EPOCH
        self.held: set[SharePartition] = set()

    @property
    def is_new(self) -> bool:
        return self.epoch == FIRST_EPOCH

    def reset(self) -> None:
        """The next request starts another session."""
        self.epoch = FIRST_EPOCH
        self.held = set()

    def on_response(self, error_code: int) -> None:
        if error_code in SESSION_ERRORS:
            self.reset()
        else:
            self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def fill_fetch(
        self, request: fetching.ShareFetchRequest, wanted: Collection[SharePartition], ranges: Ranges
    ) -> None:
        """Names what the node does not know yet, what is acknowledged, and what is not wanted any more."""
        assert not (self.is_new and ranges), "the first request of a session cannot acknowledge"
        request.share_session_epoch = self.epoch
        named = [item for item in wanted if item not in self.held or item in ranges]
        # A partition that is named only to be acknowledged is forgotten by the same request.
        named += [item for item in ranges if item not in wanted]
        topics: dict[bytes, fetching.FetchTopic] = {}
        for item in named:
            topic = topics.get(item.topic_id)
            if topic is None:
                topic = topics[item.topic_id] = fetching.FetchTopic(topic_id=item.topic_id, partitions=[])
            rows = [
                fetching.AcknowledgementBatch(first_offset=row[0], last_offset=row[1], acknowledge_types=row[2])
                for row in ranges.get(item, ())
            ]
            topic.partitions.append(
                fetching.FetchPartition(partition_index=item.partition, acknowledgement_batches=rows)
            )
        request.topics = list(topics.values())
        forgotten: dict[bytes, fetching.ForgottenTopic] = {}
        for item in (self.held | set(named)).difference(wanted):
            entry = forgotten.get(item.topic_id)
            if entry is None:
                entry = forgotten[item.topic_id] = fetching.ForgottenTopic(topic_id=item.topic_id, partitions=[])
            entry.partitions.append(item.partition)
        request.forgotten_topics_data = list(forgotten.values())
        self.held = set(wanted)

    def fill_acknowledge(
        self, request: acknowledging.ShareAcknowledgeRequest, ranges: Ranges, last: bool = False
    ) -> None:
        request.share_session_epoch = LAST_EPOCH if last else self.epoch
        topics: dict[bytes, acknowledging.AcknowledgeTopic] = {}
        for item, rows in ranges.items():
            topic = topics.get(item.topic_id)
            if topic is None:
                topic = topics[item.topic_id] = acknowledging.AcknowledgeTopic(topic_id=item.topic_id, partitions=[])
            batches = [
                acknowledging.AcknowledgementBatch(first_offset=row[0], last_offset=row[1], acknowledge_types=row[2])
                for row in rows
            ]
            topic.partitions.append(
                acknowledging.AcknowledgePartition(partition_index=item.partition, acknowledgement_batches=batches)
            )
        request.topics = list(topics.values())
