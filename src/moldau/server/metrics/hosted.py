"""The partitions that a broker hosts, with the labels of their rows, in blocks that a turn of the loop has time for."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.node.replicas import Replicas
from moldau.replication.partition import Partition

BLOCK_SIZE = 500
"""After so many of anything others may have their turn."""


class Block:
    """`labels` has the text for each partition; it is empty where there are more partitions than rows may be."""

    def __init__(self, partitions: list[Partition], labels: list[str]) -> None:
        self.partitions = partitions
        self.labels = labels


class Hosted:
    """All partitions of one scrape. `left_out` are those that have no rows of their own."""

    def __init__(self, rows_max: int) -> None:
        self.blocks: list[Block] = []
        self.left_out = 0
        self._rows_max = rows_max

    def gather(self, replicas: Replicas) -> Iterator[None]:
        partitions = replicas.all()
        self.left_out = max(0, len(partitions) - self._rows_max)
        for start in range(0, len(partitions), BLOCK_SIZE):
            block = partitions[start : start + BLOCK_SIZE]
            shown = block[: max(0, self._rows_max - start)]
            self.blocks.append(Block(block, [f'topic="{one.topic}",partition="{one.index}"' for one in shown]))
            yield
