"""What both protocols of group membership have in common: requests out, responses in, duties of the user's thread.

A membership knows no socket, clock or thread. Whoever drives it asks next_request() for what is to be sent to the
coordinator, hands back what came of it, and calls tick() when next_deadline_ms() has come; that may be any thread.
What concerns the user, such as giving up partitions, is a duty: it waits until the user calls poll().
"""

from __future__ import annotations

import os
from enum import Enum

from moldau.client.errors import ClientError
from moldau.client.metrics.membership import GroupMeter
from moldau.client.results import ConsumerGroupMetadata
from moldau.protocol.primitives import Message
from moldau.protocol.uuids import uuid_to_text

FOREVER_MS = 1 << 60


class Duty(Enum):
    """What a membership waits for the user's thread to do."""

    # Classic: commit, give up partitions as the rebalance protocol says, then prepared().
    PREPARE = "prepare"
    # Classic: take the assignment over, then completed().
    COMPLETE = "complete"
    # KIP-848: go over to the target as far as possible, then reconciled().
    RECONCILE = "reconcile"
    # All partitions are somebody else's already: tell the user, then lost().
    LOST = "lost"


class Membership:
    """One member's place in its group."""

    # What the user has to be told by the next poll().
    problem: ClientError | None = None
    # Set once nothing can be done any more; every poll() says so.
    fatal: ClientError | None = None
    # Where rebalances are counted.
    meter: GroupMeter | None = None

    def on_poll(self, now_ms: int) -> bool:
        """The user called poll(): it is alive, and a group may be joined; True if there is something to send now."""
        raise NotImplementedError

    def duty(self) -> Duty | None:
        raise NotImplementedError

    def tick(self, now_ms: int) -> None:
        """Does what is due by time alone."""
        raise NotImplementedError

    def next_request(self, now_ms: int) -> Message | None:
        """What is to be sent now, if anything; to be called again until there is nothing."""
        raise NotImplementedError

    def timeout_ms(self, request: Message, request_timeout_ms: int) -> int:
        """How long to wait for the response to a request."""
        raise NotImplementedError

    def on_response(self, request: Message, response: Message, now_ms: int) -> bool:
        """Takes a response over; False if the coordinator is another one or not ready to respond."""
        raise NotImplementedError

    def on_failure(self, request: Message, error: ClientError, now_ms: int) -> None:
        """There is no response, and what became of the request is not known."""
        raise NotImplementedError

    def next_deadline_ms(self) -> int:
        """When tick() or next_request() will have something to do."""
        raise NotImplementedError

    def leave(self, now_ms: int, reason: str, remain: bool | None = None) -> None:
        """Leaves the group, after the user gave up all partitions.

        remain: whether to stay a member as far as the coordinator knows, None for the protocol's own rule: static
        members stay, so that they find their partitions again when they come back.
        """
        raise NotImplementedError

    def is_urgent(self, request: Message) -> bool:
        """Whether a request must not wait behind those that were sent before and have no response yet."""
        return False

    @property
    def leaving(self) -> bool:
        """A request to leave is still to be sent or answered."""
        raise NotImplementedError

    def metadata(self) -> ConsumerGroupMetadata:
        raise NotImplementedError

    def check_commit(self, last: bool = False) -> None:
        """Raises where offsets cannot be committed now: not a member, or in the middle of a rebalance.

        last: before the member leaves. Then it may commit in a rebalance too, as long as its generation lasts.
        """
        raise NotImplementedError

    def on_commit_refused(self, code: int, generation_id: int) -> ClientError:
        """The coordinator refused a commit because of the membership it was made with; what the user is told."""
        raise NotImplementedError


def new_member_id() -> str:
    """The id of a member that makes its own, which it keeps for as long as it lives."""
    while True:
        made = uuid_to_text(os.urandom(16))
        # Kafka keeps ids that begin with a dash from being made: they look like options on a command line.
        if not made.startswith("-"):
            return made
