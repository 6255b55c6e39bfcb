"""What an assignor is given and what it returns; the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Target = dict[bytes, frozenset[int]]
"""The partitions one member shall have, by topic id; topics without partitions are left out."""

Targets = dict[str, Target]
"""By member id; everybody who was in the spec is in the result."""


class MemberSpec(NamedTuple):
    """One member: its instance id if it is a static one, the topics it wants, and what it was to have before."""

    instance_id: str | None
    topics: frozenset[bytes]
    target: Mapping[bytes, frozenset[int]]


class GroupSpec:
    """All members in a fixed order, and how many partitions each topic has that anybody wants.

    Assignors give every partition of those topics to exactly one member that wants its topic. The result depends on
    nothing but the spec.
    """

    def __init__(self, members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int], homogeneous: bool):
        self.members = members
        self.partition_counts = partition_counts
        self.homogeneous = homogeneous
