"""UpdateFeatures response, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/057-update-features.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class UpdateFeaturesResponse(Message):
    API_KEY: ClassVar[int] = 57
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "error_message", "results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[UpdatableFeatureResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> UpdateFeaturesResponse:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("UpdateFeaturesResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        results: list[UpdatableFeatureResult] = []
        if version <= 1:
            count = reader.compact_array_length(5)
            for _ in range(count):
                results.append(UpdatableFeatureResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return UpdateFeaturesResponse(throttle_time_ms, error_code, error_message, results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("UpdateFeaturesResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        if version <= 1:
            writer.compact_array_length(len(self.results))
            for results_element in self.results:
                results_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class UpdatableFeatureResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("feature", "error_code", "error_message")

    def __init__(
        self,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.feature: str = feature
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> UpdatableFeatureResult:
        feature = reader.compact_string()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return UpdatableFeatureResult(feature, error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.feature)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unknown_tags(self.unknown_tags)
