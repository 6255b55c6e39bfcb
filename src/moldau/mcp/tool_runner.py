"""Runs tools: which there are, who may use them, and how a result or an error looks.

Nothing here knows the protocol: a name and arguments go in, an object comes out.
"""

from __future__ import annotations

import asyncio
import logging
from difflib import get_close_matches
from typing import Any

from moldau.actions.audit import Audit
from moldau.actions.refusals import Refused, sentence
from moldau.actions.viewer import Viewer
from moldau.client.errors import ClientError, ConfigError
from moldau.mcp import change_tools, cluster_tools, message_tools, topic_tools
from moldau.mcp.arguments import checked
from moldau.mcp.bounds import json_size, tidy
from moldau.mcp.settings import McpSettings
from moldau.mcp.tool import Asked, Tool

log = logging.getLogger("moldau.mcp")

AUDIT_LOGGER = "moldau.mcp.audit"
TOOLS = (*cluster_tools.TOOLS, *topic_tools.TOOLS, *message_tools.TOOLS, *change_tools.TOOLS)
ERROR_CHARS_MAX = 2_000
# More wait for threads and clients, of which there are few, until their time is up.
CALLS_MAX = 32


class ToolFailed(Exception):
    """A call that came to nothing; the text is what the agent is told."""


class ToolRunner:
    """All tools, and what carries them out."""

    def __init__(self, settings: McpSettings) -> None:
        self.settings = settings
        self.tools = {tool.name: tool for tool in TOOLS if settings.allow_writes or not tool.writes}
        self._viewer = Viewer(settings.clients, scope=settings.scope, client_id="moldau-mcp", looks_again=False)
        self._audit = Audit(settings.audit_file, AUDIT_LOGGER)
        self._under_way = 0

    async def close(self) -> None:
        await self._viewer.close()
        self._audit.close()

    async def call(self, name: str, given: dict[str, Any], user: str = "", address: str = "") -> dict[str, Any]:
        """The result of a tool; raises ToolFailed."""
        try:
            result = await self._run(name, given, user, address)
        except Exception as error:
            raise ToolFailed(tidy(self._explained(name, error), ERROR_CHARS_MAX)) from error
        self._check_size(result)
        return result

    async def _run(self, name: str, given: dict[str, Any], user: str, address: str) -> dict[str, Any]:
        tool = self._tool(name)
        arguments = checked(tool.arguments, given)
        if self._under_way >= CALLS_MAX:
            raise Refused(f"{CALLS_MAX} calls are under way already: wait for one of them to end.", 503, "BUSY")
        self._viewer.look()
        self._under_way += 1
        try:
            async with asyncio.timeout(self.settings.call_s):
                return await tool.handler(
                    Asked(self._viewer, self._audit, self.settings.limits, arguments, user, address)
                )
        finally:
            self._under_way -= 1

    def _tool(self, name: str) -> Tool:
        found = self.tools.get(name)
        if found is not None:
            return found
        if any(tool.name == name for tool in TOOLS):
            raise Refused("This server is read-only: it was started without --allow-writes.", 403, "READ_ONLY")
        nearest = get_close_matches(name, self.tools, 1)
        hint = f" Did you mean {nearest[0]}?" if nearest else ""
        raise Refused(f"There is no tool {name!r}.{hint}", 404, "NOT_FOUND")

    def _explained(self, name: str, error: Exception) -> str:
        """A sentence for the agent. What might hold a secret, or is a bug, stays in the log."""
        if isinstance(error, ConfigError):
            log.error("invalid settings of the Kafka client: %s", error.message)
            return "The settings of the server's Kafka client are invalid; its log says which."
        if isinstance(error, Refused | ClientError):
            return f"{error.name}: {sentence(error.message)}"
        if isinstance(error, TimeoutError):
            return (
                f"TIMEOUT: there was no result within {self.settings.call_s:g} seconds. Ask for less at once, or again"
                " later."
            )
        if isinstance(error, ValueError | TypeError):
            # The client refuses what makes no sense before it sends anything.
            return f"INVALID_REQUEST: {sentence(str(error))}"
        log.error("%s failed", name, exc_info=error)
        return "UNEXPECTED: the server failed; its log says why."

    def _check_size(self, result: dict[str, Any]) -> None:
        size, limit = json_size(result), self.settings.limits.bytes
        if size > limit:
            raise ToolFailed(
                f"TOO_LARGE: the result has {size:,} bytes, and {limit:,} is the most this server sends. Ask for less:"
                " fewer partitions, a search, or a smaller limit."
            )
