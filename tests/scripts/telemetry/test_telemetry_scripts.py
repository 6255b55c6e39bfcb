"""Scripts about client telemetry: a line with `>` is a command, the lines below it are what the client is told.

Commands: `config NAME KEY=VALUE...` (without any: deleted); `get CLIENT` and `push CLIENT [FLAG...]`, where a client is
known by a word and has the id that its first get brought. It is on connection 1 unless `on=N` says otherwise, with the
attributes that `client WORD FIELD=VALUE...` laid down. Flags of a push: `last` (terminating), `codec=N`, `size=N`,
`id=N` (of the subscription), `for=zero|one` (a reserved instance id). `wait MS`; `close N` (a connection); `there` (who
is known).
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from moldau.protocol.errors import error_name
from moldau.protocol.uuids import METADATA_TOPIC_UUID, ZERO_UUID
from moldau.telemetry.instances import Instance, Instances, Push
from moldau.telemetry.subscriptions import Subscriptions
from tests.scripts.replay import check_script, scripts_beside

SCRIPTS = scripts_beside(__file__)
BYTES_MAX = 1000
RESERVED = {"zero": ZERO_UUID, "one": METADATA_TOPIC_UUID}


class Script:
    def __init__(self) -> None:
        self.now_ms = 0
        self.subscriptions = Subscriptions()
        self.instances = Instances(self.subscriptions, random.Random(1), BYTES_MAX)
        self.attributes: dict[str, dict[str, str]] = {}
        self.ids: dict[str, bytes] = {}
        self.told: dict[str, int] = {}

    def run(self, line: str) -> list[str]:
        command, *arguments = line.split()
        written: list[str] = getattr(self, "do_" + command)(*arguments)
        return written

    def do_config(self, name: str, *pairs: str) -> list[str]:
        self.subscriptions.update(name, dict(pair.split("=", 1) for pair in pairs))
        return []

    def do_client(self, word: str, *pairs: str) -> list[str]:
        self.attributes[word] = dict(pair.split("=", 1) for pair in pairs)
        return []

    def do_get(self, word: str, *flags: str) -> list[str]:
        given = dict(flag.split("=", 1) for flag in flags)
        connection = int(given.get("on", 1))
        attributes = self.attributes.get(word, {"client_id": word})
        code, instance = self.instances.get(self.ids.get(word, ZERO_UUID), connection, attributes, self.now_ms)
        if code:
            return [error_name(code)]
        self.ids[word] = instance.instance_id
        self.told[word] = instance.subscription_id
        return [asked(instance)]

    def do_push(self, word: str, *flags: str) -> list[str]:
        given = dict(flag.split("=", 1) for flag in flags if "=" in flag)
        push = Push(
            RESERVED[given["for"]] if "for" in given else self.ids[word],
            int(given.get("id", self.told.get(word, 0))),
            "last" in flags,
            int(given.get("codec", 0)),
            int(given.get("size", 100)),
        )
        attributes = self.attributes.get(word, {"client_id": word})
        code, instance = self.instances.push(push, int(given.get("on", 1)), attributes, self.now_ms)
        if code == 0 and instance is not None:
            self.instances.taken(instance, 0, push.size)
        return [error_name(code) if code else "taken"]

    def do_wait(self, ms: str) -> list[str]:
        self.now_ms += int(ms)
        self.instances.expire(self.now_ms)
        return []

    def do_close(self, connection: str) -> list[str]:
        self.instances.on_closed(int(connection))
        return []

    def do_there(self) -> list[str]:
        return [" ".join(word for word, uuid in self.ids.items() if self.instances.find(uuid)) or "nobody"]


def asked(instance: Instance) -> str:
    return f"every {instance.interval_ms} ms: {', '.join(instance.metrics) or 'nothing'}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_clients_are_told_what_the_script_shows(path: Path) -> None:
    check_script(path, Script().run)
