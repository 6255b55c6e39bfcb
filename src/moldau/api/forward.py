"""What only the active controller decides: run here when this node is it, else passed on in an Envelope (KIP-590).

The client's request travels as it came, and the controller's response goes back to the client as it is. Where no
controller is active the next one is asked, for as long as a client may wait. On the controller listener nothing is
passed on: a controller that is not active says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from moldau.api.authorize import check_cluster
from moldau.api.call import Call
from moldau.api.registry import FORWARDED, load_handler
from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.protocol import errors
from moldau.protocol.api_keys import BY_KEY, request_class, request_header_version, response_header_version
from moldau.protocol.api_table import ENVELOPE
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.envelope_request import EnvelopeRequest
from moldau.protocol.messages.envelope_response import EnvelopeResponse
from moldau.protocol.messages.headers import RequestHeader
from moldau.protocol.primitives import DecodeError, Message, Reader
from moldau.security.rights import CLUSTER_ACTION

log = logging.getLogger("moldau.api")

PATIENCE_MS: Final = 30_000
"""As long as clients wait for a response, unless they are told otherwise."""

NO_CHECK: Final = 0
"""The verb itself looks at the rights, one thing after the other."""

Verb = Callable[[Controller], Result]


def submit(call: Call, verb: Verb, on_error: Callable[[KafkaError], Message], operation: int = NO_CHECK) -> None:
    """Responds with what the controller decides. `on_error` makes the response when it could not decide at all, and
    when who asks may not do `operation` to the cluster: that is checked by the controller, not by the broker before
    it."""
    if operation != NO_CHECK and call.node.rights is not None:
        if call.context.is_controller_listener:
            try:
                check_cluster(call, operation)
            except KafkaError as error:
                call.respond(on_error(error))
                return
        else:
            verb = checked_verb(call, verb, operation)

    def done(response: Any) -> None:
        if call.reply.done:
            return
        if isinstance(response, EnvelopeResponse):
            from moldau.node.envelope import response_data

            response = response_data(response)
        if isinstance(response, KafkaError):
            note_failure(call, response)
            call.respond(on_error(response))
        elif isinstance(response, bytes):
            call.respond_as_received(response)
        else:
            note_throttle(call, response)
            call.respond(response)

    def envelope() -> EnvelopeRequest:
        from moldau.node.envelope import pack

        assert call.frame is not None, "only requests in registry.FORWARDED are passed on"
        return pack(call.context, call.frame)

    _run(call, verb, envelope, done)


def checked_verb(call: Call, verb: Verb, operation: int) -> Verb:
    """For a broker that is the active controller itself."""

    def decide(controller: Controller) -> Result:
        check_cluster(call, operation)
        return verb(controller)

    return decide


def submit_rest(call: Call, request: Message, verb: Verb, done: Callable[[Message | KafkaError], None]) -> None:
    """For a call that was answered in part here: `request` is the rest, `done` gets the controller's response to it."""

    def on_response(response: Any) -> None:
        if isinstance(response, EnvelopeResponse):
            from moldau.node.envelope import unpack_response

            response = unpack_response(response, call.api_key, call.version)
        if isinstance(response, KafkaError):
            note_failure(call, response)
        else:
            note_throttle(call, response)
        done(response)

    def envelope() -> EnvelopeRequest:
        from moldau.node.envelope import pack_request

        return pack_request(call.context, request, call.version, call.correlation_id, call.client_id)

    _run(call, verb, envelope, on_response)


def _run(call: Call, verb: Verb, envelope: Callable[[], EnvelopeRequest], done: Callable[[Any], None]) -> None:
    if call.context.is_controller_listener:
        call.node.metadata.submit(verb, lambda response, now_ms: done(response), call.now_ms)
        return
    call.node.forwarding.ask_until(
        call.now_ms + PATIENCE_MS, ENVELOPE, envelope, lambda response, now_ms: done(response), call.now_ms, verb
    )


def note_failure(call: Call, error: KafkaError) -> None:
    """A request from an envelope that found no active controller goes back to its broker, which asks the next one."""
    if error.code == errors.NOT_CONTROLLER and call.context.is_forwarded:
        call.context.reached_controller = False


def note_throttle(call: Call, response: Any) -> None:
    """The client waits for as long as the controller says, if this node has no reason to let it wait longer."""
    call.controller_throttle_ms = getattr(response, "throttle_time_ms", 0)


# The controller's side


def handle_envelope(call: Call, request: EnvelopeRequest) -> None:
    """Runs the request inside as if its client had asked here."""
    from moldau.node.envelope import unpack_context

    try:
        check_cluster(call, CLUSTER_ACTION)  # only a broker may say in whose name something is asked
        context = unpack_context(call.context.listener, request)
        context.unbilled_ns, call.context.unbilled_ns = call.context.unbilled_ns, 0
        header, message = unpack_request(request.request_data)
    except KafkaError as error:
        call.respond(EnvelopeResponse(error_code=error.code))
        return
    handle = load_handler(header.request_api_key, True)
    if handle is None:
        call.respond(EnvelopeResponse(error_code=errors.UNSUPPORTED_VERSION))
        return
    inner = Call(
        call.node,
        context,
        api_key=header.request_api_key,
        version=header.request_api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
        flexible_response_header=response_header_version(header.request_api_key, header.request_api_version) > 0,
        now_ms=call.now_ms,
    )

    def respond(reply: object) -> None:
        if call.reply.done:
            return
        parts = inner.reply.parts
        if not context.reached_controller:
            call.respond(EnvelopeResponse(error_code=errors.NOT_CONTROLLER))
        elif parts is None:
            call.respond(EnvelopeResponse(error_code=errors.UNKNOWN_SERVER_ERROR))
        else:
            call.respond(EnvelopeResponse(b"".join(part for part in parts if isinstance(part, bytes))[4:]))

    inner.reply.on_done = respond
    try:
        handle(inner, message)
    except Exception:
        log.exception("%s from %s failed in an envelope", BY_KEY[inner.api_key].name, context.peer)
        inner.close_connection()


def unpack_request(data: bytes) -> tuple[RequestHeader, Message]:
    """Header and request of a client, if it may be passed on at all."""
    try:
        reader = Reader(data)
        api_key, version = reader.int16(), reader.int16()
        api = BY_KEY.get(api_key)
        if api is None or api_key not in FORWARDED:
            raise KafkaError(errors.INVALID_REQUEST, f"API key {api_key} is not passed on in an envelope.")
        if not api.serves(version):
            raise KafkaError(errors.UNSUPPORTED_VERSION, f"{api.name} v{version} is not supported.")
        reader = Reader(data)
        header = RequestHeader.decode(reader, request_header_version(api_key, version))
        return header, request_class(api_key).decode(reader, version)
    except DecodeError as error:
        raise KafkaError(errors.INVALID_REQUEST, f"The request in the envelope cannot be read: {error}") from error
