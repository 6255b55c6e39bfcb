"""Reads and writes the primitive types of the protocol: integers, varints, strings, bytes, arrays, tagged fields.

A Reader never trusts what it reads: every length is checked against the bytes that remain before anything is allocated,
and whatever is wrong ends in a DecodeError. A Writer leaves records that lie in a file out of the bytes, as a part of
their own. Kafka keeps the same in ByteBufferAccessor and SendBuilder.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from librt.strings import (
    BytesWriter,
    read_f64_be,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_f64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64, mypyc_attr, u8

from moldau.protocol.records_data import FileRecords, MemoryRecords, Records

Part = bytes | FileRecords
UnknownTags = list[tuple[int, bytes]]

ZERO_UUID: Final = b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

# Stands for "not given" where None means null on the wire. Never changed.
NOT_GIVEN: Final[list[Any]] = []


class DecodeError(ValueError):
    """The bytes are not what the protocol says they are."""


class EncodeError(ValueError):
    """The value cannot be sent in the chosen version."""


class Reader:
    """Reads from data[position:end]."""

    def __init__(self, data: bytes, position: int = 0, end: int = -1) -> None:
        if end < 0:
            end = len(data)
        if position < 0 or position > end or end > len(data):
            raise DecodeError(f"no bytes {position} to {end} in {len(data)}")
        self.data: bytes = data
        self.position: i64 = position
        self.end: i64 = end

    @property
    def remaining(self) -> int:
        return self.end - self.position

    def skip(self, count: i64) -> None:
        if count < 0 or count > self.end - self.position:
            raise self.too_short(count)
        self.position += count

    def too_short(self, wanted: i64) -> DecodeError:
        return DecodeError(f"{wanted} bytes wanted at {self.position}, {self.end - self.position} are left")

    def int8(self) -> i64:
        position = self.position
        if position >= self.end:
            raise self.too_short(1)
        self.position = position + 1
        value: i64 = self.data[position]
        return value - 256 if value > 127 else value

    def int16(self) -> i64:
        position = self.position
        if position + 2 > self.end:
            raise self.too_short(2)
        self.position = position + 2
        return i64(read_i16_be(self.data, position))

    def uint16(self) -> i64:
        return self.int16() & 0xFFFF

    def int32(self) -> i64:
        position = self.position
        if position + 4 > self.end:
            raise self.too_short(4)
        self.position = position + 4
        return i64(read_i32_be(self.data, position))

    def uint32(self) -> i64:
        return self.int32() & 0xFFFFFFFF

    def int64(self) -> i64:
        position = self.position
        if position + 8 > self.end:
            raise self.too_short(8)
        self.position = position + 8
        return read_i64_be(self.data, position)

    def float64(self) -> float:
        position = self.position
        if position + 8 > self.end:
            raise self.too_short(8)
        self.position = position + 8
        return read_f64_be(self.data, position)

    def boolean(self) -> bool:
        return self.int8() != 0

    def uuid(self) -> bytes:
        return self.take(16)

    def uvarint(self) -> i64:
        """An unsigned number of at most 32 bits."""
        position = self.position
        if position < self.end:
            # Nearly all lengths, counts and tags fit into one byte.
            first: i64 = self.data[position]
            if first < 0x80:
                self.position = position + 1
                return first
        return self.long_uvarint()

    def long_uvarint(self) -> i64:
        position = self.position
        end = self.end
        data = self.data
        value: i64 = 0
        shift: i64 = 0
        while shift < 35:
            if position >= end:
                raise self.too_short(1)
            byte: i64 = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                self.position = position
                return value
            shift += 7
        raise DecodeError(f"the varint at {self.position} has more than 32 bits")

    def varint(self) -> i64:
        """A signed (zigzag) number of at most 32 bits."""
        value = self.uvarint()
        return (value >> 1) ^ -(value & 1)

    def varlong(self) -> i64:
        """A signed (zigzag) number of at most 64 bits."""
        position = self.position
        end = self.end
        data = self.data
        if position >= end:
            raise self.too_short(1)
        byte: i64 = data[position]
        position += 1
        # The sign bit is taken off at once, so that the rest fits into 63 bits.
        sign: i64 = -(byte & 1)
        value: i64 = (byte & 0x7F) >> 1
        shift: i64 = 6
        while byte >= 0x80:
            if position >= end:
                raise self.too_short(1)
            byte = data[position]
            position += 1
            if shift > 62 or (shift == 62 and byte > 1):
                raise DecodeError(f"the varint at {self.position} has more than 64 bits")
            value |= (byte & 0x7F) << shift
            shift += 7
        self.position = position
        return value ^ sign

    def take(self, count: i64) -> bytes:
        """The next count bytes, as a copy."""
        position = self.position
        if count < 0 or count > self.end - position:
            raise self.too_short(count)
        stop = position + count
        self.position = stop
        return self.data[position:stop]

    def text(self, count: i64) -> str:
        """The next count bytes as text. As in Kafka, what is not utf-8 becomes U+FFFD rather than an error."""
        raw = self.take(count)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw.decode("utf-8", "replace")

    def string(self) -> str:
        length = self.int16()
        if length < 0:
            raise self.unexpected_null("string")
        return self.text(length)

    def nullable_string(self) -> str | None:
        length = self.int16()
        if length < 0:
            return None
        return self.text(length)

    def compact_string(self) -> str:
        length = self.uvarint() - 1
        if length < 0:
            raise self.unexpected_null("string")
        if length > 0x7FFF:
            raise DecodeError(f"a string of {length} bytes is too long")
        return self.text(length)

    def compact_nullable_string(self) -> str | None:
        length = self.uvarint() - 1
        if length < 0:
            return None
        if length > 0x7FFF:
            raise DecodeError(f"a string of {length} bytes is too long")
        return self.text(length)

    def unexpected_null(self, what: str) -> DecodeError:
        return DecodeError(f"the {what} before {self.position} must not be null")

    def bytes_(self) -> bytes:
        length = self.int32()
        if length < 0:
            raise self.unexpected_null("bytes")
        return self.take(length)

    def nullable_bytes(self) -> bytes | None:
        length = self.int32()
        if length < 0:
            return None
        return self.take(length)

    def compact_bytes(self) -> bytes:
        length = self.uvarint() - 1
        if length < 0:
            raise self.unexpected_null("bytes")
        return self.take(length)

    def compact_nullable_bytes(self) -> bytes | None:
        length = self.uvarint() - 1
        if length < 0:
            return None
        return self.take(length)

    def take_records(self, count: i64) -> MemoryRecords:
        start = self.position
        self.skip(count)
        return MemoryRecords(self.data, start, start + count)

    def records(self) -> Records:
        length = self.int32()
        if length < 0:
            raise self.unexpected_null("records")
        return self.take_records(length)

    def nullable_records(self) -> Records | None:
        length = self.int32()
        if length < 0:
            return None
        return self.take_records(length)

    def compact_records(self) -> Records:
        length = self.uvarint() - 1
        if length < 0:
            raise self.unexpected_null("records")
        return self.take_records(length)

    def compact_nullable_records(self) -> Records | None:
        length = self.uvarint() - 1
        if length < 0:
            return None
        return self.take_records(length)

    def check_count(self, count: i64, element_bytes: i64) -> i64:
        """Refuses a count whose elements, of at least element_bytes each, cannot be in the bytes that remain."""
        if count > (self.end - self.position) // element_bytes:
            left = self.end - self.position
            raise DecodeError(f"{count} elements announced before {self.position}, {left} bytes are left")
        return count

    def array_length(self, element_bytes: i64 = 1) -> i64:
        count = self.int32()
        if count < 0:
            raise self.unexpected_null("array")
        return self.check_count(count, element_bytes)

    def nullable_array_length(self, element_bytes: i64 = 1) -> i64:
        """The count; below 0 for null."""
        return self.check_count(self.int32(), element_bytes)

    def compact_array_length(self, element_bytes: i64 = 1) -> i64:
        count = self.uvarint() - 1
        if count < 0:
            raise self.unexpected_null("array")
        return self.check_count(count, element_bytes)

    def compact_nullable_array_length(self, element_bytes: i64 = 1) -> i64:
        """The count; below 0 for null."""
        return self.check_count(self.uvarint() - 1, element_bytes)

    def int8_list(self, count: i64) -> list[int]:
        values: list[int] = []
        for _ in range(count):
            values.append(self.int8())
        return values

    def int16_list(self, count: i64) -> list[int]:
        values: list[int] = []
        for _ in range(count):
            values.append(self.int16())
        return values

    def int32_list(self, count: i64) -> list[int]:
        values: list[int] = []
        for _ in range(count):
            values.append(self.int32())
        return values

    def int64_list(self, count: i64) -> list[int]:
        values: list[int] = []
        for _ in range(count):
            values.append(self.int64())
        return values

    def uuid_list(self, count: i64) -> list[bytes]:
        values: list[bytes] = []
        for _ in range(count):
            values.append(self.take(16))
        return values

    def string_list(self, count: i64) -> list[str]:
        values: list[str] = []
        for _ in range(count):
            values.append(self.string())
        return values

    def compact_string_list(self, count: i64) -> list[str]:
        values: list[str] = []
        for _ in range(count):
            values.append(self.compact_string())
        return values

    def tag_count(self) -> i64:
        """How many tagged fields follow; each takes two bytes or more."""
        return self.check_count(self.uvarint(), 2)

    def tag_end(self) -> i64:
        """Reads the size of a tagged field; returns where the field ends."""
        size = self.uvarint()
        if size > self.end - self.position:
            raise self.too_short(size)
        return self.position + size

    def check_tag_end(self, end: i64) -> None:
        if self.position != end:
            raise DecodeError(f"a tagged field ends at {self.position}, its size says {end}")

    def unknown_tag(self, unknown: UnknownTags | None, tag: i64, end: i64) -> UnknownTags:
        """Keeps a tagged field that this version does not know."""
        value = self.take(end - self.position)
        if unknown is None:
            return [(tag, value)]
        unknown.append((tag, value))
        return unknown

    def unknown_tags(self) -> UnknownTags | None:
        """A tagged section in which no field is known."""
        count = self.tag_count()
        if count == 0:
            return None
        unknown: UnknownTags | None = None
        for _ in range(count):
            tag = self.uvarint()
            unknown = self.unknown_tag(unknown, tag, self.tag_end())
        return unknown


def out_of_range(value: i64, kind: str) -> EncodeError:
    return EncodeError(f"{value} does not fit into {kind}")


class Writer:
    """Collects bytes, and the pieces of files between them."""

    def __init__(self) -> None:
        self.buffer: BytesWriter = BytesWriter()
        self.first: BytesWriter = self.buffer
        # What was finished before the buffer, in order; empty until the first piece of a file.
        self.finished: list[BytesWriter] = []
        self.files: list[FileRecords] = []

    @property
    def size(self) -> int:
        """All bytes so far, those in files included."""
        total: int = len(self.buffer)
        for buffer in self.finished:
            total += len(buffer)
        for file in self.files:
            total += file.size
        return total

    def finish(self) -> list[Part]:
        """The parts in order; none of them is empty."""
        parts: list[Part] = []
        for index in range(len(self.files)):
            buffer = self.finished[index]
            if len(buffer) > 0:
                parts.append(buffer.getvalue())
            parts.append(self.files[index])
        if len(self.buffer) > 0:
            parts.append(self.buffer.getvalue())
        return parts

    def to_bytes(self) -> bytes:
        if len(self.files) > 0:
            raise EncodeError("a part of this lies in a file")
        return self.buffer.getvalue()

    def set_int32(self, position: i64, value: i64) -> None:
        """Writes over four bytes at the beginning, such as the size of the frame once it is known."""
        buffer = self.first
        if position < 0 or position + 4 > len(buffer):
            raise EncodeError(f"no int32 at {position}")
        if value < -0x80000000 or value > 0x7FFFFFFF:
            raise out_of_range(value, "int32")
        buffer[position] = u8((value >> 24) & 0xFF)
        buffer[position + 1] = u8((value >> 16) & 0xFF)
        buffer[position + 2] = u8((value >> 8) & 0xFF)
        buffer[position + 3] = u8(value & 0xFF)

    def raw(self, data: bytes) -> None:
        self.buffer.write(data)

    def int8(self, value: i64) -> None:
        if value < -128 or value > 127:
            raise out_of_range(value, "int8")
        self.buffer.append(value & 0xFF)

    def int16(self, value: i64) -> None:
        if value < -0x8000 or value > 0x7FFF:
            raise out_of_range(value, "int16")
        write_i16_be(self.buffer, i16(value))

    def uint16(self, value: i64) -> None:
        if value < 0 or value > 0xFFFF:
            raise out_of_range(value, "uint16")
        self.int16(value - 0x10000 if value > 0x7FFF else value)

    def int32(self, value: i64) -> None:
        if value < -0x80000000 or value > 0x7FFFFFFF:
            raise out_of_range(value, "int32")
        write_i32_be(self.buffer, i32(value))

    def uint32(self, value: i64) -> None:
        if value < 0 or value > 0xFFFFFFFF:
            raise out_of_range(value, "uint32")
        self.int32(value - 0x100000000 if value > 0x7FFFFFFF else value)

    def int64(self, value: i64) -> None:
        write_i64_be(self.buffer, value)

    def float64(self, value: float) -> None:
        write_f64_be(self.buffer, value)

    def boolean(self, value: bool) -> None:
        self.buffer.append(1 if value else 0)

    def uuid(self, value: bytes) -> None:
        if len(value) != 16:
            raise EncodeError(f"a uuid has 16 bytes, not {len(value)}")
        self.buffer.write(value)

    def uvarint(self, value: i64) -> None:
        if value < 0 or value > 0xFFFFFFFF:
            raise out_of_range(value, "an unsigned varint")
        buffer = self.buffer
        while value > 0x7F:
            buffer.append((value & 0x7F) | 0x80)
            value >>= 7
        buffer.append(value)

    def varint(self, value: i64) -> None:
        if value < -0x80000000 or value > 0x7FFFFFFF:
            raise out_of_range(value, "a varint")
        self.uvarint(-2 * value - 1 if value < 0 else 2 * value)

    def varlong(self, value: i64) -> None:
        buffer = self.buffer
        # The sign bit is put in first, so that the rest never needs more than 63 bits.
        sign: i64 = 0
        if value < 0:
            sign = 1
            value = -(value + 1)
        byte: i64 = ((value & 0x3F) << 1) | sign
        value >>= 6
        while value > 0:
            buffer.append(byte | 0x80)
            byte = value & 0x7F
            value >>= 7
        buffer.append(byte)

    def string(self, value: str) -> None:
        raw = value.encode("utf-8")
        length: i64 = len(raw)
        if length > 0x7FFF:
            raise EncodeError(f"a string of {length} bytes is too long")
        write_i16_be(self.buffer, i16(length))
        self.buffer.write(raw)

    def nullable_string(self, value: str | None) -> None:
        if value is None:
            self.int16(-1)
        else:
            self.string(value)

    def compact_string(self, value: str) -> None:
        raw = value.encode("utf-8")
        length: i64 = len(raw)
        if length > 0x7FFF:
            raise EncodeError(f"a string of {length} bytes is too long")
        self.uvarint(length + 1)
        self.buffer.write(raw)

    def compact_nullable_string(self, value: str | None) -> None:
        if value is None:
            self.buffer.append(0)
        else:
            self.compact_string(value)

    def bytes_(self, value: bytes) -> None:
        self.int32(len(value))
        self.buffer.write(value)

    def nullable_bytes(self, value: bytes | None) -> None:
        if value is None:
            self.int32(-1)
        else:
            self.bytes_(value)

    def compact_bytes(self, value: bytes) -> None:
        self.uvarint(len(value) + 1)
        self.buffer.write(value)

    def compact_nullable_bytes(self, value: bytes | None) -> None:
        if value is None:
            self.buffer.append(0)
        else:
            self.compact_bytes(value)

    def put_records(self, value: Records) -> None:
        if isinstance(value, MemoryRecords):
            self.buffer.write(value.to_bytes())
        elif isinstance(value, FileRecords):
            if value.size > 0:
                self.finished.append(self.buffer)
                self.files.append(value)
                self.buffer = BytesWriter()
        else:
            raise EncodeError("records must be in memory or in a file")

    def records(self, value: Records | None) -> None:
        if value is None:
            raise EncodeError("these records must not be null")
        self.int32(value.size)
        self.put_records(value)

    def nullable_records(self, value: Records | None) -> None:
        if value is None:
            self.int32(-1)
        else:
            self.records(value)

    def compact_records(self, value: Records | None) -> None:
        if value is None:
            raise EncodeError("these records must not be null")
        self.uvarint(value.size + 1)
        self.put_records(value)

    def compact_nullable_records(self, value: Records | None) -> None:
        if value is None:
            self.buffer.append(0)
        else:
            self.compact_records(value)

    def array_length(self, count: i64) -> None:
        """The count; -1 for null."""
        self.int32(count)

    def compact_array_length(self, count: i64) -> None:
        """The count; -1 for null."""
        self.uvarint(count + 1)

    def int8_list(self, values: list[int]) -> None:
        for value in values:
            self.int8(value)

    def int16_list(self, values: list[int]) -> None:
        for value in values:
            self.int16(value)

    def int32_list(self, values: list[int]) -> None:
        for value in values:
            self.int32(value)

    def int64_list(self, values: list[int]) -> None:
        for value in values:
            self.int64(value)

    def uuid_list(self, values: list[bytes]) -> None:
        for value in values:
            self.uuid(value)

    def string_list(self, values: list[str]) -> None:
        for value in values:
            self.string(value)

    def compact_string_list(self, values: list[str]) -> None:
        for value in values:
            self.compact_string(value)

    def unknown_tags(self, unknown: UnknownTags | None) -> None:
        """The tagged section of a struct without tagged fields of its own."""
        if unknown is None:
            self.buffer.append(0)
        else:
            self.tags([], unknown)

    def tags(self, known: UnknownTags, unknown: UnknownTags | None) -> None:
        """The tagged section: known fields, in rising order already, and kept unknown ones, merged by tag."""
        if unknown is not None:
            known = sorted(known + unknown, key=tag_of)
        self.uvarint(len(known))
        for tag, value in known:
            self.uvarint(tag)
            self.uvarint(len(value))
            self.buffer.write(value)


def tag_of(field: tuple[int, bytes]) -> int:
    return field[0]


# Not shown where a message is, in a log or an error (CVE-2026-33558).
SECRET_FIELDS: Final = frozenset({"auth_bytes", "hmac", "salt", "salted_password", "server_key", "stored_key"})
SECRET_FIELDS_OF: Final = {
    "AlterableConfig": frozenset({"value"}),
    "EnvelopeRequest": frozenset({"request_data"}),
    "EnvelopeResponse": frozenset({"response_data"}),
}


@mypyc_attr(allow_interpreted_subclasses=True)
class Message:
    """A request, response, header, stored record, or a struct inside of one.

    The generated classes decode and encode by themselves; only comparing and printing look at the fields by name.
    """

    # API key, or the id of a stored record; -1 where there is none.
    API_KEY: ClassVar[int] = -1
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = -1
    # Above HIGHEST_VERSION where no version is flexible.
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.unknown_tags: UnknownTags | None = None

    @staticmethod
    def decode(reader: Reader, version: int) -> Message:
        raise NotImplementedError

    def encode(self, writer: Writer, version: int) -> None:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        for name in self.FIELDS:
            if getattr(self, name) != getattr(other, name):
                return False
        return self.unknown_tags == getattr(other, "unknown_tags", None)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        hidden = SECRET_FIELDS_OF.get(type(self).__name__, SECRET_FIELDS)
        fields = [f"{name}={'hidden' if name in hidden else repr(getattr(self, name))}" for name in self.FIELDS]
        if self.unknown_tags is not None:
            fields.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__name__}({', '.join(fields)})"


def no_such_version(name: str, version: int) -> str:
    return f"{name} has no version {version}"


def cannot_send(field: str, version: int) -> EncodeError:
    """For a field that has a value and is not in the chosen version, or is null where that version has no null."""
    return EncodeError(f"the value of {field} cannot be sent in version {version}")
