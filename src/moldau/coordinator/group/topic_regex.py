"""Decides which topic names a regular expression matches, in time linear in the name whatever the expression is.

The expression becomes a nondeterministic automaton of bounded size. While names are read, sets of its nodes become the
states of a deterministic one, made when they are first needed and forgotten when there are too many: the way of RE2. A
character costs one lookup once its state is known, and never more than one visit of every node.
"""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.topic_regex_syntax import (
    BEGIN_TEXT,
    END_TEXT,
    WORD,
    WORD_BOUNDARY,
    Assertion,
    Characters,
    Choice,
    InvalidRegex,
    Node,
    Repeat,
    Sequence,
    parse,
)

NODES_MAX: Final = 20_000
COMPILE_STEPS_MAX: Final = 100_000
"""Nodes are not all that costs time: nothing at all can be repeated a thousand times a thousand times, too."""
STATE_NODES_MAX: Final = 200_000
"""Of all states that are kept together: a state of a large automaton may have as many nodes as that has."""

UNBOUNDED: Final = 1 << 62

_CHARACTERS: Final = 0
_SPLIT: Final = 1
_ASSERTION: Final = 2
_MATCH: Final = 3

# What came before a position.
_NOTHING: Final = 0
_WORD_CHARACTER: Final = 1
_OTHER_CHARACTER: Final = 2


class _State:
    """A set of nodes, what was read last, and where each character leads; None where it leads nowhere."""

    def __init__(self, nodes: tuple[int, ...], before: int) -> None:
        self.nodes = nodes
        self.before = before
        self.next: dict[str, _State | None] = {}
        self.accepts: bool | None = None


class TopicRegex:
    """One expression. Raises InvalidRegex if it is none, or too large."""

    def __init__(self, text: str) -> None:
        self._kinds: list[int] = []
        # For characters the set and the next node; for splits both ways; for assertions their kind and the next node.
        self._first: list[int] = []
        self._second: list[int] = []
        self._steps = 0
        end = self._add(_MATCH, 0, 0)
        self._start = (self._compile(parse(text), end),)
        self._has_words = any(
            kind == _ASSERTION and what >= WORD_BOUNDARY for kind, what in zip(self._kinds, self._first, strict=True)
        )
        self._states: dict[tuple[tuple[int, ...], int], _State] = {}
        self._state_nodes = 0
        # Nodes looked at so far.
        self.work = 0
        self._name = ""
        self._position = 0
        self._current: _State | None = None

    def matches(self, name: str) -> bool:
        """Does the expression match the whole name?"""
        self.begin(name)
        found = self.resume(UNBOUNDED)
        assert found is not None
        return found

    def begin(self, name: str) -> None:
        """For whoever must not take long: the response comes from `resume`."""
        self._name = name
        self._position = 0
        self._current = self._state(self._start, _NOTHING)

    def resume(self, work_max: int) -> bool | None:
        """Goes on reading; None if `work` has passed `work_max` before the end of the name."""
        name, size = self._name, len(self._name)
        state = self._current
        position = start = self._position
        while position < size and state is not None:
            known = state.next
            character = name[position]
            position += 1
            if character in known:
                state = known[character]
            else:
                state = self._step(state, character)
                if self.work > work_max:
                    break
        self.work += position - start
        if state is not None and position < size:
            self._current, self._position = state, position
            return None
        return state is not None and self._accepts(state)

    # The deterministic automaton

    def _state(self, nodes: tuple[int, ...], before: int) -> _State:
        key = (nodes, before)
        state = self._states.get(key)
        if state is None:
            self._state_nodes += len(nodes)
            if self._state_nodes > STATE_NODES_MAX:
                self._states.clear()
                self._state_nodes = len(nodes)
            state = self._states[key] = _State(nodes, before)
        return state

    def _step(self, state: _State, character: str) -> _State | None:
        code = ord(character)
        found: _State | None = None
        if code < 128:
            is_word = WORD >> code & 1 == 1
            first, second = self._first, self._second
            reached: dict[int, None] = {}
            for node in self._closure(state, is_word, False):
                if self._kinds[node] == _CHARACTERS and first[node] >> code & 1:
                    reached[second[node]] = None
            if reached:
                before = _OTHER_CHARACTER
                if self._has_words and is_word:
                    before = _WORD_CHARACTER
                found = self._state(tuple(sorted(reached)), before)
        state.next[character] = found
        return found

    def _accepts(self, state: _State) -> bool:
        if state.accepts is None:
            state.accepts = any(self._kinds[node] == _MATCH for node in self._closure(state, False, True))
        return state.accepts

    def _closure(self, state: _State, next_is_word: bool, at_end: bool) -> list[int]:
        """All nodes that can be reached without reading, at a position with these neighbours."""
        kinds, first, second = self._kinds, self._first, self._second
        at_start = state.before == _NOTHING
        boundary = (state.before == _WORD_CHARACTER) != next_is_word
        pending = list(state.nodes)
        seen = set(pending)
        for node in pending:
            kind = kinds[node]
            if kind == _SPLIT:
                ways: tuple[int, ...] = (first[node], second[node])
            elif kind == _ASSERTION and _holds(first[node], at_start, at_end, boundary):
                ways = (second[node],)
            else:
                continue
            for way in ways:
                if way not in seen:
                    seen.add(way)
                    pending.append(way)
        self.work += len(pending)
        return pending

    # The nondeterministic automaton, from its end to its start

    def _add(self, kind: int, first: int, second: int) -> int:
        if len(self._kinds) >= NODES_MAX:
            raise InvalidRegex("expression too large")
        self._kinds.append(kind)
        self._first.append(first)
        self._second.append(second)
        return len(self._kinds) - 1

    def _compile(self, node: Node, following: int) -> int:
        """The node at which `node` starts, if `following` comes after it."""
        self._steps += 1
        if self._steps > COMPILE_STEPS_MAX:
            raise InvalidRegex("expression too large")
        if isinstance(node, Characters):
            return self._add(_CHARACTERS, node.mask, following)
        if isinstance(node, Assertion):
            return self._add(_ASSERTION, node.kind, following)
        if isinstance(node, Sequence):
            for part in reversed(node.nodes):
                following = self._compile(part, following)
            return following
        if isinstance(node, Choice):
            start = self._compile(node.nodes[-1], following)
            for part in reversed(node.nodes[:-1]):
                start = self._add(_SPLIT, self._compile(part, following), start)
            return start
        assert isinstance(node, Repeat)
        return self._compile_repeat(node, following)

    def _compile_repeat(self, node: Repeat, following: int) -> int:
        if node.most < 0:
            loop = self._add(_SPLIT, following, following)
            self._first[loop] = self._compile(node.node, loop)
            following = loop
        else:
            end = following
            for _ in range(node.most - node.least):
                following = self._add(_SPLIT, self._compile(node.node, following), end)
        for _ in range(node.least):
            following = self._compile(node.node, following)
        return following


def _holds(kind: int, at_start: bool, at_end: bool, boundary: bool) -> bool:
    if kind == BEGIN_TEXT:
        return at_start
    if kind == END_TEXT:
        return at_end
    return boundary if kind == WORD_BOUNDARY else not boundary
