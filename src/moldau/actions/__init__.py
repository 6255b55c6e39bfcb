"""What people and agents look at and change in a cluster, one function an action; console and `moldau mcp` share it.

Actions are asked with a `Call`, reach the cluster through the clients of a `Viewer`, and return rows that become
JSON. Nothing here knows whether a page or an agent asks. docs/console.md and docs/mcp.md show what becomes of it.
"""
