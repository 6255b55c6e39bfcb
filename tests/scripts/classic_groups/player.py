"""Plays a script about one group: a command per line, what clients and the log see below it.

    join NAME [id=ID] [instance=I] [protocols=range,roundrobin] [topics=t,u] [type=consumer] [version=9]
              [session=MS] [rebalance=MS] [reason=WORD]
    sync NAME [OTHER=ASSIGNMENT ...]     heartbeat NAME     leave NAME... | instance=I
    commit NAME [generation=N] [id=ID]   tick MS            show
    stop, start                          hold, release      (the high watermark)
    fail CODE-NAME | fail none           (appends)          set KEY VALUE     (of the broker)

A client is called by its name, which is its client id, and uses the member id and generation it was told last.
Member ids are shown with a number in place of their uuid.
"""

from __future__ import annotations

import re
from typing import Any

from moldau.config.broker_config import BrokerConfig
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.join_group_response import JoinGroupResponse
from moldau.protocol.messages.leave_group_response import LeaveGroupResponse
from moldau.protocol.messages.sync_group_response import SyncGroupResponse
from tests.scripts.classic_groups.world import SETTINGS, UUID, GroupWorld, Pending, read_group_record, subscription

MEMBER_ID = re.compile(rf"(\w*)-({UUID.pattern})")


def name_of(code: int) -> str:
    return errors.error_name(code) if code else "ok"


