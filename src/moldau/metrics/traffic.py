"""Bytes and messages of connections: those of one connection, or of all that were closed."""

from __future__ import annotations


class Traffic:
    """In is what this node received, whoever opened the connection."""

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.requests = 0
        self.responses = 0

    def add(self, other: Traffic) -> None:
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.requests += other.requests
        self.responses += other.responses
