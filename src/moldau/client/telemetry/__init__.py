"""What a client pushes about itself (KIP-714), where brokers offer to take it."""
