"""The user's side of a rebalance: a listener that is told which partitions come and go."""

from __future__ import annotations

from moldau.client.results import TopicPartition


class RebalanceListener:
    """Subclass it and hand it to subscribe(); it is called within poll(), unsubscribe() and close().

    What it raises is raised by the call it was called from, once the rebalance went on.
    """

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """These are given up now; their offsets can still be committed here."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """These are read from now on, in addition to those that stayed; seek() works here."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Others may read these already, so nothing can be committed for them."""
        self.on_partitions_revoked(partitions)
