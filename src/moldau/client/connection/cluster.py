"""The cluster as a client sees it: first contact, cached metadata, leaders, and calls that are tried again.

Everything here blocks by polling the network, so that calls of other parts go on meanwhile. An error that a broker
gives to one item of a request is the caller's to handle; what is handled here is a broker that cannot be reached and
metadata that turned out to be old.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from moldau.client.config import ClientConfig, parse_addresses
from moldau.client.connection.backoff import Backoff
from moldau.client.connection.transport import Address, Network, SocketNetwork, address_text
from moldau.client.connection.unreachable import NOT_RESOLVED, Unreachable
from moldau.client.connection.wire import Call
from moldau.client.errors import (
    ClientError,
    NetworkError,
    NoBrokerError,
    ProtocolError,
    RequestTimeoutError,
    error_for,
)
from moldau.client.metrics.meters import EVERY_API, NetworkMeter
from moldau.client.metrics.window import Window
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol.errors import LEADER_NOT_AVAILABLE, NONE, UNKNOWN_TOPIC_OR_PARTITION
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from moldau.protocol.primitives import Message

logger = logging.getLogger("moldau.client")

Response = TypeVar("Response", bound=Message)
T = TypeVar("T")

NO_LEADER = -1

# A topic that was just created may not be known to every broker yet, so its absence is believed the third time.
UNKNOWN_TOPIC_TRIES = 3

# The requests whose latency is that of a broker: Produce, Fetch, ShareFetch.
LATENCY_APIS = {"producer": 0, "consumer": 1, "share consumer": 78}

# Names of bootstrap servers that all stand for nothing are not tried for longer than this.
UNRESOLVED_PATIENCE_MS = 5_000


class Broker(NamedTuple):
    """A broker that clients can reach."""

    id: int
    host: str
    port: int
    rack: str | None

    @property
    def address(self) -> Address:
        return (self.host, self.port)


class PartitionMetadata(NamedTuple):
    """One partition as Metadata describes it."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    in_sync_replicas: list[int]
    offline_replicas: list[int]
    # KIP-966; told by DescribeTopicPartitions alone.
    eligible_leader_replicas: list[int] | None = None
    last_known_eligible_leader_replicas: list[int] | None = None


