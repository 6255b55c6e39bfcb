"""A metadata directory that Apache Kafka left behind is opened and continued."""

from __future__ import annotations

from pathlib import Path

from tests.unit.metadata.harness import LOG, Harness

DATA = Path(__file__).resolve().parents[2] / "data/kafka-metadata"


def test_the_node_goes_on_where_kafka_stopped() -> None:
    """Same topics, next quorum epoch, the broker's partitions led again after its clean stop."""
    h = Harness()
    for path in DATA.iterdir():
        target = "/data" if path.name == "meta.properties" else LOG
        h.disk.write_file(f"{target}/{path.name}", path.read_bytes())
    h.disk.remove("/data/bootstrap.checkpoint")
    node = h.start(previous_epoch=95)
    assert node.cluster_id == "kD9DbbYkTG6AX69ifYsISA"
    assert (node.leader_epoch, node.kraft_version) == (3, 1)
    h.run(lambda: h.ready)
    topic = node.image.topics_by_name["alpha"]
    assert [(p.leader, p.leader_epoch, p.isr) for p in topic.partitions.values()] == [(1, 4, (1,))] * 4
    assert node.image.brokers[1].broker_epoch > 127
    assert h.create("more").topics[0].error_code == 0
