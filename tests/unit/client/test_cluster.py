"""First contact, metadata, leaders, and trying again."""

from __future__ import annotations

import pytest

from moldau.client import config as settings
from moldau.client.admin import Admin, NewTopic
from moldau.client.connection.cluster import Cluster
from moldau.client.consumer import Consumer
from moldau.client.errors import (
    AdvertisedAddressError,
    ClientError,
    NetworkError,
    NoBrokerError,
    ProtocolError,
    RequestTimeoutError,
    UnknownTopicOrPartitionError,
)
from moldau.client.offsets import EARLIEST, LATEST, list_offsets
from moldau.client.producer import Producer
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.protocol.errors import COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, LEADER_NOT_AVAILABLE
from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.list_offsets_request import ListOffsetsRequest
from moldau.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.primitives import Message
from tests.pace import patience_ms, wait_until
from tests.unit.client.fake_network import DISCONNECT, HOME, SILENCE, FakeNetwork, ScriptedBroker, metadata

AWAY = ("other", 9093)


def new_cluster(network: FakeNetwork, bootstrap: str = "broker:9092", **more: object) -> Cluster:
    config = settings.ClientConfig(settings.ADMIN, {"bootstrap.servers": bootstrap})
    return Cluster(config, network, **more)  # type: ignore[arg-type]


def one_broker(topics: dict[str, int | list[int]]) -> tuple[FakeNetwork, ScriptedBroker]:
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata(topics))
    return FakeNetwork({HOME: broker}), broker


def test_metadata_tells_brokers_topics_and_leaders() -> None:
    network, _ = one_broker({"orders": [1, 1]})
    cluster = new_cluster(network)
    cluster.refresh(None, 1000)
    assert cluster.cluster_id == "test-cluster" and list(cluster.brokers) == [1]
    leader = cluster.leader(TopicPartition("orders", 1))
    assert leader is not None and (leader.leader, leader.leader_epoch) == (1, 7)
    assert cluster.leader(TopicPartition("orders", 2)) is None


def test_the_next_bootstrap_server_is_asked_when_the_first_is_down() -> None:
    network, _ = one_broker({})
    cluster = new_cluster(network, "nowhere:1,broker:9092")
    cluster.refresh(None, 1000)
    assert list(cluster.brokers) == [1]


def test_no_broker_at_all_fails_at_once_when_first_contact_may_take_no_time() -> None:
    network = FakeNetwork({})
    cluster = new_cluster(network, first_contact_ms=0)
    with pytest.raises(NoBrokerError, match="broker:9092: Connection refused"):
        cluster.refresh(None, 60_000)
    assert network.clock_ms < 2_000


def test_no_broker_at_all_is_tried_again_until_the_timeout_by_default() -> None:
    network = FakeNetwork({})
    with pytest.raises(NoBrokerError):
        new_cluster(network).refresh(None, 60_000)
    assert network.clock_ms > 50_000


def test_a_broker_that_comes_up_late_is_found() -> None:
    network, broker = one_broker({})
    broker.up = False
    tries = []
    real_poll = network.poll

    def poll(timeout_ms: int) -> None:
        tries.append(timeout_ms)
        broker.up = len(tries) > 5
        real_poll(timeout_ms)

    network.poll = poll  # type: ignore[method-assign]
    cluster = new_cluster(network)
    cluster.refresh(None, 60_000)
    assert list(cluster.brokers) == [1]


def test_something_that_is_not_kafka_is_not_asked_again() -> None:
    network, broker = one_broker({})
    broker.answer = lambda data: b"HTTP/1.1 400 Bad Request"  # type: ignore[method-assign]
    with pytest.raises(ProtocolError):
        new_cluster(network).refresh(None, 60_000)
    assert network.clock_ms < 2_000


def test_a_topic_that_does_not_exist_is_believed_to_be_missing_soon() -> None:
    network, broker = one_broker({})
    with pytest.raises(UnknownTopicOrPartitionError, match="Topic nope does not exist"):
        new_cluster(network).topic("nope", 60_000)
    assert network.clock_ms < 2_000
    asked = [request for _, request in broker.seen if isinstance(request, MetadataRequest)]
    assert len(asked) == 3 and not any(request.allow_auto_topic_creation for request in asked)


