"""What a controller counts since its node started; it outlives the single times in which the node is the active one."""

from __future__ import annotations

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.model import NO_LEADER


class ControllerCounts:
    """Of one node."""

    def __init__(self) -> None:
        self.unclean_elections = 0
        self.elections_from_elr = 0
        self.timed_out_sessions = 0
        self.operations = 0
        """Requests and duties that the active controller has begun with."""
        self.new_controllers = 0
        """How often this node has heard of a new active controller."""

    def count_elections(self, delta: MetadataDelta) -> None:
        """A leader from outside the ISR is one of the eligible replicas (KIP-966), or an unclean one."""
        for topic in delta.changed_topics.values():
            if topic.before is None:
                continue
            known = topic.before.partitions
            for index, partition in topic.changed_partitions.items():
                before = known.get(index)
                if before is None or partition.leader in (NO_LEADER, before.leader) or partition.leader in before.isr:
                    continue
                if partition.leader in before.elr:
                    self.elections_from_elr += 1
                elif partition.leader in before.replicas:
                    self.unclean_elections += 1
