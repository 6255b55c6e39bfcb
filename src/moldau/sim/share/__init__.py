"""Share groups in a simulated cluster: members that fetch and acknowledge, and what the groups promised."""
