"""The connection without a socket: negotiation, versions, order of answers, garbage."""

from __future__ import annotations

from moldau.client.connection.wire import Call, Connection
from moldau.client.errors import NetworkError, ProtocolError, UnsupportedVersionError
from moldau.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
from moldau.protocol.messages.describe_cluster_response import DescribeClusterResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from tests.unit.client.fake_network import ScriptedBroker, frame, split_request


def negotiated(highest: dict[int, int] | None = None) -> Connection:
    connection = Connection("broker:9092", "test")
    connection.start(0, 1000)
    header, _ = split_request(connection.take_outgoing())
    connection.receive(frame(ScriptedBroker(highest).versions(), 18, header.request_api_version, header.correlation_id))
    assert connection.negotiated
    return connection


def metadata_call() -> Call[MetadataResponse]:
    return Call(MetadataRequest(topics=None), MetadataResponse, 1000)


def test_the_first_request_is_api_versions_with_the_name_of_the_client() -> None:
    connection = Connection("broker:9092", "me")
    connection.start(0, 1000)
    header, request = split_request(connection.take_outgoing())
    assert (header.request_api_key, header.request_api_version, header.client_id) == (18, 4, "me")
    assert request.client_software_name == "moldau"  # type: ignore[attr-defined]


def test_calls_wait_for_the_negotiation() -> None:
    connection = Connection("broker:9092", "test")
    connection.start(0, 1000)
    first = connection.take_outgoing()
    call = metadata_call()
    connection.submit(call, 0)
    assert connection.take_outgoing() == b""
    header, _ = split_request(first)
    connection.receive(frame(ScriptedBroker().versions(), 18, 4, header.correlation_id))
    header, request = split_request(connection.take_outgoing())
    assert isinstance(request, MetadataRequest)
    connection.receive(frame(MetadataResponse(cluster_id="c"), 3, header.request_api_version, header.correlation_id))
    assert call.done and call.response().cluster_id == "c"


def test_a_broker_that_does_not_know_our_api_versions_is_asked_in_its_own_version() -> None:
    connection = Connection("old:9092", "test")
    connection.start(0, 1000)
    connection.take_outgoing()
    refusal = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)])
    connection.receive(frame(refusal, 18, 0, 0))
    header, _ = split_request(connection.take_outgoing())
    assert header.request_api_version == 2
    connection.receive(frame(ScriptedBroker().versions(), 18, 2, header.correlation_id))
    assert connection.negotiated


def test_the_highest_version_that_both_sides_have_is_used() -> None:
    connection = negotiated({3: 9})
    connection.submit(metadata_call(), 0)
    header, _ = split_request(connection.take_outgoing())
    assert header.request_api_version == 9


def test_an_api_that_the_broker_does_not_offer_fails_its_call_alone() -> None:
    connection = negotiated()
    del connection.versions[60]
    missing = Call(DescribeClusterRequest(), DescribeClusterResponse, 1000)
    connection.submit(missing, 0)
    assert isinstance(missing.error, UnsupportedVersionError)
    assert "does not offer DescribeCluster" in missing.error.message
    assert not connection.closed


def test_answers_may_arrive_byte_by_byte_and_several_at_once() -> None:
    connection = negotiated()
    calls = [metadata_call() for _ in range(3)]
    for call in calls:
        connection.submit(call, 0)
    data = b"".join(
        frame(MetadataResponse(cluster_id=str(index)), 3, 13, call.correlation_id) for index, call in enumerate(calls)
    )
    for index in range(30):
        connection.receive(data[index : index + 1])
    connection.receive(data[30:])
    assert [call.response().cluster_id for call in calls] == ["0", "1", "2"]


def large_answers(connection: Connection, count: int) -> tuple[list[Call[MetadataResponse]], list[bytes]]:
    """Calls and their answers, each of about half a megabyte."""
    calls = [metadata_call() for _ in range(count)]
    for call in calls:
        connection.submit(call, 0)
    rows = [MetadataResponse(cluster_id=f"{index}" * 30_000) for index in range(count)]
    for row in rows:
        row.brokers = [MetadataResponseBroker(node_id=number, host="h" * 1000) for number in range(500)]
    return calls, [frame(row, 3, 13, call.correlation_id) for row, call in zip(rows, calls, strict=True)]


