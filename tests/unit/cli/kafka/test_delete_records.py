"""kafka-delete-records: its file and its output, against a scripted admin client."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.kafka import delete_records
from moldau.cli.kafka.delete_records import read_offsets
from moldau.cli.kafka.frame import guard
from moldau.cli.kafka.options import JavaFailure
from moldau.client.errors import error_for
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin


def test_each_partition_shows_its_first_offset_or_its_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "offsets.json"
    rows = [f'{{"topic": "orders", "partition": {index}, "offset": {index}}}' for index in (0, 1)]
    file.write_text(f'{{"version": 1, "partitions": [{", ".join(rows)}]}}')
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    admin = FakeAdmin(delete_records={first: Outcome(7), second: Outcome(error=error_for(errors.OFFSET_OUT_OF_RANGE))})
    line = ["--bootstrap-server", "h:1", "--offset-json-file", str(file)]
    assert guard(lambda: delete_records.main(line, connect=admin.connect)) == 0
    assert admin.calls[0][1] == ({first: 0, second: 1},)
    shown = capsys.readouterr()
    assert shown.out == (
        "Executing records delete operation\nRecords delete operation completed:\n"
        "partition: orders-0\tlow_watermark: 7\n"
        "partition: orders-1\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: "
        "The requested offset is not within the range of offsets maintained by the server.\n"
    )
    assert "request for topic partition orders-1 failed due to an unexpected error OFFSET_OUT_OF_RANGE" in shown.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "The input string is not a valid JSON"),
        ('{"version": 2, "partitions": []}', "Not supported version field value 2"),
        ("{}", "Missing partitions field"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "No such field exists: `offset`"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(text: str, said: str) -> None:
    with pytest.raises(JavaFailure) as failure:
        read_offsets(text)
    assert failure.value.message == said
