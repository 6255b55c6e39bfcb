"""A whole cluster in a simulated world: its network, clients, faults and checks."""
