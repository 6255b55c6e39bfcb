"""A client of a few hand-written requests, so that what Moldau says about itself is not checked with its own code.

Only versions without compact encodings are used: Produce 8, Fetch 11, ListOffsets 5, CreateTopics 4, ApiVersions 0.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import NamedTuple

import crc32c

from tests.pace import patience

PRODUCE, FETCH, LIST_OFFSETS, API_VERSIONS, CREATE_TOPICS = 0, 1, 2, 18, 19
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
BATCH_HEADER_SIZE = 61


class BrokerError(Exception):
    """An error code where none was expected."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    value: bytes


class Batch(NamedTuple):
    base_offset: int
    last_offset: int
    max_timestamp: int
    position: int
    size: int
    records: list[Record]


def text(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def array(items: list[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def varint(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7


def build_batch(records: list[tuple[int, bytes]]) -> bytes:
    """One uncompressed batch of (timestamp, value)."""
    base_timestamp = records[0][0]
    body = bytearray()
    for delta, (timestamp, value) in enumerate(records):
        record = b"\x00" + varint(timestamp - base_timestamp) + varint(delta) + varint(-1)
        record += varint(len(value)) + value + varint(0)
        body += varint(len(record)) + record
    max_timestamp = max(timestamp for timestamp, _ in records)
    tail = struct.pack(
        ">hiqqqhii", 0, len(records) - 1, base_timestamp, max_timestamp, -1, -1, -1, len(records)
    ) + bytes(body)
    head = struct.pack(">qiibI", 0, 9 + len(tail), -1, 2, crc32c.crc32c(tail))
    return head + tail


def parse_batches(data: bytes, *, allow_partial: bool = True) -> list[Batch]:
    """The whole batches in the data; raises AssertionError for a corrupt one."""
    batches = []
    position = 0
    while len(data) - position >= BATCH_HEADER_SIZE:
        base_offset, length = struct.unpack_from(">qi", data, position)
        size = 12 + length
        assert size >= BATCH_HEADER_SIZE, f"a batch of {size} bytes at {position}"
        if position + size > len(data):
            break
        batches.append(_parse_batch(data, position, base_offset, size))
        position += size
    assert allow_partial or position == len(data), f"{len(data) - position} bytes of a torn batch"
    return batches


def _parse_batch(data: bytes, position: int, base_offset: int, size: int) -> Batch:
    magic, crc = struct.unpack_from(">bI", data, position + 16)
    assert magic == 2
    assert crc == crc32c.crc32c(data[position + 21 : position + size]), f"bad crc at offset {base_offset}"
    fields = struct.unpack_from(">hiqqqhii", data, position + 21)
    attributes, last_delta, base_timestamp, max_timestamp, count = *fields[:4], fields[7]
    assert attributes == 0, "only plain batches are read here"
    records = []
    at = position + BATCH_HEADER_SIZE
    for _ in range(count):
        length, at = read_varint(data, at)
        end = at + length
        timestamp_delta, at = read_varint(data, at + 1)
        offset_delta, at = read_varint(data, at)
        key_length, at = read_varint(data, at)
        value_length, at = read_varint(data, at + max(0, key_length))
        records.append(
            Record(base_offset + offset_delta, base_timestamp + timestamp_delta, data[at : at + value_length])
        )
        at = end
    return Batch(base_offset, base_offset + last_delta, max_timestamp, position, size, records)


class RawConnection:
    def __init__(self, port: int, timeout: float = 30) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), patience(timeout))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation = 0
        self._buffer = b""

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def send(self, api_key: int, version: int, body: bytes) -> int:
        """Sends one request; returns its correlation id."""
        self._correlation += 1
        frame = struct.pack(">hhi", api_key, version, self._correlation) + text("raw") + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        return self._correlation

    def receive(self) -> tuple[int, bytes]:
        """The next answer: correlation id and body."""
        size = struct.unpack(">i", self._take(4))[0]
        frame = self._take(size)
        return struct.unpack_from(">i", frame)[0], frame[4:]

    def call(self, api_key: int, version: int, body: bytes) -> bytes:
        wanted = self.send(api_key, version, body)
        correlation, answer = self.receive()
        assert correlation == wanted, f"answer {correlation} to request {wanted}"
        return answer

    def _take(self, size: int) -> bytes:
        chunks = [self._buffer]
        have = len(self._buffer)
        while have < size:
            chunk = self.socket.recv(max(65536, size - have))
            if not chunk:
                raise ConnectionResetError("the broker closed the connection")
            chunks.append(chunk)
            have += len(chunk)
        data = b"".join(chunks)
        self._buffer = data[size:]
        return data[:size]

    # Requests

    def api_keys(self) -> set[int]:
        """The APIs that the broker says it serves."""
        answer = self.call(API_VERSIONS, 0, b"")
        error, count = struct.unpack_from(">hi", answer)
        check(error, "asking for the API versions")
        return {struct.unpack_from(">h", answer, 6 + 6 * index)[0] for index in range(count)}

    def create_topic(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        pairs = array([text(key) + text(value) for key, value in configs.items()])
        topic = text(name) + struct.pack(">ih", partitions, 1) + array([]) + pairs
        answer = self.call(CREATE_TOPICS, 4, array([topic]) + struct.pack(">ib", 30000, 0))
        length = struct.unpack_from(">h", answer, 8)[0]
        check(struct.unpack_from(">h", answer, 10 + length)[0], f"creating {name}")

    def await_topic(self, name: str, partitions: int, timeout: float = 10) -> None:
        """Returns when every partition has a leader that takes requests."""
        deadline = time.monotonic() + patience(timeout)
        while True:
            try:
                for partition in range(partitions):
                    self.list_offset(name, partition, LATEST)
                return
            except BrokerError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def send_produce(self, topic: str, partition: int, batch: bytes, acks: int = 1) -> int:
        data = text(topic) + array([struct.pack(">ii", partition, len(batch)) + batch])
        return self.send(PRODUCE, 8, text(None) + struct.pack(">hi", acks, 30000) + array([data]))

    def list_offset(self, topic: str, partition: int, timestamp: int) -> tuple[int, int]:
        """(offset, timestamp)"""
        data = text(topic) + array([struct.pack(">iiq", partition, -1, timestamp)])
        # Version 7 is the first that takes the largest timestamp, and it is compact; see list_max_timestamp.
        answer = self.call(LIST_OFFSETS, 5, struct.pack(">ib", -1, 0) + array([data]))
        at = 4 + 4 + 2 + len(topic.encode()) + 4
        _, error, found, offset, _ = struct.unpack_from(">ihqqi", answer, at)
        check(error, f"offset of {topic}-{partition} at {timestamp}")
        return offset, found

    def fetch(self, topic: str, partition: int, offset: int, max_bytes: int = 1 << 20) -> tuple[int, bytes]:
        """(high watermark, record bytes)"""
        data = text(topic) + array([struct.pack(">iiqqi", partition, -1, offset, -1, max_bytes)])
        head = struct.pack(">iiiibii", -1, 0, 0, 1 << 25, 0, 0, -1)
        answer = self.call(FETCH, 11, head + array([data]) + array([]) + text(""))
        at = 4 + 2 + 4 + 4 + 2 + len(topic.encode()) + 4
        _, error, high_watermark, _, _, aborted = struct.unpack_from(">ihqqqi", answer, at)
        check(error, f"fetch of {topic}-{partition} at {offset}")
        at += 34 + max(0, aborted) * 16 + 4
        size = struct.unpack_from(">i", answer, at)[0]
        return high_watermark, answer[at + 4 : at + 4 + max(0, size)]


def parse_produce_answer(answer: bytes, topic: str) -> tuple[int, int, int]:
    """(partition, error code, base offset)"""
    return struct.unpack_from(">ihq", answer, 4 + 2 + len(topic.encode()) + 4)


def check(error: int, what: str) -> None:
    if error != 0:
        raise BrokerError(f"{what}: error code {error}")
