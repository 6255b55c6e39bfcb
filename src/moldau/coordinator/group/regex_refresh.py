"""Finds out which topics the regular expressions of a group stand for, a bit at a time, and writes that down.

A member that comes with a new expression gets its response at once, without the topics. They are looked for in steps,
so that thousands of topics and a costly expression hold nobody up; what is found is written, and the group's epoch
rises. The same is done again when topics were created, and from time to time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moldau.coordinator.group.consumer_group import ConsumerGroup, ResolvedRegex
from moldau.coordinator.group.consumer_member import ConsumerMember
from moldau.coordinator.group.consumer_records import group_epoch_record, regex_record, regex_tombstone
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.group.topic_regex import TopicRegex
from moldau.coordinator.group.topic_regex_syntax import InvalidRegex
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError

NO_CHANGE: Final = 0
UPDATED: Final = 1
RESOLVED: Final = 2
"""What a heartbeat did to the member's expression: nothing; another one; another one whose topics are known."""

REFRESH_LEAST_MS: Final = 10_000
WORK_PER_STEP: Final = 20_000
STEP_PAUSE_MS: Final = 10
"""Nodes that are looked at in one turn, which takes milliseconds, and how long others have their turns then."""

WORK_MAX: Final = 100_000_000
"""Of one search. An expression with every node active for every character of every topic comes to an end."""

METADATA_REFRESH_MS: Final = 0x7FFFFFFF

logger = logging.getLogger("moldau.coordinator")

MetadataHash = Callable[[set[str]], int]
MaySee = Callable[[str], bool]
"""Whether the member whose heartbeat began a search may know that a topic exists."""


class RegexJob:
    """One search for one group: all its expressions over all topics that there were when it began."""

    def __init__(
        self, group_id: str, regexes: list[str], image: MetadataImage, wall_ms: int, may_see: MaySee | None = None
    ) -> None:
        self.group_id = group_id
        self._may_see = may_see
        self.version = image.offset
        self.started_ms = wall_ms
        self._topics = list(image.topics_by_name)
        self._pending = regexes
        self._position = 0
        self._is_inside = False
        self._current: TopicRegex | None = None
        self._found: set[str] = set()
        self.resolved: dict[str, ResolvedRegex] = {}

    def step(self) -> bool:
        """Goes on for a while; True when everything is found."""
        budget = WORK_PER_STEP
        while self._pending and budget > 0:
            regex = self._compile(self._pending[0])
            before = regex.work
            if self._search(regex, before + budget):
                self._finish_current()
            budget -= regex.work - before
        return not self._pending

    def _search(self, regex: TopicRegex, work_max: int) -> bool:
        """One expression over the topics that are left; True when it has seen them all."""
        while self._position < len(self._topics):
            name = self._topics[self._position]
            if not self._is_inside:
                regex.begin(name)
            found = regex.resume(work_max)
            self._is_inside = found is None
            if found is None:
                break
            if found:
                self._found.add(name)
            self._position += 1
            if regex.work > work_max:
                break
        if regex.work > WORK_MAX:
            logger.warning(
                "a subscribed topic regex of group %s is too expensive and matches no topics now", self.group_id
            )
            self._found.clear()
            return True
        return self._position == len(self._topics)

    def _compile(self, text: str) -> TopicRegex:
        if self._current is None:
            try:
                self._current = TopicRegex(text)
            except InvalidRegex:
                # Accepted by another release perhaps; here it stands for nothing.
                self._current = TopicRegex("[^\\x00-\\x7f]")
        return self._current

    def _finish_current(self) -> None:
        text = self._pending.pop(0)
        may_see = self._may_see
        found = self._found if may_see is None else {name for name in self._found if may_see(name)}
        self.resolved[text] = ResolvedRegex(frozenset(found), self.version, self.started_ms)
        self._current = None
        self._found = set()
        self._position = 0
        self._is_inside = False


