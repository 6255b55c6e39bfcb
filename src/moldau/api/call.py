"""One request on its way: who asked, in which version, and how to answer."""

from __future__ import annotations

import logging

from moldau.node.context import ClientContext
from moldau.node.node import Node
from moldau.node.reply import Reply
from moldau.protocol.primitives import Message, Writer

log = logging.getLogger("moldau.api")


class Call:
    """Handed to a handler together with the decoded request."""

    def __init__(
        self,
        node: Node,
        context: ClientContext,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        flexible_response_header: bool,
        now_ms: int,
    ) -> None:
        self.node = node
        self.context = context
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.flexible_response_header = flexible_response_header
        self.now_ms = now_ms
        self.reply = Reply()
        self.frame: bytes | None = None
        """The request as it came, header included, where it may be passed on to the active controller."""

    def respond(self, response: Message) -> None:
        """Encodes the answer in the version of the request and completes the reply."""
        self.respond_in_version(response, self.version)

    def respond_in_version(self, response: Message, version: int) -> None:
        writer = Writer()
        writer.int32(0)
        writer.int32(self.correlation_id)
        if self.flexible_response_header:
            writer.uvarint(0)
        try:
            response.encode(writer, version)
        except Exception:
            # Often called in someone else's turn (a commit, an append), which must not fail because of this.
            log.exception("%s cannot be sent; closing the connection", type(response).__name__)
            self.close_connection()
            return
        writer.set_int32(0, writer.size - 4)
        self.reply.complete(writer.finish())

    def respond_as_received(self, answer: bytes) -> None:
        """Passes on an answer that another node encoded for the same request, header included."""
        self.reply.complete([len(answer).to_bytes(4, "big") + answer])

    def respond_nothing(self) -> None:
        """For requests that want no answer."""
        self.reply.complete(None)

    def close_connection(self) -> None:
        """Closes the connection after what was answered before."""
        self.reply.close_connection = True
        if not self.reply.done:
            self.reply.complete(None)
