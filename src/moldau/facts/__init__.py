"""What people want to know about a cluster, asked through the client: command line, console and `moldau mcp` share it.

Nothing here prints, and nothing here knows who asks. docs/console.md and docs/cli.md show what becomes of it.
"""
