"""How `kafka-consumer-groups` writes: errors, padding that counts as Java does, the names of states."""

from __future__ import annotations

STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")


def print_error(text: str) -> None:
    print(f"\nError: {text}")


def pad(text: str, width: int) -> str:
    """As Java pads: a character outside the first plane counts as two."""
    return text + " " * (width - width_of(text))


def width_of(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)
