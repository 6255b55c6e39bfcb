"""Turns the settings of a log into the rules by which its records are validated."""

from __future__ import annotations

from typing import Final

from moldau.config.log_config import LogConfig
from moldau.records.codecs import DEFAULT_LEVEL, GZIP, LZ4, NONE, SNAPPY, ZSTD
from moldau.storage.validation import PRODUCER_COMPRESSION, ValidationRules

CODECS: Final = {
    "producer": PRODUCER_COMPRESSION,
    "uncompressed": NONE,
    "none": NONE,
    "gzip": GZIP,
    "snappy": SNAPPY,
    "lz4": LZ4,
    "zstd": ZSTD,
}


def rules_for(config: LogConfig, topic_partition: str) -> ValidationRules:
    levels = {
        GZIP: config.compression_gzip_level,
        LZ4: config.compression_lz4_level,
        ZSTD: config.compression_zstd_level,
    }
    codec = CODECS[config.compression_type]
    return ValidationRules(
        compression_type=codec,
        level=levels.get(codec, DEFAULT_LEVEL),
        log_append_time=config.message_timestamp_type == "LogAppendTime",
        before_max_ms=config.message_timestamp_before_max_ms,
        after_max_ms=config.message_timestamp_after_max_ms,
        max_message_bytes=config.max_message_bytes,
        compacted=config.compact,
        topic_partition=topic_partition,
    )
