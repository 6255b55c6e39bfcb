"""What must be true of topics: which exist, with which id, partitions and configs, from what admins were told.

A request whose response was lost may or may not have happened; until somebody has looked, the model says so.
"""

from __future__ import annotations

from moldau.sim.kernel.world import Violation
from moldau.sim.models.partition import PartitionModel

PRESENT = "present"
DELETING = "deleting"
GONE = "gone"

TRANSIENT_PREFIX = "transient"


class TopicModel:
    def __init__(self, name: str, topic_id: bytes, partitions: int, configs: dict[str, str]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.state = PRESENT
        # Somebody may delete it: then only its id says which topic of this name is meant.
        self.transient = name.startswith(TRANSIENT_PREFIX)
        self.partitions = [PartitionModel(f"{name}-{index}") for index in range(partitions)]
        # Every value that a config may have; more than one while a response is missing.
        self.configs: dict[str, set[str | None]] = {key: {value} for key, value in configs.items()}

    @property
    def synced(self) -> bool:
        """Whether every acknowledged append is synced before it is acknowledged."""
        return self.configs.get("flush.messages") == {"1"}


class ClusterModel:
    def __init__(self) -> None:
        self.topics: list[TopicModel] = []
        self.uncertain_names: dict[str, tuple[int, dict[str, str]]] = {}
        self.made_by_the_node: set[str] = set()
        """Topics that a coordinator creates for its clients; no administrator knows of them."""

    def current(self, name: str) -> TopicModel | None:
        for topic in reversed(self.topics):
            if topic.name == name and topic.state != GONE:
                return topic
        return None

    def present(self) -> list[TopicModel]:
        return [topic for topic in self.topics if topic.state == PRESENT]

    def on_created(self, name: str, topic_id: bytes, partitions: int, configs: dict[str, str]) -> TopicModel:
        existing = self.current(name)
        if existing is not None:
            raise Violation(f"a topic is created once: {name} was there as {existing.topic_id.hex()}")
        if any(topic.topic_id == topic_id for topic in self.topics):
            raise Violation(f"a topic id is never used again: {topic_id.hex()} for {name}")
        self.uncertain_names.pop(name, None)
        topic = TopicModel(name, topic_id, partitions, configs)
        self.topics.append(topic)
        return topic

    def check_topics(self, found: dict[str, tuple[bytes, int]]) -> None:
        """Holds the topics of a metadata response (name -> id and partition count) against the model."""
        for topic in self.topics:
            seen = found.get(topic.name)
            there = seen is not None and seen[0] == topic.topic_id
            if topic.state == PRESENT and not there:
                raise Violation(f"a topic whose creation was acknowledged exists: {topic.name} does not")
            if topic.state == GONE and there:
                raise Violation(f"a topic whose deletion was acknowledged does not exist: {topic.name} does")
            if topic.state == DELETING:
                topic.state = PRESENT if there else GONE
            if topic.state == PRESENT and seen is not None and seen[1] < len(topic.partitions):
                raise Violation(f"a topic keeps its partitions: {topic.name} has {seen[1]} of {len(topic.partitions)}")
            if topic.state == PRESENT and seen is not None:
                for index in range(len(topic.partitions), seen[1]):
                    topic.partitions.append(PartitionModel(f"{topic.name}-{index}"))
        for name, (topic_id, partitions) in found.items():
            if self.current(name) is None and name not in self.made_by_the_node:
                self._adopt(name, topic_id, partitions)
        for name in list(self.uncertain_names):
            if name not in found:
                del self.uncertain_names[name]

    def _adopt(self, name: str, topic_id: bytes, partitions: int) -> None:
        asked = self.uncertain_names.get(name)
        if asked is None:
            raise Violation(f"no topic exists that nobody created: {name}")
        if partitions != asked[0]:
            raise Violation(f"a topic has the partitions that were asked for: {name} has {partitions}, not {asked[0]}")
        self.on_created(name, topic_id, partitions, asked[1])
