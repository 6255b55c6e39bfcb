"""Decides where a stream starts, how far each micro-batch goes, and what its tasks read. Asks brokers; needs no Spark.

The offsets of the checkpoint are believed only as far as the topics are still the same: a topic that is gone, was
created again, or is not subscribed to any more is data loss, which fails the query or, with failOnDataLoss=false, is
told in the log. Partitions that appear while the query runs are read from their beginning.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from moldau.client.results import TopicPartition
from moldau.spark.group_progress import GroupProgress
from moldau.spark.lookup import DATA_LOSS_ADVICE, Found, Lookup, ReadError, recreated_sentence
from moldau.spark.offsets import Offsets, StreamOffsets
from moldau.spark.options import ReadOptions
from moldau.spark.planning import OffsetRange, count_offsets, limit_offsets, plan_ranges

logger = logging.getLogger("moldau.spark")


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class StreamPosition:
    """One stream on the driver."""

    def __init__(
        self,
        options: ReadOptions,
        lookup: Lookup | None = None,
        now_ms: Callable[[], int] = _now_ms,
        progress: GroupProgress | None = None,
    ) -> None:
        self._options = options
        self._lookup = lookup or Lookup(options, options.poll_timeout_ms)
        self._now_ms = now_ms
        self._progress = progress or (GroupProgress(options) if options.commit_group else None)
        # What Trigger.AvailableNow reads up to; None: whatever is there.
        self._frozen: StreamOffsets | None = None
        self._triggered_ms: int | None = None
        # Losses that were told: they are seen again at every trigger.
        self._logged_sentences: set[str] = set()
        # The ends of the partitions as of the last look, without the limits of a micro-batch.
        self.latest_seen: StreamOffsets | None = None

    def close(self) -> None:
        self._lookup.close()
        if self._progress is not None:
            self._progress.close()

    def initial(self) -> StreamOffsets:
        """Where a query without a checkpoint starts."""
        found = self._lookup.find_partitions()
        return StreamOffsets(self._lookup.starting_offsets(found.partitions), dict(found.topic_ids))

    def freeze_end(self) -> None:
        """From now on nothing is read that is not there yet (Trigger.AvailableNow)."""
        self._frozen = self._latest(self._lookup.find_partitions(allow_missing=True))

    def next_end(self, start: StreamOffsets, most: int | None = None, least: int | None = None) -> StreamOffsets:
        """How far the micro-batch that begins at start goes; start itself where there is nothing to read.

        most: not more offsets than that. least: wait for so many, but not longer than maxTriggerDelay.
        """
        # Spark asks for a micro-batch when the one before is done, so everything before start is.
        self.finished(start)
        target = self._frozen or self._latest(self._lookup.find_partitions(allow_missing=True))
        self.latest_seen = target
        kept = self._check_same(start, target)
        begin = self._beginnings(kept, target)
        ends = self._check_not_shrunk(begin, target.offsets)
        new = count_offsets(begin, ends)
        if least is not None and self._frozen is None and 0 < new < least and not self._waited_long():
            return start
        if most is not None:
            ends = limit_offsets(begin, ends, most)
        if new:
            self._triggered_ms = self._now_ms()
        ends = {**ends, **self._absent(start, target)}
        return StreamOffsets(ends, {**start.topic_ids, **target.topic_ids})

    def plan(self, start: StreamOffsets, end: StreamOffsets) -> list[OffsetRange]:
        """The ranges of the micro-batch; also of one that a restarted query runs again, with the same offsets."""
        begin = self._beginnings(_same_topics(start, end), end)
        return plan_ranges(
            begin,
            end.offsets,
            end.topic_ids,
            self._options.min_partitions,
            self._options.max_records_per_partition,
        )

    def finished(self, end: StreamOffsets) -> None:
        """Everything before end is processed for good."""
        if self._progress is not None:
            self._progress.commit(end.offsets)

    def _latest(self, found: Found) -> StreamOffsets:
        return StreamOffsets(self._lookup.latest(found.partitions), dict(found.topic_ids))

    def _waited_long(self) -> bool:
        """Before the first micro-batch nobody knows for how long the records have been waiting."""
        if self._triggered_ms is None:
            return True
        return self._now_ms() - self._triggered_ms >= self._options.max_trigger_delay_ms

    def _beginnings(self, start: StreamOffsets, end: StreamOffsets) -> Offsets:
        """Where each partition of end is read from: partitions that start does not have, from their first offset."""
        new = [item for item in end.offsets if item not in start.offsets]
        first = self._lookup.earliest(new)
        return {item: start.offsets.get(item, first.get(item, 0)) for item in end.offsets}

    def _check_same(self, start: StreamOffsets, target: StreamOffsets) -> StreamOffsets:
        """The start without what is not to be read any more; raises where that is data loss and not allowed."""
        if start.topics and not start.topics & target.topics:
            self._refuse_other_checkpoint(start)
        for topic in sorted(start.topics):
            old_id, new_id = start.topic_ids.get(topic, ""), target.topic_ids.get(topic, "")
            if topic not in target.topics:
                self._lose(self._gone_sentence(topic), "The other topics are read on.")
            elif old_id and new_id and old_id != new_id:
                sentence = recreated_sentence(topic, old_id, new_id)
                sentence = f"{sentence} The offsets of the checkpoint are those of the old one."
                self._lose(sentence, "It is read from its start.")
        kept = _same_topics(start, target)
        missing = [item for item in kept.offsets if item.topic in target.topics and item not in target.offsets]
        if missing:
            names = ", ".join(str(item) for item in sorted(missing))
            self._lose(f"The checkpoint has offsets of {names}, which is not read any more.", "The others are read on.")
        offsets = {item: offset for item, offset in kept.offsets.items() if item in target.offsets}
        return StreamOffsets(offsets, kept.topic_ids)

    def _absent(self, start: StreamOffsets, target: StreamOffsets) -> Offsets:
        """Offsets of topics that are subscribed to and not there now.

        They are kept: should the same topic be seen again it is read on, and not once more from its beginning.
        """
        gone = {topic for topic in start.topics - target.topics if self._is_subscribed(topic)}
        return {item: offset for item, offset in start.offsets.items() if item.topic in gone}

    def _refuse_other_checkpoint(self, start: StreamOffsets) -> None:
        gone = [topic for topic in sorted(start.topics) if self._is_subscribed(topic)]
        if gone:
            return  # deleted, not another subscription: told by topic
        names = ", ".join(sorted(start.topics))
        raise ReadError(
            f"The checkpoint is that of a query on {names}, and this one reads {self._options.subscription}: give it a"
            " checkpointLocation of its own, or put the old subscription back."
        )

    def _is_subscribed(self, topic: str) -> bool:
        import re

        wanted = self._options.subscription
        if wanted.pattern:
            return re.fullmatch(wanted.pattern, topic) is not None
        return topic in wanted.topics or any(item.topic == topic for item in wanted.partitions)

    def _gone_sentence(self, topic: str) -> str:
        if self._is_subscribed(topic):
            return f"Topic {topic} was deleted under the query."
        return f"The checkpoint has offsets of topic {topic}, which the query does not read any more."

    def _check_not_shrunk(self, begin: Offsets, ends: Offsets) -> Offsets:
        for item, end in sorted(ends.items()):
            if end < begin[item]:
                sentence = f"{item} ends at offset {end}, before {begin[item]} where the query stands."
                self._lose(f"{sentence} Its log was cut, or the topic was created again.", f"Reading goes on at {end}.")
        return ends

    def _lose(self, sentence: str, what_now: str) -> None:
        if self._options.fail_on_data_loss:
            raise ReadError(f"{sentence} {DATA_LOSS_ADVICE}")
        if sentence not in self._logged_sentences:
            self._logged_sentences.add(sentence)
            logger.warning("%s %s (failOnDataLoss is false)", sentence, what_now)


def _same_topics(start: StreamOffsets, end: StreamOffsets) -> StreamOffsets:
    """The part of start whose topics are, as far as their ids tell, still those of end."""
    changed = {topic for topic, topic_id in start.topic_ids.items() if end.topic_ids.get(topic, topic_id) != topic_id}
    offsets: dict[TopicPartition, int] = {i: offset for i, offset in start.offsets.items() if i.topic not in changed}
    return StreamOffsets(offsets, {t: topic_id for t, topic_id in start.topic_ids.items() if t not in changed})
