"""Reads DER, the binary form of certificates: tags, lengths and what is inside, as far as names need it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
SEQUENCE: Final = 0x30
SET: Final = 0x31
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
VERSION: Final = 0xA0
EXTENSIONS: Final = 0xA3
# Kinds of alternative names.
DNS_NAME: Final = 0x82
IP_ADDRESS: Final = 0x87
RSA: Final = "1.2.840.113549.1.1.1"
SUBJECT_ALTERNATIVE_NAMES: Final = "2.5.29.17"

_LENGTH_BYTES_MAX: Final = 4
# Those in use have a dozen; the numbers of a very long one take long to write.
IDENTIFIER_BYTES_MAX: Final = 64


class DerError(ValueError):
    """It is no DER, or not what it should be."""


class Element:
    """One value: its tag, where it begins with the tag, where its content begins, where it ends."""

    __slots__ = ("content", "data", "end", "start", "tag")

    def __init__(self, data: bytes, tag: int, start: int, content: int, end: int) -> None:
        self.data = data
        self.tag = tag
        self.start = start
        self.content = content
        self.end = end

    @property
    def value(self) -> bytes:
        return self.data[self.content : self.end]

    @property
    def encoded(self) -> bytes:
        """With its tag and length."""
        return self.data[self.start : self.end]

    def children(self) -> Iterator[Element]:
        position = self.content
        while position < self.end:
            child = element_at(self.data, position, self.end)
            yield child
            position = child.end

    def first(self) -> Element:
        """The first of its children, which must be there."""
        for child in self.children():
            return child
        raise DerError("an element with nothing in it")

    def expect(self, tag: int) -> Element:
        if self.tag != tag:
            raise DerError(f"tag {self.tag:#x} where {tag:#x} was expected")
        return self


def element_at(data: bytes, position: int = 0, limit: int | None = None) -> Element:
    """The element that begins there and ends before `limit`."""
    limit = len(data) if limit is None else limit
    if position + 2 > limit:
        raise DerError("it ends in the middle of an element")
    tag, length, content = data[position], data[position + 1], position + 2
    if tag & 0x1F == 0x1F:
        raise DerError("a tag of several bytes")
    if length >= 0x80:
        count = length & 0x7F
        if not 1 <= count <= _LENGTH_BYTES_MAX or content + count > limit:
            raise DerError("a length that cannot be")
        length = int.from_bytes(data[content : content + count], "big")
        content += count
    if content + length > limit:
        raise DerError("an element is longer than what it is in")
    return Element(data, tag, position, content, content + length)


def object_identifier(value: bytes) -> str:
    """The number with dots."""
    if len(value) > IDENTIFIER_BYTES_MAX:
        raise DerError("an object identifier that is too long")
    if not value or value[-1] & 0x80:
        raise DerError("an object identifier that does not end")
    numbers: list[int] = []
    number = 0
    for byte in value:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(str(part) for part in [first, numbers[0] - 40 * first, *numbers[1:]])


class Certificate:
    """The parts of an X.509 certificate that tell whose it is."""

    def __init__(self, data: bytes) -> None:
        signed = element_at(data).expect(SEQUENCE).first().expect(SEQUENCE)
        fields = list(signed.children())
        if fields and fields[0].tag == VERSION:
            fields = fields[1:]
        if len(fields) < 6:
            raise DerError("a certificate without all of its parts")
        _, self._signature, self.issuer, self._validity, subject, self._public_key = fields[:6]
        self.subject = subject.expect(SEQUENCE)
        self._extensions = next((field for field in fields[6:] if field.tag == EXTENSIONS), None)

    def alternative_names(self) -> frozenset[tuple[int, bytes]]:
        """Kind and text of each; kinds are the tags of RFC 5280."""
        if self._extensions is None:
            return frozenset()
        for extension in self._extensions.first().expect(SEQUENCE).children():
            kind = extension.expect(SEQUENCE).first().expect(OBJECT_IDENTIFIER)
            if object_identifier(kind.value) == SUBJECT_ALTERNATIVE_NAMES:
                parts = list(extension.children())
                names = element_at(parts[-1].expect(OCTET_STRING).value).expect(SEQUENCE)
                return frozenset((name.tag, name.value) for name in names.children())
        return frozenset()

    def host_names(self) -> list[str]:
        """Names in small letters and addresses that it is good for."""
        found = []
        for kind, value in self.alternative_names():
            if kind == DNS_NAME:
                found.append(value.decode("ascii", "replace").lower())
            elif kind == IP_ADDRESS and len(value) in (4, 16):
                found.append(str(ipaddress.ip_address(value)))
        return sorted(found)

    def valid_seconds(self) -> tuple[int, int]:
        """When it begins and ends to be valid, in seconds of the wall clock."""
        moments = [_seconds(moment) for moment in self._validity.expect(SEQUENCE).children()]
        if len(moments) != 2:
            raise DerError("a validity without its two moments")
        return moments[0], moments[1]

    def signature_algorithm(self) -> str:
        return object_identifier(self._signature.first().expect(OBJECT_IDENTIFIER).value)

    def rsa_bits(self) -> int | None:
        """How long its key is; None where it is no RSA key."""
        algorithm = self._public_key.expect(SEQUENCE).first()
        if object_identifier(algorithm.first().expect(OBJECT_IDENTIFIER).value) != RSA:
            return None
        key = list(self._public_key.children())[-1].expect(BIT_STRING)
        # The first byte of a bit string tells how many bits of the last one do not count: none.
        modulus = element_at(key.value, 1).expect(SEQUENCE).first().expect(INTEGER)
        return int.from_bytes(modulus.value, "big").bit_length()


def _seconds(moment: Element) -> int:
    text = moment.value.decode("ascii", "replace")
    if moment.tag == UTC_TIME:
        text = f"{'19' if text[:2] >= '50' else '20'}{text}"
    elif moment.tag != GENERALIZED_TIME:
        raise DerError("a moment that is none")
    try:
        return int(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise DerError("a moment that is none") from None


def read_certificate(data: bytes) -> Certificate:
    """DerError for what is none."""
    return Certificate(data)
