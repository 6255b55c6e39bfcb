"""What the parts of a group machine are told: records to replay, and that the shard begins, ends or sees metadata."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from moldau.coordinator.outcome import Outcome
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupPart:
    """A part that has nothing to say to any of it; the real ones override what concerns them."""

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        """Applies one record of this part. `key` and `value` are whole, their type and version included."""

    def on_loaded(self, now_ms: int) -> Outcome | None:
        """Everything was replayed and the metadata is known: timers start."""
        return None

    def on_unloaded(self, now_ms: int) -> None:
        """Leadership is gone: everyone who waits here gets NOT_COORDINATOR."""

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> Outcome | None:
        """The cluster's metadata changed."""
        return None
