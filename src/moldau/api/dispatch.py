"""From a frame to its handler: header, version check, decoding, and what happens when a handler fails.

A malformed frame raises DecodeError: the connection closes, nothing else is touched. As in Kafka, an unknown API key, a
version that is not offered and a key of the other listener close the connection too; only ApiVersions responds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moldau.api.call import Call
from moldau.api.registry import FORWARDED, highest_version, load_handler
from moldau.metrics.request_stats import FETCH_CONSUMER, FETCH_FOLLOWER, RequestStats, RequestTimes
from moldau.node.context import ClientContext
from moldau.node.node import Node
from moldau.node.reply import Reply
from moldau.protocol.api_keys import BY_KEY, request_class
from moldau.protocol.api_table import API_VERSIONS, FETCH
from moldau.protocol.primitives import DecodeError, Message, Reader

log = logging.getLogger("moldau.api")

UNSUPPORTED_VERSION_FALLBACK: Final = 0


class Handler:
    """An API ready to be called: its versions, how to decode the request, the function that handles it."""

    def __init__(
        self,
        key: int,
        name: str,
        *,
        lowest: int,
        highest: int,
        first_flexible: int,
        decode: Callable[[Reader, int], Message],
        handle: Callable[[Call, Message], None],
        keeps_frame: bool,
        stats: RequestStats,
    ) -> None:
        self.key = key
        self.name = name
        self.lowest = lowest
        self.highest = highest
        self.first_flexible = first_flexible
        self.decode = decode
        self.handle = handle
        self.keeps_frame = keeps_frame
        self.stats = stats


class Dispatcher:
    """Hands the frames of all connections of a node to the handlers. `time_request` begins to time one of an API and a
    size; without it none is timed."""

    def __init__(self, node: Node, time_request: Callable[[RequestStats, int], RequestTimes] | None = None) -> None:
        self.node = node
        self._time_request = time_request
        self._broker_handlers: dict[int, Handler] = {}
        self._controller_handlers: dict[int, Handler] = {}

    def handle(self, context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
        """Runs one request. The reply may be complete already, or be completed later."""
        reader = Reader(data, start, end)
        api_key: int = reader.int16()
        version: int = reader.int16()
        correlation_id: int = reader.int32()
        handlers = self._controller_handlers if context.is_controller_listener else self._broker_handlers
        handler = handlers.get(api_key)
        if handler is None:
            handler = self._load(api_key, context, handlers)
        if version < handler.lowest or version > handler.highest:
            return self._refuse_version(context, handler, version, correlation_id, now_ms)
        flexible = version >= handler.first_flexible
        client_id = reader.nullable_string()
        context.client_id = client_id
        if flexible:
            reader.unknown_tags()
        call = Call(
            self.node,
            context,
            api_key=api_key,
            version=version,
            correlation_id=correlation_id,
            client_id=client_id,
            flexible_response_header=flexible and api_key != API_VERSIONS,
            now_ms=now_ms,
        )
        call.size = end - start
        call.stats = stats = handler.stats
        stats.by_version[version] += 1
        if stats.skip > 0:
            stats.skip -= 1
        else:
            time_request = self._time_request
            if time_request is not None:
                call.reply.times = time_request(stats, call.size)
        if call.quotas.is_on:
            call.quotas.begin_turn(now_ms)
        if handler.keeps_frame:
            call.frame = data[start:end]
        try:
            handler.handle(call, handler.decode(reader, version))
        except DecodeError:
            raise
        except Exception:
            log.exception("%s v%d from %s failed; closing the connection", handler.name, version, context.peer)
            call.close_connection()
        return call.reply

    def stats(self) -> list[RequestStats]:
        """Of all APIs that were asked for, those of brokers and of controllers apart."""
        found: list[RequestStats] = []
        for handlers in (self._broker_handlers, self._controller_handlers):
            for handler in handlers.values():
                found.append(handler.stats)
                found.extend(handler.stats.parts.values())
        return found

    def _load(self, api_key: int, context: ClientContext, handlers: dict[int, Handler]) -> Handler:
        api = BY_KEY.get(api_key)
        if api is None:
            raise DecodeError(f"API key {api_key} does not exist")
        function = load_handler(api_key, context.is_controller_listener)
        if function is None:
            raise DecodeError(f"{api.name} is not served on listener {context.listener}")
        message = request_class(api_key)
        handler = Handler(
            api_key,
            api.name,
            lowest=api.lowest_version,
            highest=highest_version(api_key, self.node.config),
            first_flexible=api.first_flexible_version,
            decode=message.decode,
            handle=function,
            keeps_frame=api_key in FORWARDED and not context.is_controller_listener,
            stats=new_stats(api_key, api.name, api.highest_version, context.is_controller_listener),
        )
        handlers[api_key] = handler
        return handler

    def _refuse_version(
        self, context: ClientContext, handler: Handler, version: int, correlation_id: int, now_ms: int
    ) -> Reply:
        if handler.key != API_VERSIONS:
            raise DecodeError(f"{handler.name} v{version} is not supported")
        # The client may speak any version above ours: the response is of version 0, which every client reads (KIP-511).
        from moldau.api.api_versions import unsupported_version_response

        call = Call(
            self.node,
            context,
            api_key=API_VERSIONS,
            version=version,
            correlation_id=correlation_id,
            client_id=None,
            flexible_response_header=False,
            now_ms=now_ms,
        )
        call.respond_in_version(unsupported_version_response(), UNSUPPORTED_VERSION_FALLBACK)
        return call.reply


def new_stats(api_key: int, name: str, highest_version: int, of_controller: bool) -> RequestStats:
    """Fetches of consumers and of followers are counted apart as well, as in Kafka."""
    stats = RequestStats(name, highest_version, of_controller)
    if api_key == FETCH:
        stats.parts = {part: RequestStats(part, highest_version) for part in (FETCH_CONSUMER, FETCH_FOLLOWER)}
    return stats
