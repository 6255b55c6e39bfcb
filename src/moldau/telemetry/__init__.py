"""Client telemetry (KIP-714) on a broker: who is subscribed to what, what clients push, and what of it is kept."""
