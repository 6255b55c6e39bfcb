"""DescribeQuorum: leader, epoch, high watermark and voters of the metadata quorum. Versions 0-2."""

from __future__ import annotations

from moldau.api.call import Call
from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest


def handle_describe_quorum(call: Call, request: DescribeQuorumRequest) -> None:
    call.respond(call.node.metadata.describe_quorum(request, call.now_ms))
