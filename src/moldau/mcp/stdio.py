"""Serves one agent over standard input and output, until it closes them."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from moldau.mcp.desk import Desk
from moldau.mcp.server import make_server
from moldau.mcp.settings import McpSettings


def run(settings: McpSettings) -> None:
    anyio.run(_serve, settings)


async def _serve(settings: McpSettings) -> None:
    server = make_server(Desk(settings))
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
