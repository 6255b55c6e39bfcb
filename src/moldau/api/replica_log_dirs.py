"""AlterReplicaLogDirs: moves replicas of this broker into other log directories (KIP-113).

Versions 1-2. The response says that a move has begun; DescribeLogDirs shows how far it is. A replica that is not here
yet is made in the directory named when it comes.
"""

from __future__ import annotations

from moldau.api.authorize import may_cluster
from moldau.api.call import Call
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from moldau.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from moldau.security.rights import ALTER


def handle_alter_replica_log_dirs(call: Call, request: AlterReplicaLogDirsRequest) -> None:
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    is_allowed = may_cluster(call, ALTER)
    for wanted in request.dirs:
        for topic in wanted.topics:
            result = results.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name))
            for index in topic.partitions:
                code = errors.CLUSTER_AUTHORIZATION_FAILED
                if is_allowed:
                    code = begin_move(call, topic.name, index, wanted.path)
                result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    call.respond(AlterReplicaLogDirsResponse(results=list(results.values())))


def begin_move(call: Call, topic: str, index: int, path: str) -> int:
    moves, replicas = call.node.directory_moves, call.node.replicas
    try:
        directory = moves.check_directory(topic, index, path)
        partition = replicas.find(topic, index)
        if partition is None:
            missing = replicas.why_missing(topic, index)
            if missing.code != errors.NOT_LEADER_OR_FOLLOWER:
                raise missing
            moves.preferred[(topic, index)] = directory.path
            return errors.REPLICA_NOT_AVAILABLE
        moves.request(partition, directory, call.now_ms)
    except KafkaError as error:
        return error.code
    return errors.NONE
