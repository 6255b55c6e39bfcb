"""Tells a consumer group how far a query is (`commitGroup`), so that its lag shows in every tool for groups.

The checkpoint alone says where a query goes on; what is committed here is for people and alarms. So a commit that
fails is a warning, is not waited for long, and is made up for by the next one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from moldau.client import config as client_settings
from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.results import OffsetAndMetadata, TopicPartition
from moldau.spark.options import ReadOptions

logger = logging.getLogger("moldau.spark")

COMMIT_TIMEOUT_MS = 5_000
# After a failure the query is not held up again at once.
PAUSE_SECONDS = 30.0


class GroupProgress:
    """The group that one query tells its offsets."""

    def __init__(self, options: ReadOptions) -> None:
        self._group = options.commit_group
        self._config = {name: value for name, value in options.client_config.items() if name in client_settings.ADMIN}
        self._admin: Admin | None = None
        self._committed: dict[TopicPartition, int] = {}
        self._not_before = 0.0

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits what changed since the last time."""
        changed = {item: offset for item, offset in offsets.items() if self._committed.get(item) != offset}
        if not changed or time.monotonic() < self._not_before:
            return
        problem = self._try(changed)
        if problem is not None:
            self._not_before = time.monotonic() + PAUSE_SECONDS
            logger.warning(
                "Cannot commit offsets to group %s: %s The query continues, and they are committed later.",
                self._group,
                problem,
            )

    def _try(self, changed: Mapping[TopicPartition, int]) -> str | None:
        """Why it failed, or None."""
        try:
            if self._admin is None:
                self._admin = Admin(config=self._config)
            rows = {item: OffsetAndMetadata(offset) for item, offset in changed.items()}
            outcomes = self._admin.alter_consumer_group_offsets(self._group, rows, COMMIT_TIMEOUT_MS)
        except ClientError as error:
            return error.message
        failed: str | None = None
        for item, outcome in outcomes.items():
            if outcome.error is None:
                self._committed[item] = changed[item]
            else:
                failed = f"{item}: {outcome.error.message}"
        return failed
