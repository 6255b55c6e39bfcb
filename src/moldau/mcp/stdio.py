"""Serves one agent over standard input and output, until it closes them."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from moldau.mcp.server import make_server
from moldau.mcp.settings import McpSettings
from moldau.mcp.tool_runner import ToolRunner


def run(settings: McpSettings) -> None:
    anyio.run(_serve, settings)


async def _serve(settings: McpSettings) -> None:
    server = make_server(ToolRunner(settings))
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
