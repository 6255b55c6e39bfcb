"""Who votes: voter sets, and which set was in force at which offset of the log (KIP-853).

A voter set that is in the log counts from the moment it is appended, committed or not; a truncation takes it back.
A static quorum (kraft.version 0) has one set, from the configuration, and no directory ids.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.protocol.uuids import ZERO_UUID
from moldau.raft.state import ReplicaKey

Endpoint = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Voter:
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    """Listener name, host, port."""
    min_kraft_version: int = 0
    max_kraft_version: int = 1

    def supports(self, kraft_version: int) -> bool:
        return self.min_kraft_version <= kraft_version <= self.max_kraft_version


class VoterSet:
    """An immutable set of voters by node id."""

    def __init__(self, voters: list[Voter]) -> None:
        self._voters = {voter.key.id: voter for voter in voters}

    def ids(self) -> list[int]:
        return sorted(self._voters)

    def voters(self) -> list[Voter]:
        return [self._voters[voter_id] for voter_id in self.ids()]

    def key(self, voter_id: int) -> ReplicaKey:
        return self._voters[voter_id].key

    def get(self, voter_id: int) -> Voter | None:
        return self._voters.get(voter_id)

    def is_voter(self, replica: ReplicaKey) -> bool:
        """A voter without a directory id (static quorum) is known by its node id alone."""
        voter = self._voters.get(replica.id)
        return voter is not None and voter.key.directory_id in (ZERO_UUID, replica.directory_id)

    def is_only_voter(self, replica: ReplicaKey) -> bool:
        return len(self._voters) == 1 and self.is_voter(replica)

    def with_voter(self, voter: Voter) -> VoterSet:
        """The set with this voter added, or in the place of the one with its id."""
        return VoterSet([known for known in self.voters() if known.key.id != voter.key.id] + [voter])

    def without(self, voter_id: int) -> VoterSet:
        return VoterSet([known for known in self.voters() if known.key.id != voter_id])

    def majority(self) -> int:
        return len(self._voters) // 2 + 1

    def __len__(self) -> int:
        return len(self._voters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._voters == other._voters

    def __repr__(self) -> str:
        return "VoterSet(" + ", ".join(str(voter.key) for voter in self.voters()) + ")"


class VoterHistory:
    """The voter sets of the log by the offset of their record; offset -1 is the configuration or the first snapshot."""

    def __init__(self, initial: VoterSet, kraft_version: int) -> None:
        self._sets: list[tuple[int, VoterSet]] = [(-1, initial)]
        self._versions: list[tuple[int, int]] = [(-1, kraft_version)]

    def latest(self) -> VoterSet:
        return self._sets[-1][1]

    def latest_offset(self) -> int:
        return self._sets[-1][0]

    def kraft_version(self) -> int:
        return self._versions[-1][1]

    def add_voters(self, offset: int, voters: VoterSet) -> None:
        self._sets.append((offset, voters))

    def add_version(self, offset: int, version: int) -> None:
        self._versions.append((offset, version))

    def voters_before(self, offset: int) -> tuple[int, VoterSet]:
        """The kraft version and the voters as of the records before `offset`: what a snapshot that ends there says."""
        version = [entry[1] for entry in self._versions if entry[0] < offset][-1]
        return version, [entry[1] for entry in self._sets if entry[0] < offset][-1]

    def reset(self) -> None:
        """Forgets what came from the log and from snapshots."""
        del self._sets[1:]
        del self._versions[1:]

    def truncate_to(self, offset: int) -> None:
        self._sets = [entry for entry in self._sets if entry[0] < offset] or self._sets[:1]
        self._versions = [entry for entry in self._versions if entry[0] < offset] or self._versions[:1]
