"""The name of a certificate's owner as Java writes it (RFC 2253), because rules and ACLs are written for that.

The last part of the name comes first. Attributes that RFC 2253 has no word for are numbers with their value in hex;
whatever would end a part early in the text has a backslash before it, so nobody can write another name into their own.
"""

from __future__ import annotations

from typing import Final

from moldau.security.der import OBJECT_IDENTIFIER, SEQUENCE, SET, DerError, Element, object_identifier

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString.
_TEXTS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANKS: Final = " \r"


def distinguished_name(name: Element) -> str:
    """The text of a Name. DerError where it is none."""
    parts = [_relative_name(part.expect(SET)) for part in name.expect(SEQUENCE).children()]
    return ",".join(reversed(parts))


def _relative_name(part: Element) -> str:
    return "+".join(_attribute(attribute.expect(SEQUENCE)) for attribute in part.children())


def _attribute(attribute: Element) -> str:
    parts = list(attribute.children())
    if len(parts) != 2:
        raise DerError("an attribute is a type and a value")
    number = object_identifier(parts[0].expect(OBJECT_IDENTIFIER).value)
    keyword, value = _KEYWORDS.get(number), parts[1]
    if keyword is None or value.tag not in _TEXTS:
        return f"{keyword or number}=#{value.encoded.hex()}"
    # Java takes the bytes of every kind of text for UTF-8.
    return f"{keyword}={_escape(value.value.decode('utf-8', 'replace'))}"


def _escape(text: str) -> str:
    shown = "".join("\\" + char if char in _ESCAPED else "\\00" if char == "\0" else char for char in text)
    lead = len(shown) - len(shown.lstrip(_BLANKS))
    trail = len(shown.rstrip(_BLANKS))
    if lead >= trail:
        return "".join("\\" + char for char in shown)
    before, after = ("".join("\\" + char for char in blanks) for blanks in (shown[:lead], shown[trail:]))
    return before + shown[lead:trail] + after
