"""Scripts about the quota of changes: a line with `>` is a command, the lines below it are what the client is told.

Commands: `quota USER CLIENT RATE` (`-` for a part that the entity does not have, `*` for the default, `none` removes);
`create MODE USER/CLIENT NAME=PARTITIONS...`, `validate` for the same without doing it, `grow` and `delete NAME...`,
where MODE is strict or permissive; `wait MS`; `tokens` (what all buckets have).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.controller.controller import Controller
from moldau.controller.mutations import Asker
from moldau.protocol.errors import error_name
from moldau.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest
from tests.scripts.replay import check_script, scripts_beside
from tests.unit.controller.world import World

SCRIPTS = scripts_beside(__file__)


class Script:
    def __init__(self) -> None:
        self.world = World(controller_quota_window_num="10")
        self.world.add_brokers(1)

    @property
    def controller(self) -> Controller:
        return self.world.controller

    def run(self, line: str) -> list[str]:
        command, *arguments = line.split()
        written: list[str] = getattr(self, "do_" + command)(*arguments)
        return written

    def do_quota(self, user: str, client_id: str, rate: str) -> list[str]:
        named = [("user", user), ("client-id", client_id)]
        entity = [EntityData(kind, None if name == "*" else name) for kind, name in named if name != "-"]
        is_removed = rate == "none"
        op = OpData("controller_mutation_rate", 0.0 if is_removed else float(rate), is_removed)
        request = AlterClientQuotasRequest([EntryData(entity, [op])])
        response = self.world.run(self.controller.alter_client_quotas(request, self.world.now_ms))
        return [error_name(row.error_code) for row in response.entries if row.error_code]

    def do_create(self, mode: str, who: str, *topics: str, validate_only: bool = False) -> list[str]:
        request = CreateTopicsRequest(validate_only=validate_only)
        for name, count in pairs(topics):
            request.topics.append(CreatableTopic(name, count, 1))
        result = self.controller.create_topics(request, self.world.now_ms, asker(mode, who))
        response = self.world.run(result)
        return told(response, response.topics)

    def do_validate(self, mode: str, who: str, *topics: str) -> list[str]:
        return self.do_create(mode, who, *topics, validate_only=True)

    def do_grow(self, mode: str, who: str, *topics: str) -> list[str]:
        request = CreatePartitionsRequest()
        for name, count in pairs(topics):
            request.topics.append(CreatePartitionsTopic(name, count, None))
        result = self.controller.create_partitions(request, self.world.now_ms, asker(mode, who))
        response = self.world.run(result)
        return told(response, response.results)

    def do_delete(self, mode: str, who: str, *names: str) -> list[str]:
        request = DeleteTopicsRequest(topic_names=list(names))
        result = self.controller.delete_topics(request, self.world.now_ms, asker(mode, who))
        response = self.world.run(result)
        return told(response, response.responses)

    def do_wait(self, ms: str) -> list[str]:
        self.world.now_ms += int(ms)
        return []

    def do_tokens(self) -> list[str]:
        usages = self.controller.mutations.usages
        return [
            f"{user}/{client} {usage.bucket.tokens(self.world.now_ms):g}" for (user, client), usage in usages.items()
        ]


def pairs(texts: tuple[str, ...]) -> list[tuple[str, int]]:
    return [(text.partition("=")[0], int(text.partition("=")[2])) for text in texts]


def asker(mode: str, who: str) -> Asker:
    user, _, client_id = who.partition("/")
    return Asker(user, client_id, mode == "strict")


def told(response: Any, rows: list[Any]) -> list[str]:
    lines = [f"{row.name} {error_name(row.error_code) if row.error_code else 'done'}" for row in rows]
    if response.throttle_time_ms:
        lines.append(f"throttle_time_ms={response.throttle_time_ms}")
    return lines


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_clients_are_told_what_the_script_shows(path: Path) -> None:
    check_script(path, Script().run)
