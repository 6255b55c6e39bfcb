"""Counts the error codes of responses, those of each partition, topic or group by itself, as Kafka does."""

from __future__ import annotations

import logging
from typing import Any, Final

from moldau.metrics.request_stats import RequestStats
from moldau.protocol.api_keys import BY_KEY, response_class
from moldau.protocol.api_table import METADATA
from moldau.protocol.error_fields import ROWS
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.messages.produce_response import ProduceResponse
from moldau.protocol.primitives import DecodeError, Message, Reader

log = logging.getLogger("moldau.api")

Path = list[str]

METADATA_PARTITIONS: Final = (METADATA, "topics.partitions.error_code")

_paths: Final[dict[tuple[int, int], list[Path]]] = {}


def count_errors(stats: RequestStats, response: Message, api_key: int, version: int) -> None:
    if isinstance(response, ProduceResponse):
        for topic in response.responses:
            for row in topic.partition_responses:
                stats.count_error(row.error_code)
    elif isinstance(response, FetchResponse):
        stats.count_error(response.error_code)
        for fetched in response.responses:
            for partition in fetched.partitions:
                stats.count_error(partition.error_code)
    else:
        for path in error_paths(api_key, version):
            count_below(stats, response, path, 0)


def count_encoded_errors(
    stats: RequestStats, response: bytes, api_key: int, version: int, flexible_header: bool
) -> None:
    """Of a response that another node has encoded: a correlation id, perhaps tags, and the body."""
    reader = Reader(response, 4, len(response))
    try:
        if flexible_header:
            reader.unknown_tags()
        decoded = response_class(api_key).decode(reader, version)
    except DecodeError:
        log.warning("cannot decode the controller's response to %s, version %d", BY_KEY[api_key].name, version)
        return
    count_errors(stats, decoded, api_key, version)


def count_below(stats: RequestStats, item: Any, path: Path, depth: int) -> None:
    found = getattr(item, path[depth], None)
    if depth == len(path) - 1:
        if found is not None:
            stats.count_error(found)
    elif isinstance(found, list):
        for inner in found:
            count_below(stats, inner, path, depth + 1)
    elif found is not None:
        count_below(stats, found, path, depth + 1)


def error_paths(api_key: int, version: int) -> list[Path]:
    """In metadata only those of topics: there are many partitions, and their errors say what everybody knows."""
    known = _paths.get((api_key, version))
    if known is None:
        known = []
        for key, lowest, highest, path in ROWS:
            if key == api_key and lowest <= version <= highest and (key, path) != METADATA_PARTITIONS:
                known.append(path.split("."))
        _paths[api_key, version] = known
    return known
