"""Envelope: a client's request on its way to the active controller, with who asked and from where (KIP-590)."""

from __future__ import annotations

from ipaddress import ip_address

from moldau.node.context import ClientContext
from moldau.protocol import errors
from moldau.protocol.api_keys import request_header_version, response_class, response_header_version
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.envelope_request import EnvelopeRequest
from moldau.protocol.messages.envelope_response import EnvelopeResponse
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.messages.principal import DefaultPrincipalData
from moldau.protocol.primitives import DecodeError, Message, Reader, Writer

PRINCIPAL_VERSION = 0
NO_ADDRESS = bytes(4)


def pack(context: ClientContext, frame: bytes) -> EnvelopeRequest:
    """`frame` is the client's request, header included."""
    kind, _, name = context.principal.partition(":")
    writer = Writer()
    writer.int16(PRINCIPAL_VERSION)
    DefaultPrincipalData(kind, name, context.token_authenticated).encode(writer, PRINCIPAL_VERSION)
    return EnvelopeRequest(frame, writer.to_bytes(), address_of(context.peer))


def pack_request(
    context: ClientContext, request: Message, version: int, correlation_id: int, client_id: str | None
) -> EnvelopeRequest:
    """The same for a request that this broker made or changed on behalf of a client."""
    api_key = type(request).API_KEY
    writer = Writer()
    header = RequestHeader(api_key, version, correlation_id, client_id)
    header.encode(writer, request_header_version(api_key, version))
    request.encode(writer, version)
    return pack(context, writer.to_bytes())


def address_of(peer: str) -> bytes:
    host = peer.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).packed
    except ValueError:
        return NO_ADDRESS


def unpack_context(listener: str, envelope: EnvelopeRequest) -> ClientContext:
    """The client as the broker it talks to describes it; KafkaError when the envelope does not say it properly."""
    principal = unpack_principal(envelope.request_principal)
    if len(envelope.client_host_address) not in (4, 16):
        raise KafkaError(errors.INVALID_REQUEST, "The envelope's client address is neither IPv4 nor IPv6.")
    context = ClientContext(listener, f"{ip_address(envelope.client_host_address)}:0", True)
    context.principal = f"{principal.type}:{principal.name}"
    context.token_authenticated = principal.token_authenticated
    context.is_forwarded = True
    return context


def unpack_principal(data: bytes | None) -> DefaultPrincipalData:
    try:
        reader = Reader(data or b"")
        version = reader.int16()
        return DefaultPrincipalData.decode(reader, version)
    except DecodeError as error:
        text = f"The envelope's principal cannot be read: {error}"
        raise KafkaError(errors.PRINCIPAL_DESERIALIZATION_FAILURE, text) from error


def response_data(response: EnvelopeResponse) -> bytes | KafkaError:
    """The response inside. An error of the envelope itself is the brokers' affair: the client gets a general one."""
    if response.error_code == errors.NONE and response.response_data is not None:
        return response.response_data
    return KafkaError(errors.UNKNOWN_SERVER_ERROR)


def unpack_response(response: EnvelopeResponse, api_key: int, version: int) -> Message | KafkaError:
    data = response_data(response)
    if isinstance(data, KafkaError):
        return data
    try:
        reader = Reader(data)
        ResponseHeader.decode(reader, response_header_version(api_key, version))
        return response_class(api_key).decode(reader, version)
    except DecodeError:
        return KafkaError(errors.UNKNOWN_SERVER_ERROR)
