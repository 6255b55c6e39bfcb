"""What a replica must remember across a restart about elections: the file `quorum-state`.

Invariant: it is on disk before a vote is granted, before a candidate asks for votes and before a leader speaks.
Kafka keeps the same in QuorumStateData; data version 0 belongs to a static quorum, 1 to a dynamic one (KIP-853).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

from moldau.protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

NO_NODE: Final = -1


class ReplicaKey(NamedTuple):
    """A replica of the quorum: the node and the log directory, which tells a replaced disk from the old one."""

    id: int
    directory_id: bytes

    def is_same(self, other: ReplicaKey) -> bool:
        """A key without a directory (static quorum, or stored by one) is known by the node id alone."""
        return self.id == other.id and (
            ZERO_UUID in (self.directory_id, other.directory_id) or self.directory_id == other.directory_id
        )

    def __str__(self) -> str:
        return f"{self.id}" if self.directory_id == ZERO_UUID else f"{self.id}:{uuid_to_text(self.directory_id)}"


NO_REPLICA: Final = ReplicaKey(NO_NODE, ZERO_UUID)


@dataclass(frozen=True, slots=True)
class QuorumState:
    """Epoch, who leads it, and whom this replica gave its vote in it."""

    epoch: int
    leader_id: int = NO_NODE
    voted: ReplicaKey = NO_REPLICA

    def to_json(self, data_version: int, voter_ids: list[int]) -> bytes:
        if data_version == 0:
            fields: dict[str, object] = {
                "clusterId": "",
                "leaderId": self.leader_id,
                "leaderEpoch": self.epoch,
                "votedId": self.voted.id,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": voter_id} for voter_id in sorted(voter_ids)],
                "data_version": 0,
            }
        else:
            fields = {
                "leaderId": self.leader_id,
                "leaderEpoch": self.epoch,
                "votedId": self.voted.id,
                "votedDirectoryId": uuid_to_text(self.voted.directory_id),
                "data_version": 1,
            }
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def from_json(data: bytes) -> QuorumState:
        """Raises ValueError for anything that is not a quorum-state file."""
        fields = json.loads(data)
        if not isinstance(fields, dict) or fields.get("data_version") not in (0, 1):
            raise ValueError("quorum-state has no known data_version")
        directory = fields.get("votedDirectoryId")
        return QuorumState(
            int(fields["leaderEpoch"]),
            int(fields["leaderId"]),
            ReplicaKey(int(fields["votedId"]), uuid_from_text(directory) if directory else ZERO_UUID),
        )