def test_a_topic_that_appears_while_it_is_created_is_waited_for() -> None:
    topics: dict[str, int | list[int]] = {"new": 3}
    network, broker = one_broker(topics)
    answer = metadata(topics)
    count = 0

    def handle(request: Message, version: int) -> object:
        nonlocal count
        count += 1
        if count > 8:
            topics["new"] = [1]
        return answer(request, version)

    broker.on(MetadataRequest, handle)
    assert list(new_cluster(network, auto_create_topics=True).topic("new", 60_000).partitions) == [0]


def test_a_broker_that_never_answers_costs_the_request_timeout_and_not_more() -> None:
    network, broker = one_broker({})
    broker.on(MetadataRequest, lambda request, version: SILENCE)
    with pytest.raises(ClientError):
        new_cluster(network).refresh(None, 5_000)
    assert 5_000 <= network.clock_ms - 1_000 < 7_000


def offsets_handler(errors: list[int]) -> object:
    def handle(request: Message, version: int) -> object:
        assert isinstance(request, ListOffsetsRequest)
        error = errors.pop(0) if errors else 0
        if error == -99:
            return DISCONNECT
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=row.partition_index,
                            error_code=error,
                            offset=0 if row.timestamp == EARLIEST else 42,
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return handle


@pytest.mark.parametrize("trouble", [[6], [6, 5, 75], [-99, 3], [78] * 6])
def test_leaders_are_asked_again_after_retriable_errors(trouble: list[int]) -> None:
    network, broker = one_broker({"orders": [1, 1]})
    broker.on(ListOffsetsRequest, offsets_handler(trouble))  # type: ignore[arg-type]
    both = {TopicPartition("orders", 0): EARLIEST, TopicPartition("orders", 1): LATEST}
    found = list_offsets(new_cluster(network), both, 60_000)
    assert [outcome.get().offset for _, outcome in sorted(found.items())] == [0, 42]


def test_an_error_of_one_partition_does_not_hide_the_other() -> None:
    network, broker = one_broker({"orders": [1]})
    broker.on(ListOffsetsRequest, offsets_handler([]))  # type: ignore[arg-type]
    found = list_offsets(
        new_cluster(network), {TopicPartition("orders", 0): LATEST, TopicPartition("orders", 9): LATEST}, 60_000
    )
    assert found[TopicPartition("orders", 0)].get().offset == 42
    error = found[TopicPartition("orders", 9)].error
    assert error is not None and "no partition 9" in error.message


def test_a_final_error_is_not_tried_again() -> None:
    network, broker = one_broker({"orders": [1]})
    broker.on(ListOffsetsRequest, offsets_handler([29] * 9))  # type: ignore[arg-type]
    found = list_offsets(new_cluster(network), {TopicPartition("orders", 0): LATEST}, 60_000)
    error = found[TopicPartition("orders", 0)].error
    assert error is not None and error.name == "TOPIC_AUTHORIZATION_FAILED" and not error.retriable
    assert sum(isinstance(request, ListOffsetsRequest) for _, request in broker.seen) == 1


