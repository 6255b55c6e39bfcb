"""Logs alone on a simulated disk, without a node around them; compaction too."""
