"""Records sent from the page: text, JSON, hexadecimal or base64, with headers, to any partition."""

from __future__ import annotations

import base64
import binascii
import json

from moldau.actions.calls import Call, changing
from moldau.actions.refusals import Refused
from moldau.actions.topics import topic_of

FORMATS = ("text", "json", "hex", "base64", "null")


def read_bytes(what: str, given: object) -> bytes | None:
    """{"format": …, "text": …} as bytes; None for null, or nothing given."""
    if given is None:
        return None
    if not isinstance(given, dict) or given.get("format") not in FORMATS:
        raise Refused(f"{what} has none of the formats {', '.join(FORMATS)}.")
    text = given.get("text", "")
    if given["format"] == "null":
        return None
    if not isinstance(text, str):
        raise Refused(f"{what} is not a text.")
    try:
        if given["format"] == "hex":
            return bytes.fromhex(text)
        if given["format"] == "base64":
            return base64.b64decode(text, validate=True)
        if given["format"] == "json":
            json.loads(text)
    except (ValueError, binascii.Error) as error:
        raise Refused(f"{what} is not {given['format']}: {error}.") from None
    return text.encode()


async def send_record(call: Call) -> object:
    """Sends one record, and tells where it went."""
    topic = call.target = call.text("topic")
    key, value = read_bytes("The key", call.body.get("key")), read_bytes("The value", call.body.get("value"))
    headers: list[tuple[str, bytes | None]] = []
    given = call.body.get("headers", [])
    if not isinstance(given, list):
        raise Refused("headers is not a list.")
    for header in given:
        if not isinstance(header, dict) or not isinstance(header.get("name"), str) or not header["name"]:
            raise Refused("A header has no name.")
        headers.append((header["name"], read_bytes(f"The header {header['name']}", header.get("value"))))
    # A producer would create a topic that is missing, which is not what a typing mistake is to do.
    await topic_of(call.viewer, topic)
    sent = await call.viewer.clients.produce(
        topic,
        value,
        key,
        partition=call.optional_number("partition"),
        timestamp_ms=call.optional_number("timestamp"),
        headers=headers,
    )
    call.details = {"partition": sent.partition, "offset": sent.offset, "bytes": len(value or b"")}
    return {"partition": sent.partition, "offset": sent.offset, "timestamp": sent.timestamp}


ROUTES = [changing("/api/messages/produce", "produce", send_record)]
