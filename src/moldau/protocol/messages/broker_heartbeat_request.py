"""BrokerHeartbeat request, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/063-broker-heartbeat.txt.
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


class BrokerHeartbeatRequest(Message):
    API_KEY: ClassVar[int] = 63
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "broker_id",
        "broker_epoch",
        "current_metadata_offset",
        "want_fence",
        "want_shut_down",
        "offline_log_dirs",
        "cordoned_log_dirs",
    )

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[bytes] | None = None,
        cordoned_log_dirs: list[bytes] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.current_metadata_offset: int = current_metadata_offset
        self.want_fence: bool = want_fence
        self.want_shut_down: bool = want_shut_down
        self.offline_log_dirs: list[bytes] = [] if offline_log_dirs is None else offline_log_dirs
        self.cordoned_log_dirs: list[bytes] | None = cordoned_log_dirs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BrokerHeartbeatRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("BrokerHeartbeatRequest", version))
        broker_id = reader.int32()
        broker_epoch = reader.int64()
        current_metadata_offset = reader.int64()
        want_fence = reader.boolean()
        want_shut_down = reader.boolean()
        offline_log_dirs: list[bytes] = []
        cordoned_log_dirs: list[bytes] | None = None
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0 and version >= 1:
                count = reader.compact_array_length(16)
                offline_log_dirs = reader.uuid_list(count)
            elif tag == 1 and version >= 2:
                count = reader.compact_nullable_array_length(16)
                cordoned_log_dirs = None if count < 0 else reader.uuid_list(count)
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return BrokerHeartbeatRequest(
            broker_id,
            broker_epoch,
            current_metadata_offset,
            want_fence,
            want_shut_down,
            offline_log_dirs,
            cordoned_log_dirs,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("BrokerHeartbeatRequest", version))
        writer.int32(self.broker_id)
        writer.int64(self.broker_epoch)
        writer.int64(self.current_metadata_offset)
        writer.boolean(self.want_fence)
        writer.boolean(self.want_shut_down)
        if version <= 0 and len(self.offline_log_dirs) > 0:
            raise cannot_send("offline_log_dirs", version)
        if version <= 1 and self.cordoned_log_dirs is not None:
            raise cannot_send("cordoned_log_dirs", version)
        tags: UnknownTags = []
        if version >= 1 and len(self.offline_log_dirs) > 0:
            part = Writer()
            part.compact_array_length(len(self.offline_log_dirs))
            part.uuid_list(self.offline_log_dirs)
            tags.append((0, part.to_bytes()))
        if version >= 2 and self.cordoned_log_dirs is not None:
            part = Writer()
            part.compact_array_length(len(self.cordoned_log_dirs))
            part.uuid_list(self.cordoned_log_dirs)
            tags.append((1, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)
