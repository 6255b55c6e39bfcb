"""What a consumer subscribed to: topics by name, or a pattern and the topics that it matches as far as known."""

from __future__ import annotations

import re
from collections.abc import Iterable

from moldau.client.group.topics import GroupTopics


class Subscription:
    """The current subscription; there is none while active is False."""

    def __init__(self) -> None:
        self.active = False
        # None: the broker matches a pattern, or a pattern was not matched here yet.
        self.names: set[str] | None = None
        self.pattern: re.Pattern[str] | None = None

    def set(self, names: Iterable[str] | None, pattern: re.Pattern[str] | None) -> None:
        """pattern: one that is to be matched here."""
        self.active = True
        self.names = None if names is None else set(names)
        self.pattern = pattern

    def clear(self) -> None:
        self.active = False
        self.names = None
        self.pattern = None

    @property
    def is_known(self) -> bool:
        """False until a pattern was matched for the first time: no group is joined before."""
        return self.pattern is None or self.names is not None

    def includes(self, topic: str) -> bool:
        if self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        return self.names is not None and topic in self.names

    def match(self, topics: GroupTopics) -> bool:
        """Topics come and go under a pattern; True if there are others now."""
        if self.pattern is None or not topics.all_known():
            return False
        matched = topics.matching(self.pattern)
        if matched == self.names:
            return False
        self.names = matched
        return True
