"""The process, its loop and its connections, after real bytes on real sockets."""

from __future__ import annotations

import asyncio
import os
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from moldau import __version__
from moldau.net.framing import Scratch
from moldau.net.listener import Listener, ListenerLimits
from moldau.net.listener_group import ListenerGroup
from moldau.net.outbound import SocketOutbox
from moldau.net.turns import Turns
from moldau.node.outbox import NoResponse
from moldau.protocol.api_table import API_VERSIONS
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.primitives import Message
from moldau.quota.connection_quotas import ConnectionQuotas
from moldau.server.clock import Clock
from moldau.server.metrics import sockets
from moldau.server.metrics.metric import CONFLUENT
from tests.pace import patience
from tests.unit.node.cluster import BOTH, Cluster, frame_of
from tests.unit.node.world import NodeWorld
from tests.unit.server.metrics.pages import Page, page_of

PREFIX = "kafka_server_socket_server_metrics"


class Served:
    """A node behind a listener on a real socket."""

    def __init__(self) -> None:
        self.world = NodeWorld().start()
        self.turns = Turns()
        self.group = ListenerGroup(ConnectionQuotas("PLAINTEXT"), self.turns)
        self.listener = Listener(
            "PLAINTEXT",
            "127.0.0.1",
            0,
            is_controller=False,
            handle=self.world.dispatcher.handle,
            limits=ListenerLimits(),
            scratch=Scratch(turns=self.turns),
            clock=Clock(),
            group=self.group,
        )
        self.listener.bind()
        self.listener.start()

    def page(self, **more: Any) -> Page:
        more.setdefault("started_s", self.world.now_ms / 1000 - 10)
        return page_of(self.world.node, self.world.now_ms, turns=self.turns, listener_groups=[self.group], **more)


