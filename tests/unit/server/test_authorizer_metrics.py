"""The authorizer's numbers are on the page, under the names that exporters give to Kafka's."""

from __future__ import annotations

from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.server.metrics.authorizer import authorizer_metrics
from moldau.server.metrics.metric import to_text
from tests.unit.node.world import NodeWorld

LABELS = '{config="authorizer.class.name",class="StandardAuthorizer",role="broker"}'


def test_decisions_a_minute_and_acls_are_told() -> None:
    world = NodeWorld(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:ANONYMOUS").start()
    world.create("t")
    for _ in range(9):
        world.produce("t")
    world.context.principal = "User:anna"
    world.produce("t")
    lines = to_text(authorizer_metrics(world.node, world.now_ms)).splitlines()
    values = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}
    rates = {name: values[f"kafka_server_plugins_authorization_{name}_rate_per_minute{LABELS}"] for name in NAMES}
    assert rates["denied"] == 2.0, "one in the window of half a minute that a new rate is measured over"
    assert rates["allowed"] >= 18 and abs(rates["request"] - rates["allowed"] - rates["denied"]) < 0.1
    assert values[f"kafka_server_plugins_acls_total_count{LABELS}"] == 0
    assert values["moldau_audit_left_out_total"] == 0


NAMES = ("request", "allowed", "denied")


def test_without_an_authorizer_there_is_nothing_to_tell() -> None:
    world = NodeWorld().start()
    assert authorizer_metrics(world.node, world.now_ms) == []
