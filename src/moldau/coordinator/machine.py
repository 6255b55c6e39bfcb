"""What the runtime needs to know about a state machine: how to replay, and what to do when things begin and end."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from moldau.coordinator.outcome import Outcome
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage


@mypyc_attr(allow_interpreted_subclasses=True)
class CoordinatorMachine:
    """The state of one shard. Verbs read it and return outcomes; `replay` is what changes it."""

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int, producer_epoch: int) -> None:
        """Applies one record; `producer_id` is -1 outside of transactions. Records of unknown types are left alone."""
        raise NotImplementedError

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Applies a marker: what this producer has pending counts now, or never will."""
        raise NotImplementedError

    def on_loaded(self, image: MetadataImage, now_ms: int) -> list[Outcome]:
        """Everything was replayed: timers start. What must be written because time has passed is returned."""
        raise NotImplementedError

    def on_unloaded(self, now_ms: int) -> None:
        """Leadership is gone: everyone who waits gets NOT_COORDINATOR."""
        raise NotImplementedError

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> list[Outcome]:
        """The cluster's metadata changed; returns what is to be written because of that."""
        raise NotImplementedError
