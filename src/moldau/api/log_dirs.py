"""DescribeLogDirs: the log directories of this broker, what lies in them and how much room is left.

Versions 1-5. Null topics means all. Version 4 adds the size of the volume, 5 whether new partitions avoid it.
"""

from __future__ import annotations

from moldau.api.authorize import may_cluster
from moldau.api.call import Call
from moldau.protocol import errors
from moldau.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from moldau.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from moldau.security.rights import DESCRIBE


def handle_describe_log_dirs(call: Call, request: DescribeLogDirsRequest) -> None:
    if not may_cluster(call, DESCRIBE):
        # Older clients have no field for it and see no directories.
        call.respond(DescribeLogDirsResponse(error_code=errors.CLUSTER_AUTHORIZATION_FAILED))
        return
    wanted: dict[str, set[int]] | None = None
    if request.topics is not None:
        wanted = {topic.topic: set(topic.partitions) for topic in request.topics}
    replicas = call.node.replicas
    logs = call.node.logs
    disk = call.node.disk
    response = DescribeLogDirsResponse()
    for directory in logs.directories:
        result = DescribeLogDirsResult(log_dir=directory.path)
        response.results.append(result)
        if directory.failed:
            result.error_code = errors.KAFKA_STORAGE_ERROR
            continue
        result.total_bytes, result.usable_bytes = disk.total_bytes(directory.path), disk.free_bytes(directory.path)
        topics: dict[str, DescribeLogDirsTopic] = {}
        for partition in sorted(replicas.all(), key=lambda each: (each.topic, each.index)):
            log = partition.log
            if wanted is not None and partition.index not in wanted.get(partition.topic, ()):
                continue
            move = call.node.directory_moves.find(partition)
            if move is not None and move.future.log_directory is directory:
                topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic))
                topic.partitions.append(
                    DescribeLogDirsPartition(
                        partition_index=partition.index,
                        partition_size=move.future.size_bytes,
                        offset_lag=move.lag,
                        is_future_key=True,
                    )
                )
            if log is None or log.log_directory is not directory:
                continue
            topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic))
            lag = max(0, partition.high_watermark.offset - log.log_end_offset)
            topic.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=partition.index, partition_size=log.size_bytes, offset_lag=lag, is_future_key=False
                )
            )
        result.topics = list(topics.values())
    call.respond(response)