def test_a_large_answer_behind_another_is_taken_in_one_piece() -> None:
    connection = negotiated()
    calls, frames = large_answers(connection, 3)
    connection.receive(frames[0])
    for data in frames[1:]:
        with connection.space() as space:
            assert len(space) == 4  # the size comes alone
            space[:] = data[:4]
        connection.received(4)
        assert connection.piece_wanted == len(data) - 4
        connection.received_piece(data[4:])
        assert connection.piece_wanted == 0
    assert [call.response().cluster_id for call in calls] == ["0" * 30_000, "1" * 30_000, "2" * 30_000]


def test_a_piece_that_is_not_whole_is_put_together() -> None:
    connection = negotiated()
    calls, frames = large_answers(connection, 3)
    connection.receive(frames[0])
    connection.receive(frames[1][:4])
    connection.received_piece(frames[1][4:100_000])
    assert connection.piece_wanted == 0 and not calls[1].done
    connection.receive(frames[1][100_000:] + frames[2])
    assert [call.response().cluster_id for call in calls] == ["0" * 30_000, "1" * 30_000, "2" * 30_000]


def test_a_small_answer_behind_a_large_one_is_taken_as_well() -> None:
    connection = negotiated()
    (large,), frames = large_answers(connection, 1)
    small = [metadata_call() for _ in range(2)]
    for call in small:
        connection.submit(call, 0)
    connection.receive(frames[0])
    answers = [frame(MetadataResponse(cluster_id="s"), 3, 13, call.correlation_id) for call in small]
    connection.receive(answers[0][:4])
    assert connection.piece_wanted == 0
    connection.receive(answers[0][4:])
    with connection.space() as space:
        assert len(space) > 4  # and the sizes of those behind it are not read alone
    connection.receive(answers[1])
    assert large.done and [call.response().cluster_id for call in small] == ["s", "s"]


def test_an_answer_to_another_request_ends_the_connection() -> None:
    connection = negotiated()
    call = metadata_call()
    connection.submit(call, 0)
    connection.receive(frame(MetadataResponse(), 3, 13, call.correlation_id + 5))
    assert connection.closed and isinstance(call.error, NetworkError)


def test_a_body_that_cannot_be_decoded_ends_the_connection() -> None:
    connection = negotiated()
    call = metadata_call()
    connection.submit(call, 0)
    body = call.correlation_id.to_bytes(4, "big") + b"\x00\xff\xff\xff"
    connection.receive(len(body).to_bytes(4, "big") + body)
    assert connection.closed and isinstance(call.error, NetworkError)


def test_an_http_server_is_told_apart_from_a_broker() -> None:
    connection = Connection("web:80", "test")
    connection.start(0, 1000)
    call = metadata_call()
    connection.submit(call, 0)
    connection.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert isinstance(call.error, ProtocolError)
    assert "does not speak Kafka's protocol" in call.error.message


def test_a_tls_alert_is_told_apart_from_a_broker() -> None:
    connection = Connection("tls:9093", "test")
    connection.start(0, 1000)
    call = metadata_call()
    connection.submit(call, 0)
    connection.receive(b"\x15\x03\x03\x00\x02\x02\x46")
    assert isinstance(call.error, ProtocolError) and "TLS" in call.error.message


def test_closing_fails_what_waits_and_what_is_in_flight() -> None:
    connection = negotiated()
    calls = [metadata_call(), metadata_call()]
    for call in calls:
        connection.submit(call, 0)
    connection.close(NetworkError("gone"))
    assert [call.error.message for call in calls if call.error] == ["gone", "gone"]
    late = metadata_call()
    connection.submit(late, 0)
    assert isinstance(late.error, NetworkError)


def test_a_call_expires_after_its_own_timeout() -> None:
    connection = negotiated()
    connection.submit(metadata_call(), 500)
    assert not connection.expired(1499)
    assert connection.expired(1500)
    assert connection.next_deadline_ms() == 1500


def test_a_call_that_expects_no_answer_is_done_when_it_is_written() -> None:
    connection = negotiated()
    call = Call(MetadataRequest(topics=None), MetadataResponse, 1000, expects_response=False)
    connection.submit(call, 0)
    assert call.done and call.error is None and connection.in_flight_count == 0
