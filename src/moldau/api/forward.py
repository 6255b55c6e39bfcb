"""Runs a verb on the active controller and answers when its records are committed."""

from __future__ import annotations

from collections.abc import Callable

from moldau.api.call import Call
from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message


def submit(call: Call, verb: Callable[[Controller], Result], on_error: Callable[[KafkaError], Message]) -> None:
    """`on_error` makes the answer when the controller could not run the verb at all."""

    def done(result: Message | KafkaError) -> None:
        if not call.reply.done:
            call.respond(on_error(result) if isinstance(result, KafkaError) else result)

    call.node.metadata.submit(verb, done, call.now_ms)
