"""Admin methods for producers and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import by_topic, checked_int, checked_name, checked_names, checked_partitions
from moldau.client.admin.routing import (
    CLIENT_SIDE,
    RETRY_COORDINATOR,
    RETRY_LEADER,
    TRANSACTION_COORDINATOR,
    Deadline,
    Listing,
    Question,
    Target,
    outcome,
)
from moldau.client.errors import ClientError
from moldau.client.produce.transactions import END_VERSION_1, INIT_TWO_PHASE_VERSION, TRANSACTION_VERSION
from moldau.client.results import Outcome, PreparedTransaction, TopicPartition
from moldau.protocol import errors as codes
from moldau.protocol.api_table import INIT_PRODUCER_ID
from moldau.protocol.integers import LONG_MAX

if TYPE_CHECKING:
    from moldau.protocol.messages.api_versions_response import ApiVersionsResponse
    from moldau.protocol.messages.describe_producers_response import DescribeProducersResponse
    from moldau.protocol.messages.describe_transactions_response import DescribeTransactionsResponse

# Long enough for the coordinator to take, and soon over: the fencer has no transaction of its own in mind.
FENCING_TIMEOUT_MS = 30_000


class ProducerState(NamedTuple):
    """One producer that a partition remembers; None: it has no coordinator, or no transaction is open."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


class TransactionDescription(NamedTuple):
    """A transactional id as its coordinator knows it."""

    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    partitions: list[TopicPartition]


class TransactionListing(NamedTuple):
    """One transactional id."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int


class AbortTransaction(NamedTuple):
    """A hanging transaction in one partition, as describe_producers() shows it."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int = 0


class HangingTransaction(NamedTuple):
    """A transaction that is open in a partition although its coordinator does not know of it (any more)."""

    partition: TopicPartition
    producer: ProducerState

    @property
    def aborted_by(self) -> AbortTransaction:
        """What abort_transaction() takes to end it."""
        state = self.producer
        return AbortTransaction(self.partition, state.producer_id, state.producer_epoch, state.coordinator_epoch or 0)


class FencedProducer(NamedTuple):
    """The producer id and epoch that a transactional id has after fencing."""

    producer_id: int
    producer_epoch: int


