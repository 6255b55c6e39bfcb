"""`moldau mcp`: the console's actions as tools for agents, over the Model Context Protocol. docs/mcp.md

The protocol itself is the SDK's (`mcp` on PyPI, the extra `mcp`), which `server`, `stdio` and `http` alone import.
"""
