"""Asks the active controller, whichever node that is: the verb itself when it is this one, a request to it otherwise.

A request that waits for a controller that does not lead any more fails at once. Whoever asks with `ask_until` is asked
again for as long as nobody could respond: after a pause that grows, and at once when there is a new leader.
Kafka: NodeToControllerChannelManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from moldau.metrics.recent_values import RecentValues
from moldau.node.active_controller import Verb
from moldau.node.controller_verbs import VERBS
from moldau.node.metadata_node import MetadataNode
from moldau.node.outbox import FAILURES, TIMED_OUT, Channel, NoResponse, Outbox
from moldau.protocol import errors
from moldau.protocol.api_keys import BY_KEY
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message
from moldau.records.clocks import NEVER_MS

log = logging.getLogger("moldau.node")

Done = Callable[[Any, int], None]
"""Called with the response or a KafkaError, and `now_ms`; sometimes inside the call that asks."""

RETRY_MIN_MS: Final = 20
RETRY_MAX_MS: Final = 500
NOT_REACHED: Final = frozenset({errors.NOT_CONTROLLER, errors.NETWORK_EXCEPTION, errors.REQUEST_TIMED_OUT})
"""Nobody responded as the active controller. Whether the request was carried out is not known."""


def has_no_response(response: Any) -> bool:
    return isinstance(response, KafkaError) and response.code in NOT_REACHED


class Question:
    """A request that was sent and has no response yet."""

    __slots__ = ("asked_ms", "done", "is_checked")

    def __init__(self, done: Done, is_checked: bool, asked_ms: int) -> None:
        self.done: Done | None = done
        self.asked_ms = asked_ms
        self.is_checked = is_checked


class Persistent:
    """A question that is asked until somebody responds to it."""

    def __init__(
        self,
        api_key: int,
        request: Message | Callable[[], Message],
        verb: Verb | None,
        done: Done,
        deadline_ms: int,
    ) -> None:
        self.api_key = api_key
        self.request = request
        self.verb = verb
        self.done = done
        self.deadline_ms = deadline_ms
        self.backoff_ms = RETRY_MIN_MS
        self.next_ms = NEVER_MS


class ControllerChannel:
    """One way to the active controller; what must not wait for others gets a channel of its own."""

    def __init__(self, metadata: MetadataNode, outbox: Outbox, purpose: str = "controller") -> None:
        self._metadata = metadata
        self._outbox = outbox
        self._purpose = purpose
        self._timeout_ms = metadata.config.get_int("controller.socket.timeout.ms")
        self._channel: Channel | None = None
        self._destination: tuple[int, str, int] | None = None
        # A controller that was elected again may have lost what the one before it was asked, with its power.
        self._epoch = -1
        self._questions: list[Question] = []
        self.remote_ms = RecentValues()
        """Times from a request to its response, of those that were sent to another node."""
        self._waiting: list[Persistent] = []
        self.on_deadline: Callable[[int], None] | None = None
        metadata.on_leader_changed.append(self._on_leader_changed)

    # Asking

    def ask(
        self,
        api_key: int,
        request: Message | Callable[[], Message],
        done: Done,
        now_ms: int,
        timeout_ms: int | None = None,
        verb: Verb | None = None,
    ) -> None:
        """Asks once. `done` gets a KafkaError when the request failed as a whole, or when nobody responded to it
        (`has_no_response`). `request` may be a function that makes it, for when it is sent. `verb` is what it means
        here, where `VERBS` does not know; its response is passed on whatever is in it."""
        metadata = self._metadata
        if metadata.is_active_controller:
            if verb is None:
                own = VERBS[api_key]
                metadata.submit(
                    lambda controller: own(controller, request, now_ms),
                    lambda response, done_ms: done(checked(response), done_ms),
                    now_ms,
                )
            else:
                metadata.submit(verb, done, now_ms)
            return
        channel = self._connect(now_ms)
        if channel is None:
            done(KafkaError(errors.NOT_CONTROLLER, "No active controller is known."), now_ms)
            return
        question = Question(done, verb is None, now_ms)
        self._questions.append(question)
        version = BY_KEY[api_key].highest_stable_version
        timeout_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        message = request() if callable(request) else request
        channel.send(
            api_key, version, message, timeout_ms, lambda response, at_ms: self._take(question, response, at_ms)
        )

    @property
    def open_requests(self) -> int:
        """How many are on their way, or wait to be sent again."""
        return len(self._questions) + len(self._waiting)

    def ask_until(
        self,
        deadline_ms: int,
        api_key: int,
        request: Message | Callable[[], Message],
        done: Done,
        now_ms: int,
        verb: Verb | None = None,
    ) -> None:
        """Asks until somebody responds, REQUEST_TIMED_OUT after `deadline_ms`. A controller that died in between may
        have carried the request out already, as with Kafka's own retries."""
        self._ask_again(Persistent(api_key, request, verb, done, deadline_ms), now_ms)

    def _ask_again(self, question: Persistent, now_ms: int) -> None:
        question.next_ms = NEVER_MS

        def done(response: Any, at_ms: int) -> None:
            if not has_no_response(response):
                question.done(response, at_ms)
            else:
                self._wait(question, at_ms)

        timeout_ms = max(1, min(self._timeout_ms, question.deadline_ms - now_ms))
        self.ask(question.api_key, question.request, done, now_ms, timeout_ms, question.verb)

    def _wait(self, question: Persistent, now_ms: int) -> None:
        if now_ms >= question.deadline_ms:
            text = "The active controller did not respond in time."
            question.done(KafkaError(errors.REQUEST_TIMED_OUT, text), now_ms)
            return
        question.next_ms = min(now_ms + question.backoff_ms, question.deadline_ms)
        question.backoff_ms = min(2 * question.backoff_ms, RETRY_MAX_MS)
        self._waiting.append(question)
        if self.on_deadline is not None:
            self.on_deadline(question.next_ms)

    def poll(self, now_ms: int) -> int:
        """Asks again what is due; returns when the next one is."""
        if not self._waiting:
            return NEVER_MS
        self._ask_waiting(now_ms, now_ms)
        return min((question.next_ms for question in self._waiting), default=NEVER_MS)

    def _ask_waiting(self, due_ms: int, now_ms: int) -> None:
        due = [question for question in self._waiting if question.next_ms <= due_ms]
        if due:
            self._waiting = [question for question in self._waiting if question.next_ms > due_ms]
            for question in due:
                self._ask_again(question, now_ms)

    # The connection

    def _connect(self, now_ms: int) -> Channel | None:
        """To the leader of the quorum as this node knows it; None while it knows none."""
        destination = self._metadata.leader_destination()
        if destination is None:
            return None
        if destination != self._destination or self._metadata.leader_epoch != self._epoch:
            self._abandon(now_ms)
        if self._channel is None:
            self._destination = destination
            self._epoch = self._metadata.leader_epoch
            self._channel = self._outbox.open(self._purpose, destination[1], destination[2])
        return self._channel

    def _take(self, question: Question, response: Message | NoResponse, now_ms: int) -> None:
        done = question.done
        if done is None:
            return
        question.done = None
        self._questions.remove(question)
        self.remote_ms.record(max(0, now_ms - question.asked_ms), now_ms / 1000)
        if isinstance(response, NoResponse):
            code = errors.REQUEST_TIMED_OUT if response.reason == TIMED_OUT else errors.NETWORK_EXCEPTION
            done(KafkaError(code, f"The active controller did not respond: {FAILURES[response.reason]}."), now_ms)
        elif question.is_checked or getattr(response, "error_code", errors.NONE) == errors.NOT_CONTROLLER:
            done(checked(response), now_ms)
        else:
            done(response, now_ms)

    def _on_leader_changed(self, now_ms: int) -> None:
        """What waits for another controller than the one that leads now will not get a response that counts."""
        leader = (self._metadata.leader_id, self._metadata.leader_epoch)
        if self._destination is not None and leader[0] >= 0 and leader != (self._destination[0], self._epoch):
            self._abandon(now_ms)
        if self._metadata.is_active_controller or self._metadata.leader_destination() is not None:
            for waiting in self._waiting:
                waiting.backoff_ms = RETRY_MIN_MS
            self._ask_waiting(NEVER_MS, now_ms)

    def _abandon(self, now_ms: int) -> None:
        self._close()
        questions, self._questions = self._questions, []
        for question in questions:
            done, question.done = question.done, None
            if done is not None:
                done(KafkaError(errors.NOT_CONTROLLER, "Another controller is active now."), now_ms)

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
        self._channel = self._destination = None

    def close(self) -> None:
        """The node ends: nobody gets a response any more."""
        self._close()
        self._questions.clear()
        self._waiting.clear()


def checked(response: Any) -> Any:
    """A response that is an error as a whole becomes that error."""
    code = getattr(response, "error_code", errors.NONE)
    if isinstance(response, KafkaError) or code == errors.NONE:
        return response
    return KafkaError(code, getattr(response, "error_message", None) or errors.default_text(code))