class TopicMetadata(NamedTuple):
    """One topic as Metadata or DescribeTopicPartitions describes it."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: dict[int, PartitionMetadata]
    # What the user may do, a bit for each AclOperation; None where that was not asked.
    authorized_operations: int | None = None


class Cluster:
    """Knows the brokers and the leaders; carries calls to them."""

    def __init__(
        self,
        config: ClientConfig,
        network: Network | None = None,
        auto_create_topics: bool = False,
        first_contact_ms: int | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """first_contact_ms: for how long the bootstrap servers are tried again while none can be reached; the
        default is the call's own timeout, as with Kafka's clients. 0 tries each of them once. With a generator as
        chance, whatever is left to chance can be repeated."""
        self._bootstrap = parse_addresses(config.get_text("bootstrap.servers"))
        self._request_timeout_ms = config.get_int("request.timeout.ms")
        self._metadata_age_max_ms = config.get_int("metadata.max.age.ms")
        self._rebootstrap = config.get_text("metadata.recovery.strategy") == "rebootstrap"
        self.auto_create_topics = auto_create_topics
        self._first_contact_ms = first_contact_ms
        draw = random.random if chance is None else chance.random
        self.backoff = Backoff(config.get_int("retry.backoff.ms"), config.get_int("retry.backoff.max.ms"), draw)
        self.network = network if network is not None else socket_network(config)
        self.meter = self.network.meter() or _new_meter(config, self.network.now_ms())
        # What each part of the client counts with.
        self.window = self.meter.window
        # When the last metadata came.
        self.metadata_ms = self.network.now_ms()
        self.brokers: dict[int, Broker] = {}
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.topics: dict[str, TopicMetadata] = {}
        # Grows with everything that is learned of topics and brokers.
        self.metadata_version = 0
        self._topic_errors: dict[str, ClientError] = {}
        self._topic_ids: dict[bytes, str] = {}
        self._refreshed_ms: dict[str, int] = {}
        self._turn = int(draw() * (1 << 16))
        self._unreachable = Unreachable(self._bootstrap, patient=first_contact_ms is None)

    @property
    def bootstrap_addresses(self) -> list[Address]:
        return self._bootstrap

    def in_flight_count(self) -> int:
        """How many requests have no response yet, to all brokers together."""
        return sum(self.network.in_flight_count(address) for address in list(self.meter.nodes))

    def close(self) -> None:
        self.network.close()

    # Calls

    def call(
        self,
        request: Message,
        response_class: type[Response],
        timeout_ms: int,
        broker_id: int | None = None,
        highest_version: int | None = None,
        tries: int | None = None,
        refuses: Callable[[Response], bool] | None = None,
    ) -> Response:
        """Sends to one broker (None: any) and waits for the response, trying again while no broker can be reached.

        Where any broker may be asked, the next one is asked after a response that refuses, each of them once."""
        deadline_ms = self.network.now_ms() + timeout_ms
        failures = 0
        while True:
            try:
                return self._call_once(request, response_class, deadline_ms, broker_id, highest_version, refuses)
            except (NetworkError, RequestTimeoutError) as error:
                failures += 1
                delay_ms = self.backoff.delay_ms(failures)
                patience_ms = timeout_ms
                if isinstance(error, NoBrokerError) and not self.brokers:
                    patience_ms = self._first_patience_ms(error, timeout_ms)
                if isinstance(error, NoBrokerError):
                    self._unreachable.on_nobody(error, self.network.now_ms())
                if failures == tries or not error.retriable:
                    raise
                if self.network.now_ms() + delay_ms >= deadline_ms - timeout_ms + patience_ms:
                    raise
                logger.debug("%s Trying again in %d ms.", error, delay_ms)
                self.sleep(delay_ms)

    def _first_patience_ms(self, error: NoBrokerError, timeout_ms: int) -> int:
        """For how long to wait for the first broker: what the user said, and not long for names that are wrong."""
        if self._first_contact_ms is not None:
            return self._first_contact_ms
        return min(timeout_ms, UNRESOLVED_PATIENCE_MS) if error.unresolved else timeout_ms

    def submit(self, address: Address, call: Call[Response]) -> None:
        """Puts the call on the way to a broker; an error of it says whose address that is."""
        if not self._unreachable.is_known_good(address) and self.network.is_ready(address):
            self._unreachable.on_connected(address)
        call.explain = partial(self._explained, address)
        self.network.submit(address, call)

    def _explained(self, address: Address, error: ClientError) -> ClientError:
        plain = (address[0], address[1])
        told = next((broker.id for broker in self.brokers.values() if broker.address == plain), None)
        return self._unreachable.on_failure(plain, told, error, self.network.now_ms())

    def ask_broker(
        self,
        request: Message,
        response_class: type[Response],
        timeout_ms: int,
        broker_id: int,
        highest_version: int | None = None,
    ) -> Response:
        """Sends to one broker and waits for the response, once."""
        deadline_ms = self.network.now_ms() + timeout_ms
        return self._call_once(request, response_class, deadline_ms, broker_id, highest_version)

    def _call_once(
        self,
        request: Message,
        response_class: type[Response],
        deadline_ms: int,
        broker_id: int | None,
        highest_version: int | None,
        refuses: Callable[[Response], bool] | None = None,
    ) -> Response:
        if broker_id is not None:
            address = self.broker_address(broker_id)
            return self._wait(Call(request, response_class, self._timeout(deadline_ms), highest_version), address)
        problems: list[ClientError] = []
        refusal: Response | None = None
        for address in self._addresses():
            if refusal is not None and not self._is_known(address):
                break
            call = Call(request, response_class, self._timeout(deadline_ms), highest_version)
            try:
                response = self._wait(call, address)
                if refuses is None or not refuses(response):
                    return response
                refusal = response
            except (NetworkError, RequestTimeoutError, ProtocolError) as error:
                problems.append(error)
            if self.network.now_ms() >= deadline_ms:
                break
        if refusal is not None:
            return refusal
        if problems and all(isinstance(problem, ProtocolError) for problem in problems):
            raise problems[0]
        raise _nobody(problems)

    def _wait(self, call: Call[Response], address: Address) -> Response:
        """The network ends calls that were sent; one that still waits for a connection is given up here."""
        deadline_ms = self.network.now_ms() + call.timeout_ms
        self.submit(address, call)
        while not call.done:
            remaining_ms = deadline_ms - self.network.now_ms()
            if remaining_ms < 0:
                call.finish(
                    None, RequestTimeoutError(f"The broker at {address_text(address)} did not respond in time.")
                )
            else:
                self.network.poll(remaining_ms)
        response = call.response()
        self._unreachable.on_response()
        return response

    def _timeout(self, deadline_ms: int) -> int:
        return max(1, min(self._request_timeout_ms, deadline_ms - self.network.now_ms()))

    def _addresses(self) -> list[Address]:
        """Where any broker may be asked: the known brokers in turn, then the bootstrap servers."""
        known = [broker.address for broker in self.brokers.values()]
        if known:
            self._turn = (self._turn + 1) % len(known)
            known = known[self._turn :] + known[: self._turn]
            # First those that responded before: one that hangs would keep the others from being asked.
            known.sort(key=lambda address: not self.network.is_ready(address))
        if known and not self._rebootstrap:
            return known
        return known + [address for address in self._bootstrap if address not in known]

    def _is_known(self, address: Address) -> bool:
        """Whether metadata, where there is any yet, names it: bootstrap servers are other names of the same brokers."""
        return not self.brokers or any(broker.address == address for broker in self.brokers.values())

    def start_call(
        self,
        request: Message,
        response_class: type[Response],
        timeout_ms: int,
        when_done: Callable[[Response | None, ClientError | None], None],
        highest_version: int | None = None,
        refuses: Callable[[Response], bool] | None = None,
    ) -> None:
        """Sends to any broker without waiting: when_done(response, None) once, or (None, error) when none responded.

        After a response that refuses the next broker is asked, each of them once: one that is cut off from the
        controller may be the only one that the client is connected to, and would refuse forever."""
        addresses = self._addresses()
        problems: list[ClientError] = []
        refusals: list[Response] = []

        def ask_next() -> None:
            if refusals:
                addresses[:] = [address for address in addresses if self._is_known(address)]
            if not addresses:
                if refusals:
                    when_done(refusals[-1], None)
                elif all(isinstance(problem, ProtocolError) for problem in problems):
                    when_done(None, problems[0])
                else:
                    error = _nobody(problems)
                    self._unreachable.on_nobody(error, self.network.now_ms())
                    when_done(None, error)
                return
            call = Call(request, response_class, timeout_ms, highest_version, True, on_done)
            self.submit(addresses.pop(0), call)

        def on_done(call: Call[Response]) -> None:
            if call.error is None:
                self._unreachable.on_response()
                response = call.response()
                if refuses is not None and refuses(response):
                    refusals.append(response)
                    ask_next()
                else:
                    when_done(response, None)
            elif isinstance(call.error, NetworkError | RequestTimeoutError | ProtocolError):
                problems.append(call.error)
                ask_next()
            else:
                when_done(None, call.error)

        ask_next()

    def start_refresh(
        self, names: Sequence[str], timeout_ms: int, when_done: Callable[[ClientError | None], None]
    ) -> None:
        """Like refresh(), without waiting."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=self.auto_create_topics,
        )

        def on_done(response: MetadataResponse | None, error: ClientError | None) -> None:
            if response is not None:
                self.replay_metadata(response, names)
            when_done(error)

        self.start_call(request, MetadataResponse, timeout_ms, on_done)

    def learn_broker(self, broker_id: int, host: str, port: int, rack: str | None) -> None:
        """A broker that a response named in passing (KIP-951)."""
        self.brokers[broker_id] = Broker(broker_id, host, port, rack)

    def learn_leader(self, partition: TopicPartition, leader: int, leader_epoch: int) -> bool:
        """A leader that a response named in passing (KIP-951); True if that is news and the broker is known."""
        topic = self.topics.get(partition.topic)
        found = None if topic is None else topic.partitions.get(partition.partition)
        if topic is None or found is None or leader not in self.brokers or leader_epoch <= found.leader_epoch:
            return False
        topic.partitions[partition.partition] = found._replace(leader=leader, leader_epoch=leader_epoch)
        return True

    def broker_address(self, broker_id: int) -> Address:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise NetworkError(f"Broker {broker_id} is not in the cluster's metadata.")
        return broker.address

    def sleep(self, duration_ms: int) -> None:
        """Waits while the network goes on."""
        until_ms = self.network.now_ms() + duration_ms
        while (remaining := until_ms - self.network.now_ms()) > 0:
            self.network.poll(remaining)

    # Metadata

    def refresh(
        self,
        topics: Iterable[str] | None,
        timeout_ms: int,
        auto_create: bool | None = None,
        tries: int | None = None,
    ) -> None:
        """Asks any broker for the brokers and for these topics (None: all, empty: none)."""
        names = None if topics is None else list(topics)
        asked = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(
            topics=asked,
            allow_auto_topic_creation=self.auto_create_topics if auto_create is None else auto_create,
        )
        self.replay_metadata(self.call(request, MetadataResponse, timeout_ms, tries=tries), names)

    def replay_metadata(self, response: MetadataResponse, asked: Sequence[str] | None) -> None:
        """Takes over what a Metadata response says; asked names that it leaves out are forgotten."""
        self.metadata_version += 1
        if response.brokers:
            self.brokers = {row.node_id: Broker(row.node_id, row.host, row.port, row.rack) for row in response.brokers}
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        now_ms = self.metadata_ms = self.network.now_ms()
        for name in list(self.topics) if asked is None else asked:
            self.topics.pop(name, None)
        for row in response.topics:
            if row.name is not None:
                self._replay_topic(row.name, row, now_ms)

    def _replay_topic(self, name: str, row: MetadataResponseTopic, now_ms: int) -> None:
        self._refreshed_ms[name] = now_ms
        self._topic_errors.pop(name, None)
        # Some partitions without a leader are told with the others; a topic without any is not known yet.
        if row.error_code not in (NONE, LEADER_NOT_AVAILABLE) or (row.error_code and not row.partitions):
            self._topic_errors[name] = error_for(row.error_code, _topic_sentence(name, row.error_code))
            return
        partitions = {
            item.partition_index: PartitionMetadata(
                name,
                item.partition_index,
                item.leader_id,
                item.leader_epoch,
                list(item.replica_nodes),
                list(item.isr_nodes),
                list(item.offline_replicas),
            )
            for item in row.partitions
        }
        self.topics[name] = TopicMetadata(name, row.topic_id, row.is_internal, partitions)
        self._topic_ids[row.topic_id] = name

    def forget_topic(self, name: str) -> None:
        """What is known of a topic turned out to be wrong: it is as if it had never been asked for."""
        self.topics.pop(name, None)

    def topic_error(self, name: str) -> ClientError | None:
        """What the last metadata said against the topic."""
        return self._topic_errors.get(name)

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._topic_ids.get(topic_id)

    def is_old(self, name: str) -> bool:
        """True when the topic is not known, or not asked for since metadata.max.age.ms."""
        refreshed_ms = self._refreshed_ms.get(name)
        if refreshed_ms is None or name not in self.topics:
            return True
        return self.network.now_ms() - refreshed_ms >= self._metadata_age_max_ms

    def leader(self, partition: TopicPartition) -> PartitionMetadata | None:
        """The partition with its leader as far as known; None without a leader that can be reached."""
        topic = self.topics.get(partition.topic)
        found = None if topic is None else topic.partitions.get(partition.partition)
        if found is None or found.leader == NO_LEADER or found.leader not in self.brokers:
            return None
        return found

    def topic(self, name: str, timeout_ms: int, auto_create: bool | None = None) -> TopicMetadata:
        """The topic's metadata, fresh; waits through retriable errors other than a topic that does not exist."""
        deadline_ms = self.network.now_ms() + timeout_ms
        create = self.auto_create_topics if auto_create is None else auto_create
        failures = 0
        while True:
            self.refresh([name], max(1, deadline_ms - self.network.now_ms()), auto_create)
            found = self.topics.get(name)
            if found is not None and found.partitions:
                return found
            error = self._topic_errors.get(name)
            failures += 1
            patient = error is None or _may_retry(error, create or failures < UNKNOWN_TOPIC_TRIES)
            delay_ms = self.backoff.delay_ms(failures)
            if not patient or self.network.now_ms() + delay_ms >= deadline_ms:
                raise error or error_for(LEADER_NOT_AVAILABLE, f"Topic {name} has no leader yet.")
            self.sleep(delay_ms)

    # Requests that go to leaders

    def ask_leaders(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[int, list[TopicPartition], int], dict[TopicPartition, Outcome[T]]],
        timeout_ms: int,
    ) -> dict[TopicPartition, Outcome[T]]:
        """Asks each partition's leader through ask(broker_id, its partitions, timeout_ms), once per leader.

        Partitions whose outcome is a retriable error are asked again, after their metadata, until the timeout.
        """
        deadline_ms = self.network.now_ms() + timeout_ms
        outcomes: dict[TopicPartition, Outcome[T]] = {}
        missing = list(dict.fromkeys(partitions))
        failures = 0
        while missing:
            self.refresh(sorted({item.topic for item in missing}), max(1, deadline_ms - self.network.now_ms()))
            by_leader: dict[int, list[TopicPartition]] = {}
            for item in missing:
                found = self.leader(item)
                if found is None:
                    outcomes[item] = Outcome(error=self._no_leader(item))
                else:
                    by_leader.setdefault(found.leader, []).append(item)
            for broker_id, items in by_leader.items():
                outcomes.update(self._ask_one(ask, broker_id, items, max(1, deadline_ms - self.network.now_ms())))
            failures += 1
            patient = self.auto_create_topics or failures < UNKNOWN_TOPIC_TRIES
            missing = [item for item in missing if _may_retry(outcomes[item].error, patient)]
            delay_ms = self.backoff.delay_ms(failures)
            if missing and self.network.now_ms() + delay_ms >= deadline_ms:
                break
            if missing:
                self.sleep(delay_ms)
        return outcomes

    def _ask_one(
        self,
        ask: Callable[[int, list[TopicPartition], int], dict[TopicPartition, Outcome[T]]],
        broker_id: int,
        items: list[TopicPartition],
        timeout_ms: int,
    ) -> dict[TopicPartition, Outcome[T]]:
        try:
            return ask(broker_id, items, timeout_ms)
        except (NetworkError, RequestTimeoutError) as error:
            return {item: Outcome(error=error) for item in items}

    def _no_leader(self, partition: TopicPartition) -> ClientError:
        error = self._topic_errors.get(partition.topic)
        if error is not None:
            return error
        topic = self.topics.get(partition.topic)
        if topic is not None and partition.partition not in topic.partitions:
            count = len(topic.partitions)
            sentence = f"Topic {partition.topic} has {count} partitions, there is no partition {partition.partition}."
            return error_for(UNKNOWN_TOPIC_OR_PARTITION, sentence)
        return error_for(LEADER_NOT_AVAILABLE, f"Partition {partition} has no leader at the moment.")


