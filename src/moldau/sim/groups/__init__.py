"""Groups on one simulated node: clients that commit, members of the classic protocol and of KIP-848."""
