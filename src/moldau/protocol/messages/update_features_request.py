"""UpdateFeatures request, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/057-update-features.txt.
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


class UpdateFeaturesRequest(Message):
    API_KEY: ClassVar[int] = 57
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("timeout_ms", "feature_updates", "validate_only")

    def __init__(
        self,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] | None = None,
        validate_only: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.feature_updates: list[FeatureUpdateKey] = [] if feature_updates is None else feature_updates
        self.validate_only: bool = validate_only
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> UpdateFeaturesRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("UpdateFeaturesRequest", version))
        timeout_ms = reader.int32()
        feature_updates: list[FeatureUpdateKey] = []
        count = reader.compact_array_length(5)
        for _ in range(count):
            feature_updates.append(FeatureUpdateKey.decode(reader, version))
        validate_only: bool = False
        if version >= 1:
            validate_only = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return UpdateFeaturesRequest(timeout_ms, feature_updates, validate_only, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("UpdateFeaturesRequest", version))
        writer.int32(self.timeout_ms)
        writer.compact_array_length(len(self.feature_updates))
        for feature_updates_element in self.feature_updates:
            feature_updates_element.encode(writer, version)
        if version >= 1:
            writer.boolean(self.validate_only)
        elif self.validate_only:
            raise cannot_send("validate_only", version)
        writer.unknown_tags(self.unknown_tags)


class FeatureUpdateKey(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("feature", "max_version_level", "allow_downgrade", "upgrade_type")

    def __init__(
        self,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.feature: str = feature
        self.max_version_level: int = max_version_level
        self.allow_downgrade: bool = allow_downgrade
        self.upgrade_type: int = upgrade_type
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FeatureUpdateKey:
        feature = reader.compact_string()
        max_version_level = reader.int16()
        allow_downgrade: bool = False
        if version <= 0:
            allow_downgrade = reader.boolean()
        upgrade_type: int = 1
        if version >= 1:
            upgrade_type = reader.int8()
        unknown_tags = reader.unknown_tags()
        return FeatureUpdateKey(feature, max_version_level, allow_downgrade, upgrade_type, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.feature)
        writer.int16(self.max_version_level)
        if version >= 1:
            if self.allow_downgrade:
                raise cannot_send("allow_downgrade", version)
        else:
            writer.boolean(self.allow_downgrade)
        if version >= 1:
            writer.int8(self.upgrade_type)
        elif self.upgrade_type != 1:
            raise cannot_send("upgrade_type", version)
        writer.unknown_tags(self.unknown_tags)