class Client:
    """What a client remembers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.instance: str | None = None
        self.options: dict[str, str] = {}


class Player:
    """See the module."""

    def __init__(self) -> None:
        self.world = GroupWorld()
        self.clients: dict[str, Client] = {}
        self.waiting: list[tuple[str, Client, Pending]] = []
        self.seen_records = 0
        self.numbers: dict[str, dict[str, int]] = {}
        self.values: dict[str, str] = {}

    def play(self, line: str) -> list[str]:
        command, *words = line.split()
        plain = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        lines: list[str] = getattr(self, f"do_{command}")(plain, options) or []
        lines += self.new_answers()
        lines += self.new_records()
        return [self.short(one) for one in lines]

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(name))

    def short(self, text: str) -> str:
        return MEMBER_ID.sub(self.number, text)

    def number(self, found: re.Match[str]) -> str:
        """Ids of one name are counted in the order in which they appear."""
        of_name = self.numbers.setdefault(found[1], {})
        return f"{found[1]}-{of_name.setdefault(found[2], len(of_name) + 1)}"

    # Commands

    def do_join(self, words: list[str], options: dict[str, str]) -> None:
        client = self.client(words[0])
        client.options.update({name: value for name, value in options.items() if name != "id"})
        known = client.options
        client.instance = known.get("instance")
        metadata = subscription(*known.get("topics", "t").split(","))
        protocols = [(name, metadata) for name in known.get("protocols", "range").split(",") if name]
        done = self.world.join(
            options.get("id", client.member_id),
            instance=client.instance,
            client=client.name,
            protocols=protocols,
            protocol_type=known.get("type", "consumer"),
            session_ms=int(known.get("session", "10000")),
            rebalance_ms=int(known.get("rebalance", "60000")),
            version=int(known.get("version", "9")),
            reason=known.get("reason"),
        )
        self.waiting.append(("join", client, done))

    def do_sync(self, words: list[str], options: dict[str, str]) -> None:
        client = self.client(words[0])
        assignments = {
            self.client(name).member_id or name: value.encode()
            for name, value in options.items()
            if name in self.clients
        }
        done = self.world.sync(
            options.get("id", client.member_id),
            int(options.get("generation", client.generation)),
            assignments,
            instance=client.instance,
            protocol_type=options.get("type"),
            protocol_name=options.get("protocol"),
        )
        self.waiting.append(("sync", client, done))

    def do_heartbeat(self, words: list[str], options: dict[str, str]) -> None:
        client = self.client(words[0])
        generation = int(options.get("generation", client.generation))
        member_id = options.get("id", client.member_id)
        self.waiting.append(
            ("heartbeat", client, self.world.heartbeat(member_id, generation, instance=client.instance))
        )

    def do_leave(self, words: list[str], options: dict[str, str]) -> None:
        members: list[tuple[str, str | None]] = []
        for name in words:
            client = self.client(name)
            members.append((client.member_id, client.instance))
        if "instance" in options:
            members.append(("", options["instance"]))
        self.waiting.append(("leave", Client("admin" if not words else words[0]), self.world.leave(*members)))

    def do_commit(self, words: list[str], options: dict[str, str]) -> list[str]:
        client = self.client(words[0])
        generation = int(options.get("generation", client.generation))
        try:
            self.world.group().check_offset_commit(
                options.get("id", client.member_id), client.instance, generation, False, 9, self.world.now_ms
            )
        except KafkaError as error:
            return [f"{client.name}: commit {name_of(error.code)}"]
        return [f"{client.name}: commit ok"]

    def do_tick(self, words: list[str], options: dict[str, str]) -> None:
        self.world.tick(int(words[0]))

    def do_stop(self, words: list[str], options: dict[str, str]) -> None:
        self.world.stop()

    def do_start(self, words: list[str], options: dict[str, str]) -> None:
        self.world.start()

    def do_hold(self, words: list[str], options: dict[str, str]) -> None:
        self.world.log.held = True

    def do_release(self, words: list[str], options: dict[str, str]) -> None:
        self.world.log.release(self.world.now_ms)

    def do_fail(self, words: list[str], options: dict[str, str]) -> None:
        self.world.log.failing = None if words[0] == "none" else int(getattr(errors, words[0]))

    def do_set(self, words: list[str], options: dict[str, str]) -> None:
        self.values[words[0]] = words[1]
        self.world.settings.update(BrokerConfig({**SETTINGS, **self.values}))

    def do_show(self, words: list[str], options: dict[str, str]) -> list[str]:
        group = self.world.machine.state.groups.get("g")
        if group is None:
            return ["no group"]
        described = group.describe()
        shown = self.world.group()
        first = f"group {described.group_state} generation={shown.generation} leader={shown.leader}"
        first += f" protocol={described.protocol_type}/{described.protocol_data} pending={len(shown.pending_members)}"
        lines = [first]
        for member in described.members:
            instance = f" instance={member.group_instance_id}" if member.group_instance_id else ""
            lines.append(f"  {member.member_id}{instance} assignment={member.member_assignment.decode() or '-'}")
        return lines

    # What is seen

    def new_answers(self) -> list[str]:
        lines = []
        still: list[tuple[str, Client, Pending]] = []
        for what, client, done in self.waiting:
            if not done.done:
                still.append((what, client, done))
                continue
            lines.append(f"{client.name}: {what} {self.describe(what, client, done.answer)}")
        self.waiting = still
        return lines

    def describe(self, what: str, client: Client, answer: Any) -> str:
        if isinstance(answer, KafkaError):
            return name_of(answer.code)
        if isinstance(answer, JoinGroupResponse):
            return self.describe_join(client, answer)
        if isinstance(answer, SyncGroupResponse):
            assigned = f" assignment={answer.assignment.decode() or '-'}" if answer.error_code == 0 else ""
            return name_of(answer.error_code) + assigned
        if isinstance(answer, LeaveGroupResponse):
            rows = [f"{row.member_id or row.group_instance_id}={name_of(row.error_code)}" for row in answer.members]
            return " ".join([name_of(answer.error_code), *rows])
        return name_of(answer.error_code)

    def describe_join(self, client: Client, answer: JoinGroupResponse) -> str:
        if answer.error_code in (0, errors.MEMBER_ID_REQUIRED):
            client.member_id = answer.member_id
        if answer.error_code:
            return f"{name_of(answer.error_code)} id={answer.member_id}"
        client.generation = answer.generation_id
        text = f"ok id={answer.member_id} generation={answer.generation_id} protocol={answer.protocol_name}"
        text += f" leader={answer.leader}"
        if answer.members:
            text += " members=" + ",".join(member.member_id for member in answer.members)
        return text + (" skip-assignment" if answer.skip_assignment else "")

    def new_records(self) -> list[str]:
        lines = []
        records = self.world.log.records
        for key, value in records[self.seen_records :]:
            _, group = read_group_record(key, value)
            if group is None:
                lines.append("log: tombstone")
                continue
            members = [f"{one.member_id}:{one.assignment.decode() or '-'}" for one in group.members]
            lines.append(
                f"log: generation={group.generation} type={group.protocol_type} protocol={group.protocol}"
                f" leader={group.leader} members={','.join(members) or '-'}"
            )
        self.seen_records = len(records)
        return lines
