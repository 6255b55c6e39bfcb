"""Numbers and bytes as Java writes them."""

from __future__ import annotations

import math
import re
import struct

# UTF-16 halves in UTF-8: Java's decoder takes them for one wrong character, Python's for up to three.
_HALVES = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
REPLACEMENT = b"\xef\xbf\xbd"


def decode_utf8(data: bytes) -> str:
    """The text as Java's decoder reads it: what is not UTF-8 becomes the replacement character."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _HALVES.sub(REPLACEMENT, data).decode("utf-8", "replace")


def clean_utf8(data: bytes) -> bytes:
    """The bytes that are left of a text that Java read and wrote again."""
    return data if data.isascii() else decode_utf8(data).encode()


def double_text(value: float, shortest: str | None = None) -> str:
    """Double.toString: plain from a thousandth to ten million, with an exponent beyond."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign, digits, exponent = _digits(shortest or repr(value))
    if 1e-3 <= abs(value) < 1e7:
        if exponent <= 0:
            return f"{sign}0.{'0' * -exponent}{digits}"
        whole = digits[:exponent].ljust(exponent, "0")
        return f"{sign}{whole}.{digits[exponent:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent - 1}"


def float_text(value: float) -> str:
    """Float.toString of a number that has 32 bits: the fewest digits that tell it from its neighbours."""
    if math.isnan(value) or math.isinf(value) or value == 0:
        return double_text(value)
    for precision in range(1, 10):
        text = f"{value:.{precision}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", value):
            return double_text(value, text)
    return double_text(value)


def _digits(text: str) -> tuple[str, str, int]:
    """Sign, significant digits and the place of the point: 12.5 is 0.125 times ten to the second."""
    sign = "-" if text.startswith("-") else ""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    return sign, digits.rstrip("0") or "0", len(whole) - leading + int(exponent or 0)


def escape_bytes(data: bytes) -> str:
    """Kafka's Bytes as text: printable letters as they are, others in hex."""
    return "".join(chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x5C else f"\\x{byte:02X}" for byte in data)


def fixed_text(value: float, digits: int) -> str:
    """Java's %.nf: the shortest decimal number of the value, rounded half up."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    from decimal import ROUND_HALF_UP, Decimal

    return f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"


def divide(one: float, other: float) -> float:
    """Java's division, which knows no error."""
    if other == 0:
        return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one)
    return one / other
