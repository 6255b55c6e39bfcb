"""ApiVersions response, versions 0 to 4 (generated).

Written by tools/generate_messages.py from schemas/messages/018-api-versions.txt.
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


class ApiVersionsResponse(Message):
    API_KEY: ClassVar[int] = 18
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )

    def __init__(
        self,
        error_code: int = 0,
        api_keys: list[ApiVersion] | None = None,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] | None = None,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] | None = None,
        zk_migration_ready: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.api_keys: list[ApiVersion] = [] if api_keys is None else api_keys
        self.throttle_time_ms: int = throttle_time_ms
        self.supported_features: list[SupportedFeatureKey] = [] if supported_features is None else supported_features
        self.finalized_features_epoch: int = finalized_features_epoch
        self.finalized_features: list[FinalizedFeatureKey] = [] if finalized_features is None else finalized_features
        self.zk_migration_ready: bool = zk_migration_ready
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ApiVersionsResponse:
        if version < 0 or version > 4:
            raise DecodeError(no_such_version("ApiVersionsResponse", version))
        error_code = reader.int16()
        api_keys: list[ApiVersion] = []
        if version >= 3:
            count = reader.compact_array_length(7)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            api_keys.append(ApiVersion.decode(reader, version))
        throttle_time_ms: int = 0
        if version >= 1:
            throttle_time_ms = reader.int32()
        supported_features: list[SupportedFeatureKey] = []
        finalized_features_epoch: int = -1
        finalized_features: list[FinalizedFeatureKey] = []
        zk_migration_ready: bool = False
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    count = reader.compact_array_length(6)
                    supported_features = []
                    for _ in range(count):
                        supported_features.append(SupportedFeatureKey.decode(reader, version))
                elif tag == 1:
                    finalized_features_epoch = reader.int64()
                elif tag == 2:
                    count = reader.compact_array_length(6)
                    finalized_features = []
                    for _ in range(count):
                        finalized_features.append(FinalizedFeatureKey.decode(reader, version))
                elif tag == 3:
                    zk_migration_ready = reader.boolean()
                else:
                    unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
                reader.check_tag_end(end)
        return ApiVersionsResponse(
            error_code,
            api_keys,
            throttle_time_ms,
            supported_features,
            finalized_features_epoch,
            finalized_features,
            zk_migration_ready,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 4:
            raise EncodeError(no_such_version("ApiVersionsResponse", version))
        writer.int16(self.error_code)
        if version >= 3:
            writer.compact_array_length(len(self.api_keys))
        else:
            writer.array_length(len(self.api_keys))
        for api_keys_element in self.api_keys:
            api_keys_element.encode(writer, version)
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        if version >= 3:
            tags: UnknownTags = []
            if len(self.supported_features) > 0:
                part = Writer()
                part.compact_array_length(len(self.supported_features))
                for supported_features_element in self.supported_features:
                    supported_features_element.encode(part, version)
                tags.append((0, part.to_bytes()))
            if self.finalized_features_epoch != -1:
                part = Writer()
                part.int64(self.finalized_features_epoch)
                tags.append((1, part.to_bytes()))
            if len(self.finalized_features) > 0:
                part = Writer()
                part.compact_array_length(len(self.finalized_features))
                for finalized_features_element in self.finalized_features:
                    finalized_features_element.encode(part, version)
                tags.append((2, part.to_bytes()))
            if self.zk_migration_ready:
                part = Writer()
                part.boolean(self.zk_migration_ready)
                tags.append((3, part.to_bytes()))
            writer.tags(tags, self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ApiVersion(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("api_key", "min_version", "max_version")

    def __init__(
        self,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.api_key: int = api_key
        self.min_version: int = min_version
        self.max_version: int = max_version
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ApiVersion:
        api_key = reader.int16()
        min_version = reader.int16()
        max_version = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return ApiVersion(api_key, min_version, max_version, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.api_key)
        writer.int16(self.min_version)
        writer.int16(self.max_version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class SupportedFeatureKey(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "min_version", "max_version")

    def __init__(
        self,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.min_version: int = min_version
        self.max_version: int = max_version
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SupportedFeatureKey:
        name = reader.compact_string()
        min_version = reader.int16()
        max_version = reader.int16()
        unknown_tags = reader.unknown_tags()
        return SupportedFeatureKey(name, min_version, max_version, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int16(self.min_version)
        writer.int16(self.max_version)
        writer.unknown_tags(self.unknown_tags)


class FinalizedFeatureKey(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "max_version_level", "min_version_level")

    def __init__(
        self,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.max_version_level: int = max_version_level
        self.min_version_level: int = min_version_level
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FinalizedFeatureKey:
        name = reader.compact_string()
        max_version_level = reader.int16()
        min_version_level = reader.int16()
        unknown_tags = reader.unknown_tags()
        return FinalizedFeatureKey(name, max_version_level, min_version_level, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int16(self.max_version_level)
        writer.int16(self.min_version_level)
        writer.unknown_tags(self.unknown_tags)