def _may_retry(error: ClientError | None, topic_may_appear: bool) -> bool:
    if error is None or not error.retriable:
        return False
    return topic_may_appear or error.code != UNKNOWN_TOPIC_OR_PARTITION


def _topic_sentence(name: str, code: int) -> str | None:
    if code == UNKNOWN_TOPIC_OR_PARTITION:
        return f"Topic {name} does not exist."
    return None


def socket_network(config: ClientConfig) -> SocketNetwork:
    security = None
    if config.get_text("security.protocol") != "PLAINTEXT":
        from moldau.client.connection.security import read_security

        security = read_security(config)
    return SocketNetwork(
        config.get_text("client.id"),
        connect_timeout_ms=config.get_int("socket.connection.setup.timeout.ms"),
        request_timeout_ms=config.get_int("request.timeout.ms"),
        send_buffer_bytes=config.get_int("send.buffer.bytes"),
        receive_buffer_bytes=config.get_int("receive.buffer.bytes"),
        reconnect_backoff=Backoff(
            config.get_int("reconnect.backoff.ms"), config.get_int("reconnect.backoff.max.ms"), random.random
        ),
        idle_max_ms=config.get_int("connections.max.idle.ms"),
        connect_timeout_max_ms=config.get_int("socket.connection.setup.timeout.max.ms"),
        security=security,
        meter=_new_meter(config, time.monotonic_ns() // 1_000_000),
    )


def _new_meter(config: ClientConfig, now_ms: int) -> NetworkMeter:
    window = Window(now_ms, config.get_int("metrics.num.samples"), config.get_int("metrics.sample.window.ms"))
    return NetworkMeter(window, LATENCY_APIS.get(config.kind, EVERY_API))


def _nobody(problems: Sequence[ClientError]) -> NoBrokerError:
    unresolved = all(problem.message.startswith(NOT_RESOLVED) for problem in problems)
    return NoBrokerError(" ".join(dict.fromkeys(problem.message for problem in problems)), unresolved)
