"""The event loop and the clocks of a node."""

from __future__ import annotations

from moldau.net.turns import Turns
from moldau.records.clocks import WallClock
from moldau.server.metrics.metric import COUNTER, GAUGE, Metric


def clock_metrics(wall: WallClock) -> list[Metric]:
    return [
        Metric(
            "moldau_clock_in_doubt",
            GAUGE,
            "1 while the system's clock disagrees with the monotonic clock: nothing is deleted for its age",
            int(not wall.may_delete_by_age),
        ),
        Metric(
            "moldau_clock_disagreements_total",
            COUNTER,
            "How often the system's clock began to disagree with the monotonic clock",
            wall.disagreements_total,
        ),
    ]


def turn_metrics(turns: Turns) -> list[Metric]:
    """A loop that is busy all the time, or held up by single turns, shows here before clients notice."""
    count = Metric("moldau_loop_long_turns_total", COUNTER, "Turns of the event loop longer than 50 ms")
    seconds = Metric("moldau_loop_long_turn_seconds_total", COUNTER, "Time that these took")
    waited = Metric(
        "moldau_loop_long_turn_waiting_seconds_total",
        COUNTER,
        "Time of theirs in which the thread was not on the CPU: it waited for a disk, a lock or the machine",
    )
    for (kind, what), long_turns in turns.long_turns.items():
        labels = (("kind", kind), ("what", what))
        count.values[labels] = long_turns.count
        seconds.values[labels] = round(long_turns.seconds, 6)
        waited.values[labels] = round(long_turns.waited_seconds, 6)
    return [
        Metric("moldau_loop_turns_total", COUNTER, "Turns of the event loop", turns.turns_total),
        Metric(
            "moldau_loop_busy_seconds_total", COUNTER, "Time in turns of the event loop", round(turns.busy_seconds, 6)
        ),
        Metric(
            "moldau_loop_longest_turn_seconds",
            GAUGE,
            "The longest turn since the start",
            round(turns.longest_seconds, 6),
        ),
        count,
        seconds,
        waited,
    ]
