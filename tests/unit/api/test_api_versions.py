"""ApiVersions answered from what was encoded before: the same bytes as an answer that is made anew."""

from __future__ import annotations

import pytest

from moldau.api.api_versions import describe
from moldau.api.call import Call
from moldau.config.broker_config import BrokerConfig
from moldau.node.context import ClientContext
from moldau.protocol.api_keys import BY_KEY
from moldau.protocol.api_table import API_VERSIONS, INIT_PRODUCER_ID
from moldau.protocol.messages import alter_client_quotas_request as alter
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.api_versions_response import ApiVersionsResponse
from moldau.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.protocol.primitives import Writer
from moldau.sim.node.program import joined
from tests.unit.node.world import Asked, NodeWorld

VERSIONS = range(ApiVersionsRequest.LOWEST_VERSION, ApiVersionsRequest.HIGHEST_VERSION + 1)
SECOND_NS = 1_000_000_000
CORRELATION_ID_BYTES = 4


@pytest.fixture
def world() -> NodeWorld:
    return NodeWorld().start()


def body_of(asked: Asked) -> bytes:
    assert asked.reply.parts is not None
    return joined(asked.reply.parts)[CORRELATION_ID_BYTES:]


def answer(world: NodeWorld, version: int) -> bytes:
    return body_of(world.send(ApiVersionsRequest("test", "1"), version))


def made_anew(world: NodeWorld, version: int) -> bytes:
    call = Call(
        world.node,
        world.context,
        api_key=API_VERSIONS,
        version=version,
        correlation_id=7,
        client_id="test",
        flexible_response_header=False,
        now_ms=world.now_ms,
    )
    writer = Writer()
    describe(call).encode(writer, version)
    return writer.to_bytes()


@pytest.mark.parametrize("on_controllers", [False, True])
def test_every_version_on_every_kind_of_listener_is_what_it_would_be_anew(
    world: NodeWorld, on_controllers: bool
) -> None:
    for is_controller in (not on_controllers, on_controllers):
        world.context = ClientContext("A", "127.0.0.1:5000", is_controller)
        for version in VERSIONS:
            assert answer(world, version) == made_anew(world, version)
            assert answer(world, version) == made_anew(world, version), "the second time from memory"


def test_a_change_of_features_is_seen_by_who_asks_next(world: NodeWorld) -> None:
    def group_level() -> int:
        response = world.ask(ApiVersionsRequest("test", "1"), 4)
        assert isinstance(response, ApiVersionsResponse)
        return {one.name: one.max_version_level for one in response.finalized_features}.get("group.version", 0)

    assert group_level() == 1
    world.ask(UpdateFeaturesRequest(1000, [FeatureUpdateKey("group.version", 0, upgrade_type=2)]), 2)
    assert group_level() == 0
    assert answer(world, 3) == made_anew(world, 3)


def test_another_configuration_offers_other_versions(world: NodeWorld) -> None:
    def newest() -> int:
        response = world.ask(ApiVersionsRequest("test", "1"), 4)
        return next(one.max_version for one in response.api_keys if one.api_key == INIT_PRODUCER_ID)

    stable = newest()
    changed = {**world.values, "transaction.two.phase.commit.enable": "true"}
    world.node.dynamic.current = BrokerConfig(changed, warn=False)
    assert stable < newest() == BY_KEY[INIT_PRODUCER_ID].highest_version


def test_who_has_to_wait_is_told_so_and_nobody_else(world: NodeWorld) -> None:
    entry = alter.EntryData([alter.EntityData("client-id", "test")], [alter.OpData("request_percentage", 1.0)])
    world.ask(alter.AlterClientQuotasRequest([entry]), 1)
    world.run(100)
    world.context.unbilled_ns = SECOND_NS
    asked = world.send(ApiVersionsRequest("test", "1"), 4)
    assert asked.response.throttle_time_ms == asked.reply.mute_ms > 0
    other = world.send(ApiVersionsRequest("test", "1"), 4, client_id="another")
    assert (other.response.throttle_time_ms, other.reply.mute_ms) == (0, 0)
    assert body_of(other) == made_anew(world, 4)
