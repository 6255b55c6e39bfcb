"""Which topics and groups are there for a viewer: patterns that allow some, and everything else looks unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TypeVar

from moldau.actions.refusals import Refused
from moldau.client.errors import ClientError, error_for
from moldau.client.results import TopicPartition
from moldau.protocol.errors import GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION

T = TypeVar("T")

INTERNAL = "__"


class Scope:
    """Patterns with *, ? and [abc]; None: no limit.

    Where there are patterns for topics, the cluster's own ones (`__consumer_offsets`) are there only for a pattern that
    begins as they do.
    """

    def __init__(self, topics: Iterable[str] | None = None, groups: Iterable[str] | None = None) -> None:
        self._topics = None if topics is None else tuple(topics)
        self._groups = None if groups is None else tuple(groups)

    @property
    def has_all_topics(self) -> bool:
        return self._topics is None

    @property
    def has_all_named_topics(self) -> bool:
        """Whether no pattern leaves out a topic that is not the cluster's own."""
        return self._topics is None or "*" in self._topics

    def has_topic(self, name: str) -> bool:
        if self._topics is None:
            return True
        fitting = [each for each in self._topics if not name.startswith(INTERNAL) or each.startswith(INTERNAL)]
        return any(fnmatchcase(name, each) for each in fitting)

    def has_group(self, group_id: str) -> bool:
        return self._groups is None or any(fnmatchcase(group_id, each) for each in self._groups)

    def topics_among(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self.has_topic(name)]

    def places_among(
        self, groups: Mapping[str, dict[TopicPartition, T] | ClientError]
    ) -> dict[str, dict[TopicPartition, T] | ClientError]:
        """What groups have of each partition, of the topics that are there."""
        found: dict[str, dict[TopicPartition, T] | ClientError] = {}
        for group_id, places in groups.items():
            if isinstance(places, ClientError):
                found[group_id] = places
            else:
                found[group_id] = {each: place for each, place in places.items() if self.has_topic(each.topic)}
        return found

    def check_topic(self, name: str) -> None:
        """Raises what one hears of a topic that does not exist."""
        if not self.has_topic(name):
            raise unknown_topic(name)

    def check_group(self, group_id: str) -> None:
        if not self.has_group(group_id):
            raise unknown_group(group_id)

    def check_new_topic(self, name: str) -> None:
        """For a topic that is to be: it would be created, and not be there."""
        if not self.has_topic(name):
            allowed = ", ".join(self._topics or ())
            raise Refused(f"Topics may be created here whose names match {allowed}; {name} does not.")


EVERYTHING = Scope()


def unknown_topic(name: str) -> ClientError:
    return error_for(UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}, or you may not see it.")


def unknown_group(group_id: str) -> ClientError:
    return error_for(GROUP_ID_NOT_FOUND, f"There is no group {group_id}, or you may not see it.")
