"""What people look at and change in a cluster, one function an action, for the console and whoever else shows it.

Actions are asked with a `Call`, reach the cluster through the clients of a `Viewer`, and answer with rows that become
JSON. Nothing here knows whether a page asks. docs/console.md shows what becomes of it.
"""
