"""How often the target of a group is computed: members that come one after the other are assigned together."""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.state import GroupShardState

COMPUTED_SPARE: Final = 100
"""Times of so many groups that are gone may be remembered."""


class AssignmentPace:
    """When the targets of groups were computed here last, by the steady clock, and for which epoch: it counts once the
    group has that epoch, for the write may fail."""

    def __init__(self, state: GroupShardState) -> None:
        self._state = state
        self._computed: dict[str, tuple[int, int]] = {}

    def note(self, group_id: str, epoch: int, now_ms: int) -> None:
        groups = self._state.groups
        if len(self._computed) > 2 * len(groups) + COMPUTED_SPARE:
            self._computed = {name: computed for name, computed in self._computed.items() if name in groups}
        self._computed[group_id] = (epoch, now_ms)

    def may_assign(self, group_id: str, assigned_epoch: int, assigned_ms: int, interval_ms: int, now_ms: int) -> bool:
        """`assigned_epoch` and `assigned_ms` are what the log says of the last target; 0 ms if there was none."""
        if assigned_ms == 0:
            return True
        epoch, computed_ms = self._computed.get(group_id, (-1, 0))
        if epoch == assigned_epoch:
            return now_ms - computed_ms >= interval_ms
        # Another coordinator did it, and only the wall clock says when; it may have been set, or stand still.
        waited_ms = self._state.wall.at(now_ms) - assigned_ms
        if waited_ms < 0:
            waited_ms = interval_ms
        self.note(group_id, assigned_epoch, now_ms - waited_ms)
        return waited_ms >= interval_ms
