"""Streams groups (KIP-1071): topologies, tasks, and the members that share them."""
