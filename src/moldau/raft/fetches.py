"""What a leader replies to a fetch: records, where the logs diverge, a snapshot; or nothing yet, and parks it."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.raft.core import RaftCore
from moldau.raft.messages import FetchReply, FetchRequest


def read_for(core: RaftCore, request: FetchRequest) -> FetchReply:
    reply = FetchReply(errors.NONE, core.leader_id, core.epoch, core.high_watermark, core.log.start_offset())
    agrees = _is_prefix(core, request.offset, request.last_fetched_epoch, reply)
    if agrees and request.offset < core.log.end_offset():
        reply.records = core.log.read(request.offset, min(request.max_bytes, core.config.fetch_max_bytes))
    return reply


def is_worth_waiting(core: RaftCore, request: FetchRequest, reply: FetchReply) -> bool:
    """Nothing to say: no records, no truncation, and the fetcher knows the high watermark already."""
    has_content = bool(reply.records) or reply.diverging is not None or reply.snapshot is not None
    return not has_content and request.high_watermark >= core.high_watermark


def _is_prefix(core: RaftCore, offset: int, epoch: int, reply: FetchReply) -> bool:
    """Whether the fetcher's log is a prefix of this one; otherwise the reply says how it becomes one."""
    start, snapshot = core.log.start_offset(), core.log.earliest_snapshot()
    if start == 0 and offset == 0 and epoch == 0:
        return True
    if snapshot is not None and (
        offset < start or (offset == start == snapshot.offset and epoch != snapshot.epoch) or epoch < snapshot.epoch
    ):
        reply.snapshot = core.log.latest_snapshot()
        return False
    end = core.log.end_offset_for_epoch(epoch)
    if end.epoch != epoch or end.offset < offset:
        reply.diverging = end
        return False
    return True


def serve_parked(core: RaftCore, now_ms: int) -> None:
    parked, core.parked = core.parked, []
    for fetch in parked:
        reply = read_for(core, fetch.request)
        if is_worth_waiting(core, fetch.request, reply) and now_ms < fetch.deadline_ms:
            core.parked.append(fetch)
        else:
            core.reply(fetch.token, reply)


def tick_parked(core: RaftCore, now_ms: int) -> None:
    due = [fetch for fetch in core.parked if now_ms >= fetch.deadline_ms]
    if due:
        core.parked = [fetch for fetch in core.parked if now_ms < fetch.deadline_ms]
        for fetch in due:
            reply = FetchReply(errors.NONE, core.leader_id, core.epoch, core.high_watermark)
            reply.log_start_offset = core.log.start_offset()
            core.reply(fetch.token, reply)


def reply_to_parked_with_error(core: RaftCore, error: int) -> None:
    parked, core.parked = core.parked, []
    for fetch in parked:
        core.reply(fetch.token, FetchReply(error, core.leader_id, core.epoch))
