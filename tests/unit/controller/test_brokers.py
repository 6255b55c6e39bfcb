"""A broker's life: registration, unfencing, silence, controlled shutdown; the records are those of a real log."""

from __future__ import annotations

import pytest

from moldau.metadata.features import SUPPORTED_FEATURES
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from moldau.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from moldau.protocol.messages.controller_registration_request import Listener as ControllerListener
from moldau.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from moldau.protocol.stored.metadata_records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.unit.controller.world import CLUSTER, World, directory


def test_the_epoch_of_a_broker_is_the_offset_of_its_registration() -> None:
    w = World()
    offset = w.controller.state.next_offset
    assert w.register(1) == offset
    assert w.image.brokers[1].broker_epoch == offset
    assert w.image.brokers[1].fenced


def test_a_broker_is_unfenced_when_it_has_caught_up_with_its_registration() -> None:
    w = World()
    epoch = w.register(1)
    behind = w.heartbeat(1, offset=epoch - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    answer = w.heartbeat(1, offset=epoch)
    assert (answer.is_caught_up, answer.is_fenced, answer.should_shut_down) == (True, False, False)
    assert w.records == [(BrokerRegistrationChangeRecord(1, epoch, -1), 0)]


def test_the_first_heartbeat_notes_that_no_directory_is_cordoned() -> None:
    w = World()
    epoch = w.register(1)
    w.heartbeat(1)
    assert w.records[1] == (BrokerRegistrationChangeRecord(1, epoch, cordoned_log_dirs=[]), 3)
    w.heartbeat(1)
    assert w.records == []


def test_stop_and_start_of_the_only_replica_raise_the_leader_epoch_by_two() -> None:
    """Leader lost, leader back, with the records Apache Kafka writes."""
    w = World()
    w.add_brokers(1)
    epoch = w.image.brokers[1].broker_epoch
    topic_id = w.create("t", 1, 1).topic_id
    assert not w.heartbeat(1, want_shut_down=True).should_shut_down
    lost = PartitionChangeRecord(0, topic_id, [], -1, eligible_leader_replicas=[1], last_known_elr=[1])
    assert w.records == [(BrokerRegistrationChangeRecord(1, epoch, 0, 1), 1), (lost, 2)]
    assert w.heartbeat(1, want_shut_down=True).should_shut_down
    assert w.records == [(BrokerRegistrationChangeRecord(1, epoch, 1), 0)]

    again = w.register(1, previous_epoch=epoch, incarnation=2)
    assert w.record_names() == ["RegisterBrokerRecord"]
    w.heartbeat(1)
    back = PartitionChangeRecord(0, topic_id, [1], 1, eligible_leader_replicas=[], last_known_elr=[])
    assert w.records[:2] == [(BrokerRegistrationChangeRecord(1, again, -1), 0), (back, 2)]
    assert w.partition("t").leader_epoch == 2


def test_an_unclean_stop_makes_the_last_known_leader_recover() -> None:
    """The records that Apache Kafka wrote after a kill: no longer eligible, then back as the last known leader."""
    w = World()
    w.add_brokers(1)
    topic_id = w.create("t", 1, 1).topic_id
    w.now_ms += 9_000
    w.run(w.controller.fence_stale_brokers(w.now_ms))
    assert w.partition("t").elr == (1,)
    epoch = w.register(1, incarnation=2)
    assert w.records[0] == (PartitionChangeRecord(0, topic_id, eligible_leader_replicas=[]), 2)
    w.heartbeat(1)
    back = PartitionChangeRecord(0, topic_id, [1], 1, leader_recovery_state=1, last_known_elr=[])
    assert w.records[:2] == [(BrokerRegistrationChangeRecord(1, epoch, -1), 0), (back, 2)]


def test_a_silent_broker_is_fenced_and_its_partitions_move() -> None:
    w = World()
    w.add_brokers(1, 2)
    w.create("t", assignments=[[1, 2]])
    assert w.controller.brokers.next_expiry_ms(w.now_ms) == w.now_ms + 9000
    w.now_ms += 8_999
    w.heartbeat(2)
    assert w.run(w.controller.fence_stale_brokers(w.now_ms)) == []
    w.now_ms += 1
    assert w.run(w.controller.fence_stale_brokers(w.now_ms)) == [1]
    partition = w.partition("t")
    assert (partition.leader, partition.isr, partition.leader_epoch) == (2, (2,), 1)


def test_a_broker_that_is_heard_and_hears_nothing_is_fenced_until_it_does() -> None:
    """The way to it is cut and the way from it is not: heartbeats come, but what it knows stands still."""
    w = World()
    w.add_brokers(1, 2)
    w.create("t", assignments=[[1, 2]])
    last = w.image.offset
    for _ in range(12):
        w.now_ms += 1_000
        w.commit(w.controller.no_op().records)
        w.heartbeat(2)
        w.heartbeat(1, offset=last)
        w.run(w.controller.fence_stale_brokers(w.now_ms))
    assert w.image.brokers[1].fenced and not w.image.brokers[2].fenced
    assert w.partition("t").leader == 2
    assert w.heartbeat(1, offset=last).is_fenced, "it does not know that its session ended"
    assert not w.heartbeat(1).is_fenced


def test_brokers_that_all_stand_still_keep_their_sessions() -> None:
    """Nothing is committed, as while the disks of the controllers hang: that is nobody's fault."""
    w = World()
    w.add_brokers(1, 2)
    last = w.image.offset
    for _ in range(12):
        w.now_ms += 1_000
        w.commit(w.controller.no_op().records)
        for broker_id in (1, 2):
            w.heartbeat(broker_id, offset=last)
        assert w.run(w.controller.fence_stale_brokers(w.now_ms)) == []


def test_a_broker_that_lags_but_goes_on_keeps_its_session() -> None:
    w = World()
    w.add_brokers(1, 2)
    last = w.image.offset
    for _ in range(12):
        w.now_ms += 1_000
        for _ in range(3):
            w.commit(w.controller.no_op().records)
        last += 1
        w.heartbeat(2)
        w.heartbeat(1, offset=last)
        assert w.run(w.controller.fence_stale_brokers(w.now_ms)) == []


def test_a_second_process_with_the_id_of_a_living_broker_is_refused() -> None:
    w = World()
    w.add_brokers(1)
    with pytest.raises(KafkaError) as failure:
        w.register(1, incarnation=2)
    assert failure.value.code == errors.DUPLICATE_BROKER_REGISTRATION


def test_a_broker_of_another_cluster_is_refused() -> None:
    w = World()
    with pytest.raises(KafkaError) as failure:
        w.controller.register_broker(BrokerRegistrationRequest(1, "other"), 0)
    assert failure.value.code == errors.INCONSISTENT_CLUSTER_ID


def test_a_heartbeat_of_an_earlier_life_is_stale() -> None:
    w = World()
    w.add_brokers(1)
    with pytest.raises(KafkaError) as failure:
        w.controller.broker_heartbeat(BrokerHeartbeatRequest(1, 3, 100), 0)
    assert failure.value.code == errors.STALE_BROKER_EPOCH


def test_a_broker_that_shuts_down_waits_until_the_others_know() -> None:
    w = World()
    w.add_brokers(1, 2)
    w.create("t", assignments=[[1, 2]])
    before = w.image.offset
    w.heartbeat(1, want_shut_down=True)
    assert w.partition("t").leader == 2
    w.heartbeat(2, offset=before)
    assert not w.heartbeat(1, want_shut_down=True).should_shut_down
    w.heartbeat(2)
    assert w.heartbeat(1, want_shut_down=True).should_shut_down
    assert w.image.brokers[1].fenced


def test_unregistering_removes_a_broker_from_image_and_isr() -> None:
    w = World()
    w.add_brokers(1, 2)
    w.create("t", assignments=[[1, 2]])
    w.run(w.controller.unregister_broker(UnregisterBrokerRequest(2), 0))
    assert 2 not in w.image.brokers
    assert w.partition("t").isr == (1,)
    with pytest.raises(KafkaError) as failure:
        w.controller.unregister_broker(UnregisterBrokerRequest(2), 0)
    assert failure.value.code == errors.BROKER_ID_NOT_REGISTERED


def test_a_process_of_the_same_life_that_registers_again_keeps_its_epoch_and_its_state() -> None:
    """Its first answer was lost."""
    w = World()
    epoch = w.register(1)
    w.heartbeat(1)
    assert w.register(1) == epoch
    assert not w.image.brokers[1].fenced
    w.create("t", assignments=[[1]])
    w.heartbeat(1, want_shut_down=True)
    assert w.register(1) == epoch and w.image.brokers[1].in_controlled_shutdown


def test_a_broker_may_come_back_when_its_session_is_over_or_it_left_in_good_order() -> None:
    w = World()
    w.add_brokers(1, 2)
    w.now_ms += 9_000
    w.heartbeat(2)
    w.run(w.controller.fence_stale_brokers(w.now_ms))
    first = w.register(1, incarnation=2)
    w.heartbeat(1)
    assert w.heartbeat(1, want_shut_down=True).should_shut_down
    assert w.register(1, previous_epoch=first, incarnation=3) > first


def test_a_process_may_follow_one_that_is_in_controlled_shutdown() -> None:
    w = World()
    w.add_brokers(1, 2)
    w.create("t", assignments=[[1, 2]])
    w.heartbeat(1, want_shut_down=True)
    assert w.register(1, incarnation=2) > 0


@pytest.mark.parametrize(
    ("directories", "problem"),
    [
        ([], "No directories specified in request"),
        ([b"a" * 16, b"a" * 16], "Duplicate directory specified."),
        ([bytes(15) + b"\x01"], "Reserved directory ID in request"),
        ([directory(2)], "Broker 2 is already registered with directory qgIAAAAAAAAAAAAAAAAAAA"),
    ],
)
def test_directories_that_cannot_be_are_refused(directories: list[bytes], problem: str) -> None:
    w = World()
    w.add_brokers(2)
    request = BrokerRegistrationRequest(1, CLUSTER, b"i" * 16, log_dirs=directories)
    request.features = [Feature(name, low, high) for name, (low, high) in SUPPORTED_FEATURES.items()]
    with pytest.raises(KafkaError) as failure:
        w.controller.register_broker(request, 0)
    assert (failure.value.code, failure.value.message) == (errors.INVALID_REGISTRATION, problem)


def test_a_broker_that_wants_to_be_fenced_and_to_stop_goes_at_once() -> None:
    w = World()
    w.add_brokers(1, 2)
    w.create("t", assignments=[[1, 2]])
    request = BrokerHeartbeatRequest(1, w.image.brokers[1].broker_epoch, w.image.offset, True, True)
    answer = w.run(w.controller.broker_heartbeat(request, w.now_ms))
    assert (answer.is_fenced, answer.should_shut_down) == (True, True)
    assert w.partition("t").leader == 2


def test_a_broker_that_stops_waits_for_those_the_controller_has_not_heard_of() -> None:
    """A new controller knows of nobody how far it is."""
    w = World()
    w.add_brokers(1, 2)
    w.create("t", assignments=[[1, 2]])
    w.controller.state.contacts.clear()
    w.heartbeat(1, want_shut_down=True)
    assert not w.heartbeat(1, want_shut_down=True).should_shut_down
    w.heartbeat(2)
    assert w.heartbeat(1, want_shut_down=True).should_shut_down


def test_an_early_fenced_broker_comes_back_when_it_has_caught_up() -> None:
    w = World()
    w.add_brokers(1, 2)
    w.create("t", assignments=[[1, 2]])
    epoch = w.image.brokers[1].broker_epoch
    assert not w.run(w.controller.fence_broker(1, epoch)), "its connection is there, and so are its heartbeats"
    w.controller.brokers.connection_lost(1, epoch)
    assert w.run(w.controller.fence_broker(1, epoch))
    assert (w.partition("t").leader, w.partition("t").isr) == (2, (2,))
    assert not w.run(w.controller.fence_broker(1, epoch)), "it is fenced already"
    assert w.heartbeat(1, offset=epoch - 1).is_fenced
    assert not w.heartbeat(1).is_fenced
    w.controller.brokers.connection_lost(1, epoch)
    assert not w.run(w.controller.fence_broker(1, epoch - 1)), "an earlier life of it"


def test_unregistering_a_broker_takes_its_eligibility_too() -> None:
    """Should it come back, nobody will know how it stopped."""
    w = World()
    w.add_brokers(1, 2, 3)
    w.create("t", assignments=[[1, 2, 3]], configs={"min.insync.replicas": "3"})
    w.now_ms += 9_000
    w.heartbeat(1)
    w.heartbeat(3)
    w.run(w.controller.fence_stale_brokers(w.now_ms))
    assert w.partition("t").elr == (2,)
    w.run(w.controller.unregister_broker(UnregisterBrokerRequest(2), 0))
    assert w.partition("t").elr == ()


def test_a_broker_in_controlled_shutdown_gets_no_new_replicas() -> None:
    w = World()
    w.add_brokers(1, 2, 3)
    w.create("t", assignments=[[3]])
    w.heartbeat(3, want_shut_down=True)
    assert w.create("u", 6, 3).error_code == errors.INVALID_REPLICATION_FACTOR
    assert w.create("u", 6, 2).error_code == 0
    assert all(3 not in partition.replicas for partition in w.image.topics_by_name["u"].partitions.values())


def test_a_controller_registers_itself_with_its_listeners() -> None:
    w = World()
    request = ControllerRegistrationRequest(3, b"c" * 16)
    request.listeners = [ControllerListener("CONTROLLER", "host", 9093, 0)]
    w.run(w.controller.register_controller(request, 0))
    assert w.image.controllers[3].end_points["CONTROLLER"].port == 9093
