"""ElectLeaders response, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/043-elect-leaders.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)


class ElectLeadersResponse(Message):
    API_KEY: ClassVar[int] = 43
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "replica_election_results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.replica_election_results: list[ReplicaElectionResult] = (
            [] if replica_election_results is None else replica_election_results
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ElectLeadersResponse:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("ElectLeadersResponse", version))
        throttle_time_ms = reader.int32()
        error_code: int = 0
        if version >= 1:
            error_code = reader.int16()
        replica_election_results: list[ReplicaElectionResult] = []
        if version >= 2:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            replica_election_results.append(ReplicaElectionResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return ElectLeadersResponse(throttle_time_ms, error_code, replica_election_results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("ElectLeadersResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 1:
            writer.int16(self.error_code)
        elif self.error_code != 0:
            raise cannot_send("error_code", version)
        if version >= 2:
            writer.compact_array_length(len(self.replica_election_results))
        else:
            writer.array_length(len(self.replica_election_results))
        for replica_election_results_element in self.replica_election_results:
            replica_election_results_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ReplicaElectionResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "partition_result")

    def __init__(
        self,
        topic: str = "",
        partition_result: list[PartitionResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.partition_result: list[PartitionResult] = [] if partition_result is None else partition_result
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ReplicaElectionResult:
        topic: str
        if version >= 2:
            topic = reader.compact_string()
        else:
            topic = reader.string()
        partition_result: list[PartitionResult] = []
        if version >= 2:
            count = reader.compact_array_length(8)
        else:
            count = reader.array_length(8)
        for _ in range(count):
            partition_result.append(PartitionResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return ReplicaElectionResult(topic, partition_result, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 2:
            writer.compact_array_length(len(self.partition_result))
        else:
            writer.array_length(len(self.partition_result))
        for partition_result_element in self.partition_result:
            partition_result_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class PartitionResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_id", "error_code", "error_message")

    def __init__(
        self,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_id: int = partition_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionResult:
        partition_id = reader.int32()
        error_code = reader.int16()
        error_message: str | None
        if version >= 2:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return PartitionResult(partition_id, error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_id)
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