class RegexRefresh:
    """The searches of one shard, at most one for each group."""

    def __init__(self, state: GroupShardState, metadata_hash: MetadataHash) -> None:
        self._state = state
        self._metadata_hash = metadata_hash
        self._jobs: dict[str, RegexJob] = {}
        self._new_topics_version = -1
        self.may_see: MaySee | None = None
        """Of the member whose heartbeat is being handled; None where everyone sees everything."""

    def on_new_topics(self, version: int) -> None:
        self._new_topics_version = version

    def stop_all(self) -> None:
        self._jobs.clear()

    # In a heartbeat

    def update(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        updated: ConsumerMember,
        records: list[StoredRecord],
        now_ms: int,
    ) -> int:
        """Takes over the member's expression, and begins a search if one is due; says what became of it."""
        old, new = member.subscribed_topic_regex, updated.subscribed_topic_regex
        status = NO_CHANGE
        is_new = False
        if old != new:
            status = UPDATED
            if old and group.regex_counts.get(old) == 1:
                records.append(regex_tombstone(group.group_id, old))
            if new and new not in group.regex_counts:
                check_regex(new)
                is_new = True
            elif not new or new in group.resolved_regexes:
                status = RESOLVED
        if is_new or group.regex_counts:
            self._maybe_begin(group, group.regexes_with(member, updated), is_new, now_ms)
        return status

    def _maybe_begin(self, group: ConsumerGroup, regexes: dict[str, int], is_new: bool, now_ms: int) -> None:
        group_id = group.group_id
        wall_ms = self._state.wall.at(now_ms)
        passed_ms = wall_ms - group.last_regex_refresh_ms
        # Less than nothing: the wall clock was set back.
        if not regexes or group_id in self._jobs or 0 <= passed_ms <= REFRESH_LEAST_MS:
            return
        is_due = (
            is_new
            or len(regexes) != len(group.resolved_regexes)
            or group.oldest_regex_version < self._new_topics_version
            or passed_ms < 0
            or passed_ms > self._state.settings.consumer.regex_refresh_ms
        )
        if is_due:
            self._jobs[group_id] = RegexJob(group_id, list(regexes), self._state.image, wall_ms, self.may_see)
            self._state.timers.schedule(_key(group_id), now_ms, self._step_of(group_id))

    # Afterwards

    def _step_of(self, group_id: str) -> Callable[[int], Outcome | None]:
        return lambda now_ms: self._step(group_id, now_ms)

    def _step(self, group_id: str, now_ms: int) -> Outcome | None:
        job = self._jobs.get(group_id)
        if job is None:
            return None
        if not job.step():
            self._state.timers.schedule(_key(group_id), now_ms + STEP_PAUSE_MS, self._step_of(group_id))
            return None
        del self._jobs[group_id]
        group = self._state.groups.get(group_id)
        return self._write(group, job, now_ms) if isinstance(group, ConsumerGroup) else None

    def _write(self, group: ConsumerGroup, job: RegexJob, now_ms: int) -> Outcome | None:
        records: list[StoredRecord] = []
        changed = False
        topics = set(group.name_counts)
        for regex, resolved in job.resolved.items():
            # Those that nobody uses any more have gone meanwhile.
            if regex in group.regex_counts:
                known = group.resolved_regexes.get(regex)
                if (frozenset() if known is None else known.topics) != resolved.topics:
                    changed = True
                topics |= resolved.topics
                records.append(
                    regex_record(group.group_id, regex, resolved.topics, resolved.version, resolved.timestamp_ms)
                )
        for regex, known in group.resolved_regexes.items():
            if regex not in job.resolved:
                topics |= known.topics
        metadata_hash = self._metadata_hash(topics)
        if changed or metadata_hash != group.metadata_hash:
            epoch = group.group_epoch + 1
            self._state.settings.counts.consumer_rebalances += 1
            records.append(group_epoch_record(group.group_id, epoch, metadata_hash))
            group.metadata_expires_ms = now_ms + METADATA_REFRESH_MS
            group.metadata_looked_at_epoch = epoch
        return Outcome(records) if records else None


def check_regex(text: str) -> None:
    """Raises what the member is told about an expression that is none."""
    try:
        TopicRegex(text)
    except InvalidRegex as error:
        raise KafkaError(
            errors.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{text}` is not a valid regular expression: {error}.",
        ) from error


def _key(group_id: str) -> str:
    return f"regex-{group_id}"
