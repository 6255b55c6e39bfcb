"""kafka-broker-api-versions: what it says of the versions of a broker."""

from __future__ import annotations

from moldau.cli.kafka.broker_api_versions import broker_lines
from moldau.client.connection.cluster import Broker


def test_versions_are_usable_unsupported_or_unknown() -> None:
    lines = broker_lines(Broker(1, "h", 9092, None), {0: (0, 13), 46: (0, 0), 1: (0, 3), 2: (50, 60), 999: (0, 1)})
    assert lines[0] == "h:9092 (id: 1 rack: null isFenced: false) -> ("
    assert "\tProduce(0): 0 to 13 [usable: 13]," in lines
    assert "\tFetch(1): 0 to 3 [unusable: node too old]," in lines
    assert "\tListOffsets(2): 50 to 60 [unusable: node too new]," in lines
    assert "\tListPartitionReassignments(46): 0 [usable: 0]," in lines
    assert "\tPushTelemetry(72): UNSUPPORTED," in lines
    assert lines[-2:] == ["\tUNKNOWN(999): 0 to 1", ")"]
