"""Has share coordinators make and forget states in the name of groups, and tells the groups when that is done."""

from __future__ import annotations

from collections.abc import Callable

from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.share import ShareStateListener
from moldau.coordinator.group.share_member import TopicPartitions
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.node.share.state_messages import DELETE, INITIALIZE, SUMMARY
from moldau.node.share.states import ShareStates, StateQuestion
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import delete_share_group_state_request as delete_request
from moldau.protocol.messages import initialize_share_group_state_request as initialize_request
from moldau.protocol.messages import read_share_group_state_summary_request as summary_request
from moldau.protocol.primitives import Message

Place = tuple[bytes, int]
StateResults = dict[Place, Message | KafkaError]
Finish = Callable[[StateResults, int], None]
"""Called with what was said of each partition, and `now_ms`."""

RunVerb = Callable[[str, Callable[[GroupMachine], Outcome], Callable[[Message | KafkaError], None], int], None]


class StateGathering:
    """Questions about many share partitions; `finish` gets all the responses."""

    def __init__(self, count: int, finish: Finish) -> None:
        self._missing = count
        self._finish = finish
        self.results: StateResults = {}

    def slot(self, place: Place) -> Callable[[Message | KafkaError, int], None]:
        def done(result: Message | KafkaError, now_ms: int) -> None:
            self.results[place] = result
            self._missing -= 1
            if self._missing == 0:
                self._finish(self.results, now_ms)

        return done


class ShareGroupStates(ShareStateListener):
    """See the module. `run` runs a verb on the machine of a group."""

    def __init__(self, states: ShareStates, run: RunVerb) -> None:
        self._states = states
        self._run = run

    def _ask(self, kind: int, group_id: str, rows: dict[Place, Message], finish: Finish, now_ms: int) -> None:
        if not rows:
            finish({}, now_ms)
            return
        gathering = StateGathering(len(rows), finish)
        for place, row in rows.items():
            key: SharePartitionKey = (group_id, *place)
            self._states.ask(StateQuestion(kind, key, row, gathering.slot(place)), now_ms)

    # For groups

    def initialize(
        self, group_id: str, topics: TopicPartitions, offsets: dict[Place, int], state_epoch: int, now_ms: int
    ) -> None:
        self.initialize_at(group_id, topics, offsets, state_epoch, ignore, now_ms)

    def initialize_at(
        self,
        group_id: str,
        topics: TopicPartitions,
        offsets: dict[Place, int],
        state_epoch: int,
        finish: Finish,
        now_ms: int,
    ) -> None:
        """States that begin at these offsets; then the group knows which of its partitions have one."""
        rows: dict[Place, Message] = {
            place: initialize_request.PartitionData(place[1], state_epoch, offset) for place, offset in offsets.items()
        }

        def on_responses(results: StateResults, now_ms: int) -> None:
            done, failed = split(topics, results)

            def on_result(result: Message | KafkaError) -> None:
                if isinstance(result, KafkaError):
                    finish(dict.fromkeys(results, KafkaError(errors.COORDINATOR_NOT_AVAILABLE)), now_ms)

            def decide(machine: GroupMachine) -> Outcome:
                outcome = machine.share.on_initialized(group_id, done, failed)
                outcome.on_written = lambda error, at_ms: finish(results, at_ms) if error is None else None
                return outcome

            self._run(group_id, decide, on_result, now_ms)

        self._ask(INITIALIZE, group_id, rows, on_responses, now_ms)

    # For administrators

    def delete(self, group_id: str, topics: TopicPartitions, finish: Finish, now_ms: int) -> None:
        rows: dict[Place, Message] = {
            (topic_id, index): delete_request.PartitionData(index)
            for topic_id, (_, indexes) in topics.items()
            for index in indexes
        }
        self._ask(DELETE, group_id, rows, finish, now_ms)

    def summarize(self, group_id: str, places: list[Place], finish: Finish, now_ms: int) -> None:
        rows: dict[Place, Message] = {place: summary_request.PartitionData(place[1], -1) for place in places}
        self._ask(SUMMARY, group_id, rows, finish, now_ms)


def split(topics: TopicPartitions, results: StateResults) -> tuple[TopicPartitions, TopicPartitions]:
    """Those whose state is there, and those whose is not."""
    done: dict[bytes, tuple[str, frozenset[int]]] = {}
    failed: dict[bytes, tuple[str, frozenset[int]]] = {}
    for topic_id, (name, indexes) in topics.items():
        good = frozenset(i for i in indexes if not isinstance(results.get((topic_id, i)), KafkaError))
        if good:
            done[topic_id] = (name, good)
        if indexes - good:
            failed[topic_id] = (name, indexes - good)
    return done, failed


def ignore(results: StateResults, now_ms: int) -> None:
    """The heartbeat that began this was answered long ago."""
