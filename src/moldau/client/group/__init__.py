"""A consumer's group: membership in both protocols, rebalances, commits, and the thread that heartbeats."""
