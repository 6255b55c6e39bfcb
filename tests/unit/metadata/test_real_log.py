"""A metadata log that Apache Kafka wrote loads, and what is made of it can be written down and loaded again."""

from __future__ import annotations

from pathlib import Path

from moldau.metadata.delta import _REPLAY, MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.loader import MetadataLoader
from moldau.metadata.snapshot import delta_between, image_to_records
from moldau.protocol.stored.metadata_records import (
    METADATA_RECORDS,
    decode_metadata_record,
    encode_metadata_record,
)
from moldau.raft.batches import control_records, metadata_batch, metadata_values
from moldau.records.batch import has_valid_crc, split_batches
from moldau.records.builder import KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE

LOG = Path(__file__).resolve().parents[2] / "data/kafka-metadata/00000000000000000000.log"


def load() -> tuple[MetadataLoader, list[MetadataDelta]]:
    """One node, topics created, grown and deleted, configs, quotas, scram, acls, a restart, a feature downgrade."""
    deltas: list[MetadataDelta] = []
    loader = MetadataLoader(lambda delta, image: deltas.append(delta))
    data = LOG.read_bytes()
    for header in split_batches(data, 0, len(data)):
        assert has_valid_crc(data, header)
        records = [decode_metadata_record(value) for value in metadata_values(data, header)]
        last, epoch, time = int(header.last_offset), int(header.partition_leader_epoch), int(header.max_timestamp)
        loader.load_batch(records, last, epoch, time)
    return loader, deltas


def test_the_image_is_what_the_cluster_was() -> None:
    image = load()[0].image
    assert (image.offset, image.epoch) == (127, 2)
    assert image.features["metadata.version"] == 30
    assert image.features["transaction.version"] == 1
    assert (image.brokers[1].fenced, image.brokers[1].in_controlled_shutdown) == (True, True)
    assert image.brokers[1].broker_epoch == 95
    assert list(image.topics_by_name) == ["alpha"]
    assert len(image.topics_by_name["alpha"].partitions) == 4
    partition = image.topics_by_name["alpha"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.isr, partition.elr) == (-1, 3, (), (1,))
    assert image.config(2, "alpha") == {"retention.ms": "1000000", "min.insync.replicas": "2"}
    assert image.config(32, "g1") == {"consumer.session.timeout.ms": "50000"}
    assert image.client_quotas == {(("user", "alice"),): {"producer_byte_rate": 1024.0}}
    assert list(image.scram) == [(1, "alice")]
    assert [acl.principal for acl in image.acls.values()] == ["User:bob"]


def test_the_bootstrap_transaction_becomes_visible_at_once() -> None:
    _, deltas = load()
    with_features = [delta for delta in deltas if delta.changed_features]
    assert len(with_features[0].changed_features) == 6
    assert (4, "") in with_features[0].changed_configs


def test_an_image_written_as_records_loads_as_the_same_image() -> None:
    image = load()[0].image
    again = MetadataDelta(MetadataImage())
    for record, version in image_to_records(image):
        again.replay(decode_metadata_record(encode_metadata_record(record, version)))
    delta = delta_between(image, again.apply(image.offset, image.epoch, image.timestamp_ms))
    assert not delta.changed_topics and not delta.deleted_topics and not delta.changed_configs
    assert not delta.changed_acls and not delta.changed_scram and not delta.changed_quotas
    assert not delta.changed_features
    assert not delta.changed_brokers and not delta.changed_controllers


def test_every_batch_is_written_the_same_way() -> None:
    """Records decoded and put into a batch again give Kafka's bytes."""
    data = LOG.read_bytes()
    for header in split_batches(data, 0, len(data)):
        if header.is_control:
            continue
        values = metadata_values(data, header)
        again = metadata_batch(
            int(header.base_offset), int(header.partition_leader_epoch), int(header.base_timestamp), values
        )
        assert again == data[int(header.position) : int(header.end)]


def test_the_first_batch_has_leader_change_version_and_voters() -> None:
    data = LOG.read_bytes()
    assert [kind for _, kind, _ in control_records(data)] == [LEADER_CHANGE, KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE]


def test_every_metadata_record_can_be_replayed() -> None:
    assert set(METADATA_RECORDS.values()) == set(_REPLAY)