async def talk(port: int, name: str, requests: int) -> tuple[asyncio.StreamWriter, int, int]:
    """Introduces itself so often; the writer, and the bytes both ways."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    frame = frame_of(ApiVersionsRequest(client_software_name=name, client_software_version="1.0"), 3)
    sent = received = 0
    for _ in range(requests):
        writer.write(struct.pack(">i", len(frame)) + frame)
        sent += 4 + len(frame)
        size = struct.unpack(">i", await asyncio.wait_for(reader.readexactly(4), patience(10)))[0]
        await asyncio.wait_for(reader.readexactly(size), patience(10))
        received += 4 + size
    return writer, sent, received


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(patience(10)):
        while not condition():
            await asyncio.sleep(0.01)


def test_bytes_requests_and_connections_are_counted_also_when_they_are_closed() -> None:
    async def run() -> None:
        served = Served()
        try:
            first, sent, received = await talk(served.listener.port, "a", 3)
            second, more_sent, more_received = await talk(served.listener.port, "b", 2)
            for _ in range(2):
                page = served.page()
                label = "listener=PLAINTEXT"
                assert page[f"{PREFIX}_incoming_byte_total", label] == sent + more_sent
                assert page[f"{PREFIX}_outgoing_byte_total", label] == received + more_received
                assert page[f"{PREFIX}_request_total", label] == page[f"{PREFIX}_response_total", label] == 5
                assert page[f"{PREFIX}_network_io_total", label] == 10
                assert page[f"{PREFIX}_connection_creation_total", label] == 2
                if first.is_closing():
                    break
                assert page[f"{PREFIX}_connections_software", "clientSoftwareName=a", "clientSoftwareVersion=1.0"] == 1
                first.close()
                await until(lambda: served.listener.connection_count == 1)
            assert page[f"{PREFIX}_connection_close_total", label] == 1
            assert len(page.rows(f"{PREFIX}_connections_software")) == 1
            assert page["kafka_network_requestchannel_requestqueuesize"] == 0
            second.close()
        finally:
            served.listener.close()

    asyncio.run(run())


def test_names_of_clients_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "SOFTWARE_MAX", 2)

    async def run() -> None:
        served = Served()
        try:
            writers = [(await talk(served.listener.port, name, 1))[0] for name in "abcd"]
            page = page_of(
                served.world.node, served.world.now_ms, CONFLUENT, turns=served.turns, listener_groups=[served.group]
            )
            name = "kafka_server_socketservermetrics_connections"
            assert page[name, "client_software_name=other", "client_software_version=other"] == 2
            assert len(page.rows(name)) == 3
            for writer in writers:
                writer.close()
        finally:
            served.listener.close()

    asyncio.run(run())


def test_connections_to_others_are_counted_by_purpose() -> None:
    async def run() -> None:
        served = Served()
        outbox = SocketOutbox(asyncio.get_running_loop(), Clock(), "moldau-1")
        answered: asyncio.Future[Message | NoResponse] = asyncio.get_running_loop().create_future()
        try:
            channel = outbox.open("raft", "127.0.0.1", served.listener.port)
            request = ApiVersionsRequest(client_software_name="m", client_software_version="1")
            channel.send(API_VERSIONS, 3, request, 5000, lambda answer, _: answered.set_result(answer))
            assert not isinstance(await asyncio.wait_for(answered, patience(10)), NoResponse)
            channel.close()
            page = served.page(outboxes=[outbox.traffic])
            raft = "kafka_server_raftchannelmetrics"
            assert page[f"{raft}_request_total"] == page[f"{raft}_response_total"] == 1
            assert page[f"{raft}_outgoing_byte_total"] == page[f"{PREFIX}_incoming_byte_total", "listener=PLAINTEXT"]
            assert page[f"{raft}_incoming_byte_total"] == page[f"{PREFIX}_outgoing_byte_total", "listener=PLAINTEXT"]
        finally:
            outbox.close()
            served.listener.close()

    asyncio.run(run())


def test_the_loop_is_as_idle_as_it_was() -> None:
    world = NodeWorld().start()
    turns = Turns()
    turns.busy_seconds, turns.turns_total = 2.5, 1000
    page = page_of(world.node, world.now_ms, turns=turns, started_s=world.now_ms / 1000 - 10)
    for name in (
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "kafka_server_kafkarequesthandlerpool_brokerrequesthandleravgidle_percent",
        "kafka_server_kafkarequesthandlerpool_controllerrequesthandleravgidle_percent",
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "kafka_server_raftmetrics_poll_idle_ratio_avg",
        f"{PREFIX}_io_wait_ratio",
    ):
        assert page[name] == 0.75
    assert page["kafka_network_processor_idle_percent", "networkProcessor=0"] == 0.75
    assert page[f"{PREFIX}_io_time_ns_avg"] == 2_500_000
    confluent = page_of(world.node, world.now_ms, CONFLUENT, turns=turns, started_s=world.now_ms / 1000 - 10)
    assert confluent["kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total"] == 0.75


def test_the_process() -> None:
    world = NodeWorld().start()
    page = page_of(world.node, world.now_ms, turns=Turns())
    assert page["process_cpu_seconds_total"] == pytest.approx(time.process_time(), abs=2)
    assert page["moldau_build_info", f"version={__version__}"] == 1
    if os.path.isdir("/proc/self"):
        assert page["process_resident_memory_bytes"] > 10_000_000
        assert 3 <= page["process_open_fds"] <= page["process_max_fds"]
        assert 0 < time.time() - page["process_start_time_seconds"] < 24 * 3600
        assert page["kafka_server_kafkaserver_linux_disk_read_bytes"] >= 0


def test_the_state_of_a_broker() -> None:
    cluster = Cluster({1: BOTH, 2: "broker"}).start()
    state = "kafka_server_kafkaserver_brokerstate"
    assert page_of(cluster[2].node, cluster.now_ms)[state] == 3
    cluster[2].node.begin_shutdown(cluster.now_ms, lambda: None)
    assert page_of(cluster[2].node, cluster.now_ms)[state] == 6
    cluster[2].kill()
    cluster[2].start()
    assert page_of(cluster[2].node, cluster.now_ms)[state] in (1, 2)


def test_requests_to_the_controller() -> None:
    cluster = Cluster({1: BOTH, 2: "broker"}).start()
    assert cluster[2].create("t", replicas=1) == 0
    page = page_of(cluster[2].node, cluster.now_ms)
    assert page["kafka_server_forwardingmanager_queuelength"] == 0
    assert page["kafka_server_forwardingmanager_remotetimems_p99"] >= 2, "there and back on the wire"
