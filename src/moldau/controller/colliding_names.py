"""Topic names that differ only in '.' and '_': metric names hold the two to be the same, so only one may exist."""

from __future__ import annotations

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage


def collision_key(name: str) -> str:
    return name.replace(".", "_")


class CollidingNames:
    """The existing names with such characters, by what they have in common."""

    def __init__(self, image: MetadataImage) -> None:
        self._by_key: dict[str, dict[str, None]] = {}
        for name in image.topics_by_name:
            self._add(name)

    def find(self, name: str) -> str | None:
        """An existing topic that `name` collides with."""
        return next(iter(self._by_key.get(collision_key(name), ())), None)

    def apply(self, delta: MetadataDelta) -> None:
        for deleted in delta.deleted_topics.values():
            names = self._by_key.get(collision_key(deleted.name))
            if names is not None:
                names.pop(deleted.name, None)
                if not names:
                    del self._by_key[collision_key(deleted.name)]
        for topic in delta.changed_topics.values():
            if topic.before is None:
                self._add(topic.name)

    def _add(self, name: str) -> None:
        if "." in name or "_" in name:
            self._by_key.setdefault(collision_key(name), {})[name] = None