def test_brokers_that_stay_away_are_told_in_the_log_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever waits for records would otherwise wait without a word."""
    network = FakeNetwork({})
    cluster = new_cluster(network)
    with pytest.raises(NoBrokerError):
        cluster.refresh(None, 1_500)
    assert not caplog.records, "a broker that restarts is away for a moment"
    with pytest.raises(NoBrokerError):
        cluster.refresh(None, 20_000)
    (told,) = caplog.records
    assert told.levelname == "WARNING"
    assert "No broker can be reached" in told.getMessage() and "Connection refused" in told.getMessage()


def test_an_address_that_the_cluster_told_is_named_as_such() -> None:
    """The user gave another one, which was right."""
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata({}, {1: ("kafka.example.invalid", 9092)}))
    network = FakeNetwork({HOME: broker})
    cluster = new_cluster(network)
    cluster.refresh(None, 1000)
    with pytest.raises(NetworkError, match=r"told us for broker 1: is its advertised\.listeners right\?"):
        cluster.ask_broker(MetadataRequest(), MetadataResponse, 1000, 1)


WRONG = ("kafka.example.invalid", 9092)


def advertising_wrongly(real_time: bool = False) -> FakeNetwork:
    """One broker that answers where it was asked for, and tells an address that stands for nothing."""
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata({"orders": [1]}, {1: WRONG}))
    broker.on(InitProducerIdRequest, lambda request, version: InitProducerIdResponse(producer_id=5, producer_epoch=0))
    broker.on(
        FindCoordinatorRequest,
        lambda request, version: FindCoordinatorResponse(
            coordinators=[Coordinator(key="g", node_id=1, host=WRONG[0], port=WRONG[1])]
        ),
    )
    network = FakeNetwork({HOME: broker}, real_time)
    network.unresolved.add(WRONG[0])
    return network


def test_a_producer_tells_of_a_wrong_advertised_address(caplog: pytest.LogCaptureFixture) -> None:
    given = {"delivery.timeout.ms": 1500, "request.timeout.ms": 1000}
    with Producer("broker:9092", config=wired(given, network=advertising_wrongly(real_time=True))) as producer:
        error = producer.send("orders", b"v").exception(patience_ms(60_000))
    assert isinstance(error, RequestTimeoutError)
    assert "kafka.example.invalid" in error.message and "advertised.listeners" in error.message
    patient = Producer("broker:9092", config=wired(network=advertising_wrongly(real_time=True)))
    patient.send("orders", b"v")
    wait_until(lambda: caplog.records, 60, "nobody is told")
    patient.close(0)
    (told,) = caplog.records
    assert told.levelname == "WARNING" and "No connection to broker 1" in told.getMessage()
    assert "advertised.listeners" in told.getMessage()


def test_whoever_does_not_want_to_wait_is_told_of_a_wrong_advertised_address_soon() -> None:
    """As the command line: long before the record would be given up."""
    network = advertising_wrongly(real_time=True)
    with Producer("broker:9092", config=wired(network=network, first_contact_ms=0)) as producer:
        error = producer.send("orders", b"v").exception(patience_ms(60_000))
    assert isinstance(error, AdvertisedAddressError) and not error.retriable
    network = advertising_wrongly()
    with Admin("broker:9092", config=wired(network=network, first_contact_ms=0)) as admin:
        with pytest.raises(AdvertisedAddressError, match=r"advertised\.listeners"):
            admin.create_topics([NewTopic("x")])
        found = admin.list_groups()
        assert "advertised.listeners" in found.errors[1].message
    assert network.clock_ms < 20_000, "the default timeout is a minute for each"
    with Consumer("broker:9092", config=wired(network=advertising_wrongly(), first_contact_ms=0)) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        with pytest.raises(AdvertisedAddressError, match=r"advertised\.listeners"):
            consumer.poll(60_000)


@pytest.mark.parametrize("more", [{}, {"group_id": "g"}])
def test_a_consumer_tells_of_a_wrong_advertised_address(more: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    with Consumer("broker:9092", config=wired(network=advertising_wrongly()), **more) as consumer:
        if more:
            consumer.subscribe("orders")
        else:
            consumer.assign([TopicPartition("orders", 0)])
        assert consumer.poll(10_000) == []
        assert len([record for record in caplog.records if "advertised.listeners" in record.getMessage()]) == 1


def test_a_broker_that_was_reached_before_is_waited_for() -> None:
    """Its address is right: the broker is away."""
    network = advertising_wrongly()
    there = network.brokers[WRONG] = ScriptedBroker()
    there.on(MetadataRequest, metadata({}, {1: WRONG}))
    cluster = new_cluster(network, first_contact_ms=0)
    cluster.refresh(None, 1000)
    for _ in range(2):
        cluster.ask_broker(MetadataRequest(), MetadataResponse, 1000, 1)
    del network.brokers[WRONG]
    network.drop(WRONG)
    with pytest.raises(AdvertisedAddressError, match="cannot be resolved") as caught:
        cluster.call(MetadataRequest(), MetadataResponse, 20_000, 1)
    assert caught.value.retriable and network.clock_ms > 10_000


def test_bootstrap_servers_whose_names_stand_for_nothing_are_not_tried_for_long() -> None:
    network = FakeNetwork({})
    network.unresolved.add("broker")
    with pytest.raises(NoBrokerError, match="cannot be resolved"):
        new_cluster(network).refresh(None, 60_000)
    assert network.clock_ms < 10_000


def test_a_consumer_without_a_broker_says_so_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    network = FakeNetwork({})
    with Consumer("broker:9092", config=wired(network=network)) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        consumer.poll(20_000)
    (told,) = caplog.records
    assert told.levelname == "WARNING" and "No broker can be reached" in told.getMessage()


def test_a_topic_that_has_no_leaders_at_all_yet_is_asked_for_again() -> None:
    network, _ = one_broker({"new": LEADER_NOT_AVAILABLE})
    cluster = new_cluster(network)
    cluster.refresh(["new"], 1000)
    assert "new" not in cluster.topics
    error = cluster.topic_error("new")
    assert error is not None and error.retriable


def cut_off_and_well() -> tuple[FakeNetwork, ScriptedBroker, ScriptedBroker]:
    """The first contact is cut off from the controller, and says so for ever; another broker is well."""
    cut_off, well = ScriptedBroker(), ScriptedBroker()
    for broker in (cut_off, well):
        broker.on(MetadataRequest, metadata({"orders": [2]}, {1: HOME, 2: AWAY}))
    refusal = [Coordinator(key="g", error_code=COORDINATOR_NOT_AVAILABLE)]
    found = [Coordinator(key="g", node_id=2, host=AWAY[0], port=AWAY[1])]
    cut_off.on(FindCoordinatorRequest, lambda request, version: FindCoordinatorResponse(coordinators=refusal))
    well.on(FindCoordinatorRequest, lambda request, version: FindCoordinatorResponse(coordinators=found))
    return FakeNetwork({HOME: cut_off, AWAY: well}), cut_off, well


def test_who_refuses_is_not_the_only_one_that_is_asked() -> None:
    """A client that is connected to one broker alone would ask it, and be refused, for ever."""
    network, cut_off, well = cut_off_and_well()
    cluster = new_cluster(network)
    cluster.refresh(None, 1000)
    request = InitProducerIdRequest(transaction_timeout_ms=1000)
    refusing = InitProducerIdResponse(error_code=COORDINATOR_LOAD_IN_PROGRESS, producer_id=-1)
    cut_off.on(InitProducerIdRequest, lambda request, version: refusing)
    well.on(InitProducerIdRequest, lambda request, version: InitProducerIdResponse(producer_id=5))
    ids = []
    for _ in range(4):
        cluster.start_call(
            request,
            InitProducerIdResponse,
            1000,
            lambda response, error: ids.append(None if response is None else response.producer_id),
            refuses=lambda response: response.error_code != 0,
        )
        network.poll(1000)
    assert ids == [5, 5, 5, 5]
    asked = [isinstance(request, InitProducerIdRequest) for _, request in cut_off.seen]
    assert any(asked), "it refused"


def test_when_all_refuse_the_refusal_is_the_response() -> None:
    network, _, well = cut_off_and_well()
    well.handlers[FindCoordinatorRequest] = lambda request, version: FindCoordinatorResponse(
        coordinators=[Coordinator(key="g", error_code=COORDINATOR_NOT_AVAILABLE)]
    )
    cluster = new_cluster(network)
    cluster.refresh(None, 1000)
    response = cluster.call(
        FindCoordinatorRequest(coordinator_keys=["g"]), FindCoordinatorResponse, 1000, refuses=lambda response: True
    )
    assert response.coordinators[0].error_code == COORDINATOR_NOT_AVAILABLE
    assert sum(isinstance(request, FindCoordinatorRequest) for _, request in well.seen) == 1


def test_a_producer_gets_its_id_from_another_broker() -> None:
    """The first contact has no producer ids and no way to the controller, and the producer knows nobody else yet."""
    network, cut_off, well = cut_off_and_well()
    network = FakeNetwork({HOME: cut_off, AWAY: well}, real_time=True)
    refusing = InitProducerIdResponse(error_code=COORDINATOR_LOAD_IN_PROGRESS, producer_id=-1)
    cut_off.on(InitProducerIdRequest, lambda request, version: refusing)
    well.on(InitProducerIdRequest, lambda request, version: InitProducerIdResponse(producer_id=5))
    producer = Producer("broker:9092", config=wired(network=network))
    producer.send("orders", b"v")
    wait_until(lambda: any(isinstance(request, ProduceRequest) for _, request in well.seen), 20, "nothing was produced")
    producer.close(0)


def test_a_coordinator_is_asked_for_elsewhere() -> None:
    network, _, well = cut_off_and_well()
    admin = Admin("broker:9092", config=wired({"retry.backoff.ms": 1}, network=network))
    well.on(
        DescribeGroupsRequest,
        lambda request, version: DescribeGroupsResponse(
            groups=[DescribedGroup(group_id="g", group_state="Empty", protocol_type="consumer")]
        ),
    )
    assert admin.describe_classic_groups(["g"])["g"].get().state == "Empty"
    assert any(isinstance(request, FindCoordinatorRequest) for _, request in well.seen)