class TransactionAdmin(AdminCalls):
    """Producers and transactions."""

    def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        broker_id: int | None = None,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, Outcome[list[ProducerState]]]:
        """The active producers of each partition, as its leader or as one given broker knows them."""
        from moldau.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
        from moldau.protocol.messages.describe_producers_response import DescribeProducersResponse

        deadline = self._start(timeout_ms)
        wanted = checked_partitions(partitions)

        def request(items: list[TopicPartition]) -> DescribeProducersRequest:
            return DescribeProducersRequest(
                topics=[TopicRequest(name=name, partition_indexes=indexes) for name, indexes in by_topic(items).items()]
            )

        if broker_id is None:
            question = Question(request, DescribeProducersResponse, _read_producers, RETRY_LEADER)
            return self._ask_each(wanted, self._route_to_leaders, question, deadline)
        route = self._route_to_brokers(dict.fromkeys(wanted, checked_int(broker_id, "a broker id")))
        question = Question(request, DescribeProducersResponse, _read_producers, CLIENT_SIDE)
        return self._ask_each(wanted, route, question, deadline)

    def describe_transactions(
        self, transactional_ids: Iterable[str], timeout_ms: int | None = None
    ) -> dict[str, Outcome[TransactionDescription]]:
        """The state of each transactional id."""
        from moldau.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
        from moldau.protocol.messages.describe_transactions_response import DescribeTransactionsResponse

        deadline = self._start(timeout_ms)
        wanted = checked_names(transactional_ids, "transactional ids")

        def request(items: list[str]) -> DescribeTransactionsRequest:
            return DescribeTransactionsRequest(transactional_ids=items)

        question = Question(request, DescribeTransactionsResponse, _read_transactions, RETRY_COORDINATOR)
        route = self._route_to_coordinators(TRANSACTION_COORDINATOR)
        return self._ask_each(wanted, route, question, deadline)

    def list_transactions(
        self,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        running_longer_than_ms: int = -1,
        transactional_id_pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> Listing[TransactionListing]:
        """All transactional ids of the cluster that pass the filters."""
        from moldau.protocol.messages.list_transactions_request import ListTransactionsRequest
        from moldau.protocol.messages.list_transactions_response import ListTransactionsResponse

        deadline = self._start(timeout_ms)
        in_states = checked_names(states, "states")
        of_producers = [checked_int(item, "a producer id", 0, LONG_MAX) for item in producer_ids]
        checked_int(running_longer_than_ms, "running_longer_than_ms", -1, LONG_MAX)

        def request() -> ListTransactionsRequest:
            return ListTransactionsRequest(
                state_filters=in_states,
                producer_id_filters=of_producers,
                duration_filter=running_longer_than_ms,
                transactional_id_pattern=transactional_id_pattern,
            )

        responses = self._ask_all_brokers(
            request, ListTransactionsResponse, lambda response: response.error_code, deadline
        )
        found: list[TransactionListing] = []
        errors: dict[int, ClientError] = {}
        for broker, response in responses.items():
            if response.error is not None:
                errors[broker.id] = response.error
                continue
            found += [
                TransactionListing(row.transactional_id, row.producer_id, row.transaction_state, broker.id)
                for row in response.get().transaction_states
            ]
        return Listing(found, errors)

    def find_hanging_transactions(
        self,
        partitions: Iterable[TopicPartition],
        older_than_ms: int,
        now_ms: int,
        broker_id: int | None = None,
        timeout_ms: int | None = None,
    ) -> list[HangingTransaction]:
        """Open transactions whose last record is older than that and that no coordinator will ever end."""
        candidates = [
            HangingTransaction(partition, producer)
            for partition, outcome_ in self.describe_producers(partitions, broker_id, timeout_ms).items()
            for producer in outcome_.get()
            if producer.current_transaction_start_offset is not None
            and now_ms - producer.last_timestamp > older_than_ms
        ]
        if not candidates:
            return []
        ids = sorted({item.producer.producer_id for item in candidates})
        names = {item.producer_id: item.transactional_id for item in self._listed(ids, timeout_ms)}
        described = self.describe_transactions(sorted(set(names.values())), timeout_ms) if names else {}
        return [
            item
            for item in candidates
            if not _is_open(described.get(names.get(item.producer.producer_id, "")), item.partition)
        ]

    def _listed(self, producer_ids: list[int], timeout_ms: int | None) -> list[TransactionListing]:
        found = self.list_transactions(producer_ids=producer_ids, timeout_ms=timeout_ms)
        for error in found.errors.values():
            raise error  # a coordinator that was not heard may know the transaction: it must not be taken for hanging
        return list(found)

    def abort_transaction(self, hanging: AbortTransaction, timeout_ms: int | None = None) -> None:
        """Writes an abort marker straight into a partition, for a transaction that its coordinator has forgotten."""
        from moldau.protocol.messages import write_txn_markers_request as request_messages
        from moldau.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse

        deadline = self._start(timeout_ms)
        wanted = checked_partitions([hanging.partition])
        checked_int(hanging.producer_id, "a producer id", 0, LONG_MAX)
        checked_int(hanging.producer_epoch, "a producer epoch", 0, 0x7FFF)
        checked_int(hanging.coordinator_epoch, "a coordinator epoch", 0)

        def request(items: list[TopicPartition]) -> request_messages.WriteTxnMarkersRequest:
            topics = [
                request_messages.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                for name, indexes in by_topic(items).items()
            ]
            marker = request_messages.WritableTxnMarker(
                producer_id=hanging.producer_id,
                producer_epoch=hanging.producer_epoch,
                transaction_result=False,
                topics=topics,
                coordinator_epoch=hanging.coordinator_epoch,
            )
            return request_messages.WriteTxnMarkersRequest(markers=[marker])

        def read(
            response: WriteTxnMarkersResponse, target: Target[TopicPartition]
        ) -> dict[TopicPartition, Outcome[None]]:
            return {
                TopicPartition(topic.name, row.partition_index): outcome(row.error_code, None, None)
                for marker in response.markers
                for topic in marker.topics
                for row in topic.partitions
            }

        question = Question(request, WriteTxnMarkersResponse, read, RETRY_LEADER)
        self._ask_each(wanted, self._route_to_leaders, question, deadline)[wanted[0]].get()

    def fence_producers(
        self, transactional_ids: Iterable[str], timeout_ms: int | None = None
    ) -> dict[str, Outcome[FencedProducer]]:
        """Raises the epoch of each transactional id: what its producer has open is aborted, and it cannot go on."""
        from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
        from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse

        deadline = self._start(timeout_ms)
        wanted = checked_names(transactional_ids, "transactional ids")

        def request(items: list[str]) -> InitProducerIdRequest:
            return InitProducerIdRequest(transactional_id=items[0], transaction_timeout_ms=FENCING_TIMEOUT_MS)

        def read(response: InitProducerIdResponse, target: Target[str]) -> dict[str, Outcome[FencedProducer]]:
            fenced = FencedProducer(response.producer_id, response.producer_epoch)
            return target.all(outcome(response.error_code, None, fenced))

        retry = RETRY_COORDINATOR | {codes.CONCURRENT_TRANSACTIONS}
        question = Question(request, InitProducerIdResponse, read, retry, one_by_one=True)
        route = self._route_to_coordinators(TRANSACTION_COORDINATOR)
        return self._ask_each(wanted, route, question, deadline)

    def end_transactions(
        self, prepared: Mapping[str, PreparedTransaction], commit: bool, timeout_ms: int | None = None
    ) -> dict[str, Outcome[PreparedTransaction | None]]:
        """Commits or aborts transactions that their producers have handed over or prepared, by transactional id.

        Exactly these are ended: a later transaction of the same id is not. Doing it again gives the same result. What
        comes back is id and epoch of the next transaction, None where `transaction.version` is below 2.
        """
        from moldau.protocol.messages.end_txn_request import EndTxnRequest
        from moldau.protocol.messages.end_txn_response import EndTxnResponse

        deadline = self._start(timeout_ms)
        wanted = checked_names(prepared, "transactional ids")

        def request(items: list[str]) -> EndTxnRequest:
            producer = prepared[items[0]]
            return EndTxnRequest(items[0], producer.producer_id, producer.producer_epoch, commit)

        def read(response: EndTxnResponse, target: Target[str]) -> dict[str, Outcome[PreparedTransaction | None]]:
            following: PreparedTransaction | None = None
            if response.producer_id >= 0:
                following = PreparedTransaction(response.producer_id, response.producer_epoch)
            return target.all(outcome(response.error_code, None, following))

        retry = RETRY_COORDINATOR | {codes.CONCURRENT_TRANSACTIONS}
        levels = {row.name: row.max_version_level for row in self._versions(deadline).finalized_features}
        highest = None if levels.get(TRANSACTION_VERSION, 0) >= 2 else END_VERSION_1
        question = Question(request, EndTxnResponse, read, retry, highest, one_by_one=True)
        route = self._route_to_coordinators(TRANSACTION_COORDINATOR)
        return self._ask_each(wanted, route, question, deadline)

    def offers_two_phase_commit(self, timeout_ms: int | None = None) -> bool:
        """Whether brokers let transactions stay prepared for as long as it takes (KIP-939)."""
        rows = self._versions(self._start(timeout_ms)).api_keys
        return any(row.api_key == INIT_PRODUCER_ID and row.max_version >= INIT_TWO_PHASE_VERSION for row in rows)

    def _versions(self, deadline: Deadline) -> ApiVersionsResponse:
        from moldau import __version__
        from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
        from moldau.protocol.messages.api_versions_response import ApiVersionsResponse

        request = ApiVersionsRequest(client_software_name="moldau", client_software_version=__version__)
        return self._call_any(request, ApiVersionsResponse, deadline)

    def force_terminate_transaction(self, transactional_id: str, timeout_ms: int | None = None) -> None:
        """Ends the open transaction of a transactional id by fencing its producer (KIP-939)."""
        checked_name(transactional_id, "transactional ids")
        self.fence_producers([transactional_id], timeout_ms)[transactional_id].get()


def _is_open(known: Outcome[TransactionDescription] | None, partition: TopicPartition) -> bool:
    """Whether the coordinator knows a transaction with the partition, and so will end it."""
    if known is None or (known.error is not None and known.error.code == codes.TRANSACTIONAL_ID_NOT_FOUND):
        return False
    return partition in known.get().partitions


def _read_producers(
    response: DescribeProducersResponse, target: Target[TopicPartition]
) -> dict[TopicPartition, Outcome[list[ProducerState]]]:
    outcomes: dict[TopicPartition, Outcome[list[ProducerState]]] = {}
    for topic in response.topics:
        for row in topic.partitions:
            producers = [
                ProducerState(
                    item.producer_id,
                    item.producer_epoch,
                    item.last_sequence,
                    item.last_timestamp,
                    None if item.coordinator_epoch < 0 else item.coordinator_epoch,
                    None if item.current_txn_start_offset < 0 else item.current_txn_start_offset,
                )
                for item in row.active_producers
            ]
            partition = TopicPartition(topic.name, row.partition_index)
            outcomes[partition] = outcome(row.error_code, row.error_message, producers)
    return outcomes


def _read_transactions(
    response: DescribeTransactionsResponse, target: Target[str]
) -> dict[str, Outcome[TransactionDescription]]:
    outcomes: dict[str, Outcome[TransactionDescription]] = {}
    for row in response.transaction_states:
        message = None
        if row.error_code == codes.TRANSACTIONAL_ID_NOT_FOUND:
            message = f"There is no transactional id {row.transactional_id}."
        description = TransactionDescription(
            target.broker.id,
            row.transaction_state,
            row.producer_id,
            row.producer_epoch,
            row.transaction_timeout_ms,
            None if row.transaction_start_time_ms < 0 else row.transaction_start_time_ms,
            [TopicPartition(topic.topic, index) for topic in row.topics for index in topic.partitions],
        )
        outcomes[row.transactional_id] = outcome(row.error_code, message, description)
    return outcomes
