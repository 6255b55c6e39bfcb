"""kafka-replica-verification: what it says when replicas are equal, behind, different, or not there."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.kafka.options import Exit
from moldau.cli.kafka.replica_verification import Verifier
from moldau.client.errors import NetworkError
from moldau.client.results import TopicPartition
from moldau.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder

PARTITION = TopicPartition("orders", 0)


def batch(offset: int, value: bytes = b"v") -> bytes:
    builder = BatchBuilder(offset)
    builder.append(1_700_000_000_000, None, value)
    return builder.build()


class Replicas:
    """A cluster of which each broker has its own bytes of one partition."""

    def __init__(self, **logs: bytes | None) -> None:
        self.logs = {int(name[1:]): data for name, data in logs.items()}

    def ask_broker(self, request: Any, response_class: Any, timeout_ms: int, broker: int, version: int) -> Any:
        data = self.logs[broker]
        if data is None:
            raise NetworkError("nobody there")
        assert request.replica_id == -2 and version == 12
        row = PartitionData(partition_index=0, high_watermark=2, records=MemoryRecords(data))
        return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=[row])])


def verifier(**logs: bytes | None) -> Verifier:
    cluster: Any = Replicas(**logs)
    return Verifier(cluster, {PARTITION: sorted(cluster.logs)}, {PARTITION: 0}, 1 << 20, 300)


def test_equal_replicas_have_no_lag(capsys: pytest.CaptureFixture[str]) -> None:
    log = batch(0) + batch(1)
    checked = verifier(b1=log, b2=log, b3=log)
    checked.step()
    assert checked.report() == "max lag is 0 for partition orders-0 at offset 2 among 1 partitions"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("behind", [batch(0), b"", None])
def test_what_not_all_replicas_have_waits(behind: bytes | None) -> None:
    checked = verifier(b1=batch(0) + batch(1), b2=behind)
    checked.step()
    lag = 1 if behind else 2
    assert checked.report() == f"max lag is {lag} for partition orders-0 at offset {2 - lag} among 1 partitions"


def test_other_content_is_told_and_other_offsets_end_it(capsys: pytest.CaptureFixture[str]) -> None:
    checked = verifier(b1=batch(0) + batch(1), b2=batch(0) + batch(1, b"other"))
    checked.step()
    assert ": partition orders-0 has unmatched checksum at offset 1; replica 1's checksum" in capsys.readouterr().out
    with pytest.raises(Exit):
        verifier(b1=batch(0) + batch(1), b2=batch(0) + batch(2)).step()
    assert "replica 1's offset 1 doesn't match replica 2's offset 2" in capsys.readouterr().out
