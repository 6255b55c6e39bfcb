"""How `kafka-reassign-partitions --generate` spreads the replicas of a topic over brokers.

This is Kafka's older rule, which the tools kept when the controller got a new one: the first replicas go round the
brokers, the others follow at a shift that grows with each round. With racks, brokers stand in an order that alternates
between racks, and a rack gets a second replica only when every rack has one.
"""

from __future__ import annotations


def spread_replicas(
    racks: dict[int, str | None], partitions: int, factor: int, start: int, shift: int
) -> list[list[int]]:
    """The replicas of each partition. racks: of each broker, None for all where racks do not count."""
    by_rack = any(rack is not None for rack in racks.values())
    brokers = alternate(racks) if by_rack else list(racks)
    rack_count = len(set(racks.values()))
    rows = []
    for number in range(partitions):
        if number > 0 and number % len(brokers) == 0:
            shift += 1
        first = (number + start) % len(brokers)
        if by_rack:
            rows.append(_one_by_rack(brokers, racks, factor, first, shift * rack_count))
        else:
            rows.append([brokers[first], *(brokers[_at(first, shift, j, len(brokers))] for j in range(factor - 1))])
    return rows


def _at(first: int, shift: int, index: int, count: int) -> int:
    return (first + 1 + (shift + index) % (count - 1)) % count


def _one_by_rack(brokers: list[int], racks: dict[int, str | None], factor: int, first: int, shift: int) -> list[int]:
    replicas = [brokers[first]]
    rack_count = len(set(racks.values()))
    index = 0
    while len(replicas) < factor:
        broker = brokers[_at(first, shift, index, len(brokers))]
        used = {racks[each] for each in replicas}
        if broker not in replicas and (racks[broker] not in used or len(used) == rack_count):
            replicas.append(broker)
        index += 1
    return replicas


def alternate(racks: dict[int, str | None]) -> list[int]:
    """The brokers, one of each rack in turn."""
    queues = {rack: [broker for broker in sorted(racks) if racks[broker] == rack] for rack in racks.values()}
    ordered = [queues[rack] for rack in sorted(queues, key=str)]
    found = []
    while any(ordered):
        found += [queue.pop(0) for queue in ordered if queue]
    return found
