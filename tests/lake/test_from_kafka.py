"""The same loads from a real Apache Kafka: the tests are those of Moldau, with another broker under them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop import kafka_oracle
from tests.interop.kafka_oracle import KafkaNode
from tests.lake.test_changelog import test_the_table_equals_the_newest_values as test_the_table_equals_the_newest_values
from tests.lake.test_load import test_a_load_can_be_bounded_by_time as test_a_load_can_be_bounded_by_time
from tests.lake.test_load import test_aborted_transactions_are_not_loaded as test_aborted_transactions_are_not_loaded
from tests.lake.test_load import test_each_run_loads_what_is_new as test_each_run_loads_what_is_new
from tests.lake.test_load import test_rows_are_the_records_field_by_field as test_rows_are_the_records_field_by_field
from tests.lake.test_load import (
    test_the_group_is_told_how_far_the_load_is as test_the_group_is_told_how_far_the_load_is,
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """In place of the Moldau that the tests of this folder share."""
    reason = kafka_oracle.missing()
    if reason:
        pytest.skip(reason)
    started = KafkaNode(tmp_path_factory.mktemp("kafka"))
    started.format()
    started.start()
    yield started
    started.kill()
