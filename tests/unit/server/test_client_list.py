"""Who is connected is told by a page, with the numbers that connections have."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from moldau.server import client_list as module
from moldau.server.client_list import client_list
from tests.unit.server.metrics.test_server import Served, talk, until


def read(served: Served, later_ms: int = 0) -> dict[str, Any]:
    now_ms = served.listener._clock() + later_ms
    text = "".join(client_list(1, [served.group], served.world.node.telemetry, now_ms))
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def test_every_connection_has_a_row() -> None:
    async def run() -> None:
        served = Served()
        try:
            assert read(served) == {"node": 1, "telemetry": False, "left_out": 0, "connections": []}
            first, sent, received = await talk(served.listener.port, "librdkafka", 3)
            second, _, _ = await talk(served.listener.port, "b", 1)
            rows = read(served)["connections"]
            assert [row["software_name"] for row in rows] == ["librdkafka", "b"]
            row = rows[0]
            assert row["address"] == "127.0.0.1:{}".format(first.get_extra_info("sockname")[1])
            assert (row["bytes_in"], row["bytes_out"], row["requests"], row["responses"]) == (sent, received, 3, 3)
            assert (row["listener"], row["principal"], row["tls"]) == ("PLAINTEXT", "User:ANONYMOUS", False)
            assert (row["throttled_ms"], row["throttled_total"], row["telemetry"]) == (0, 0, [])
            connection = next(iter(served.listener.connections))
            connection._mute(60_000)
            row = read(served)["connections"][0]
            assert 50_000 < row["throttled_ms"] <= 60_000 and row["throttled_total"] == 1
            later = read(served, later_ms=7000)["connections"][1]
            assert 7000 <= later["connected_ms"] < 60_000 and 7000 <= later["idle_ms"] < 60_000
            second.close()
            await until(lambda: served.listener.connection_count == 1)
            assert len(read(served)["connections"]) == 1
            first.close()
        finally:
            served.listener.close()

    asyncio.run(run())


def test_there_are_so_many_rows_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 2)

    async def run() -> None:
        served = Served()
        try:
            writers = [(await talk(served.listener.port, f"c{number}", 1))[0] for number in range(5)]
            found = read(served)
            assert len(found["connections"]) == 3 and found["left_out"] == 2
            for writer in writers:
                writer.close()
        finally:
            served.listener.close()

    asyncio.run(run())
