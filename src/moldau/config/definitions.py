"""What a configuration key is: its type, default, validator, and how its text is read and shown.

The sentences of `ConfigError` are those Kafka's tools and clients show, so they are part of the interface.
Kafka keeps the same in `ConfigDef`.
"""

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final

# The numbers are those DescribeConfigs sends as the type of a value.
UNKNOWN: Final = 0
BOOLEAN: Final = 1
STRING: Final = 2
INT: Final = 3
SHORT: Final = 4
LONG: Final = 5
DOUBLE: Final = 6
LIST: Final = 7
CLASS: Final = 8
PASSWORD: Final = 9

TYPE_NAMES: Final = {
    BOOLEAN: "boolean",
    STRING: "string",
    INT: "int",
    SHORT: "short",
    LONG: "long",
    DOUBLE: "double",
    LIST: "list",
    CLASS: "class",
    PASSWORD: "password",
}

# Where a broker key may change while the broker runs.
READ_ONLY: Final = "read-only"
PER_BROKER: Final = "per-broker"
CLUSTER_WIDE: Final = "cluster-wide"
QUOTA: Final = "quota"


_INTEGER_LIMITS: Final = {SHORT: 1 << 15, INT: 1 << 31, LONG: 1 << 63}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")

# Classes of Kafka itself are known by name; any other class would have to be loaded into a JVM.
_KNOWN_CLASSES: Final = "org.apache.kafka."

Value = bool | int | float | str | list[str] | None
Validator = Callable[[str, Value], None]


class ConfigError(Exception):
    """A value, a key or a combination of values that cannot be used; the message is for the user."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidValue(ConfigError):
    """One value that its key does not accept."""

    def __init__(self, name: str, shown: object, reason: str) -> None:
        super().__init__(f"Invalid value {shown} for configuration {name}: {reason}")


class FailedRequirement(ConfigError):
    """Values that are fine one by one and wrong together."""


class ConfigKey:
    """One row of a table: a key and everything that is true of it everywhere."""

    def __init__(
        self,
        name: str,
        type: int,
        default: str | None,
        validator: Validator | None,
        documentation: str,
        *,
        dynamic: str = CLUSTER_WIDE,
        synonyms: tuple[str, ...] = (),
        internal: bool = False,
        required: bool = False,
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.validator = validator
        self.dynamic = dynamic
        self.synonyms = synonyms  # broker keys that supply the value of a topic or group, strongest first
        self.documentation = documentation
        self.internal = internal  # works, but DescribeConfigs does not list it
        self.required = required

    @property
    def sensitive(self) -> bool:
        return self.type == PASSWORD

    def parse(self, text: str | None) -> Value:
        """The typed and validated value of `text`; None is the absence of a value."""
        value = parse_text(self.name, self.type, text)
        if self.validator is not None:
            self.validator(self.name, value)
        return value

    def show(self, value: Value) -> str | None:
        return show_value(self.type, value)

    def __repr__(self) -> str:
        return f"ConfigKey({self.name!r}, {TYPE_NAMES[self.type]}, default {self.default!r})"


class ConfigKeys:
    """The keys of one kind of resource, in the order in which they are declared."""

    def __init__(self, rows: Iterable[ConfigKey]) -> None:
        self.by_name = {row.name: row for row in rows}

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def __getitem__(self, name: str) -> ConfigKey:
        return self.by_name[name]

    def __len__(self) -> int:
        return len(self.by_name)

    def get(self, name: str) -> ConfigKey | None:
        return self.by_name.get(name)

    def names(self) -> list[str]:
        return list(self.by_name)

    def rows(self) -> list[ConfigKey]:
        return list(self.by_name.values())

    def check(self, configs: dict[str, str]) -> dict[str, Value]:
        """Parses the given values in declared order, so that the first bad one is told; unknown names are skipped."""
        return {name: key.parse(configs[name]) for name, key in self.by_name.items() if name in configs}


def parse_text(name: str, type: int, text: str | None) -> Value:
    if text is None:
        return None
    trimmed = text.strip()
    if type in _INTEGER_LIMITS:
        return _parse_integer(name, type, text, trimmed)
    if type == BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise InvalidValue(name, text, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if type == DOUBLE:
        return _parse_double(name, text, trimmed)
    if type == LIST:
        return split_list(trimmed)
    if type == CLASS and trimmed and not trimmed.startswith(_KNOWN_CLASSES):
        raise InvalidValue(name, text, f"Class {trimmed} could not be found.")
    return trimmed


def split_list(text: str) -> list[str]:
    """Items between commas without the space around them, repeated ones once; an empty text has no items."""
    if not text.strip():
        return []
    items: list[str] = []
    for item in text.split(","):
        if item.strip() not in items:
            items.append(item.strip())
    return items


def _parse_integer(name: str, type: int, text: str, trimmed: str) -> int:
    if _INTEGER.fullmatch(trimmed) and len(trimmed) <= 40:
        value = int(trimmed)
        limit = _INTEGER_LIMITS[type]
        if -limit <= value < limit:
            return value
    raise InvalidValue(name, text, f"Not a number of type {TYPE_NAMES[type].upper()}")


def _parse_double(name: str, text: str, trimmed: str) -> float:
    if not _DOUBLE.fullmatch(trimmed):
        raise InvalidValue(name, text, "Not a number of type DOUBLE")
    return float(trimmed if trimmed.lstrip("+-")[:1] in "NI" else trimmed.rstrip("fFdD"))


def show_value(type: int, value: Value) -> str | None:
    """The text DescribeConfigs gives for a parsed value; a password is never shown."""
    if value is None:
        return None
    if type == PASSWORD:
        return "[hidden]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return show_double(value)
    if isinstance(value, list):
        return ",".join(value)
    return str(value)


def show_double(value: float) -> str:
    """A double as Java writes it: plain from a thousandth up to ten million, otherwise 1.5E10."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    fraction = "".join(str(digit) for digit in digits[1:]).rstrip("0") or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"


def at_least(low: int) -> Validator:
    def check(name: str, value: Value) -> None:
        if isinstance(value, (int, float)) and value < low:
            raise InvalidValue(name, show_plain(value), f"Value must be at least {low}")

    return check


def between(low: float, high: float) -> Validator:
    def check(name: str, value: Value) -> None:
        if isinstance(value, (int, float)) and value < low:
            raise InvalidValue(name, show_plain(value), f"Value must be at least {low}")
        if isinstance(value, (int, float)) and value > high:
            raise InvalidValue(name, show_plain(value), f"Value must be no more than {high}")

    return check


def gzip_level(name: str, value: Value) -> None:
    if isinstance(value, int) and value != -1 and not 1 <= value <= 9:
        raise InvalidValue(name, value, "Value must be between 1 and 9 or equal to -1")


def one_of(*words: str) -> Validator:
    def check(name: str, value: Value) -> None:
        if isinstance(value, str) and value not in words:
            raise InvalidValue(name, value, "String must be one of: " + ", ".join(words))

    return check


def one_of_any_case(*words: str) -> Validator:
    def check(name: str, value: Value) -> None:
        if isinstance(value, str) and value.upper() not in words:
            raise InvalidValue(name, value, "String must be one of (case insensitive): " + ", ".join(words))

    return check


def items(name: str, value: Value) -> None:
    """A list whose items are not empty; the list itself may be."""
    if isinstance(value, list) and "" in value:
        raise ConfigError(f"Configuration '{name}' values must not be empty.")


def items_of(*words: str) -> Validator:
    def check(name: str, value: Value) -> None:
        items(name, value)
        for item in value if isinstance(value, list) else []:
            if item not in words:
                raise InvalidValue(name, item, "String must be one of: " + ", ".join(words))

    return check


def some_items_of(*words: str) -> Validator:
    def check(name: str, value: Value) -> None:
        if value == []:
            wanted = f"[{', '.join(words)}]" if words else "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {wanted}")
        if words:
            items_of(*words)(name, value)
        else:
            items(name, value)

    return check


def not_empty(name: str, value: Value) -> None:
    if value == "":
        raise InvalidValue(name, "", "String must be non-empty")


_THROTTLED_REPLICA = re.compile(r"(?:[0-9]+:[0-9]+)?")


def throttled_replicas(name: str, value: Value) -> None:
    if not isinstance(value, list) or value[:1] == ["*"]:
        return
    if not all(_THROTTLED_REPLICA.fullmatch(item) for item in value):
        wanted = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        reason = f"{name} must be the literal '*' or a list of replicas in the following format: {wanted}"
        raise InvalidValue(name, "[" + ", ".join(value) + "]", reason)


_DURATION = re.compile(
    r"\+?P(?=.)(?:[+-]?[0-9]+D)?(?:T(?=.)(?:[+-]?[0-9]+H)?(?:[+-]?[0-9]+M)?(?:[+-]?[0-9]+(?:[.,][0-9]{0,9})?S)?)?", re.I
)


def share_offset_reset(name: str, value: Value) -> None:
    if not isinstance(value, str) or value in ("earliest", "latest"):
        return
    if value.startswith("by_duration:") and _DURATION.fullmatch(value[12:]) and "-" not in value[12:]:
        return
    wanted = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    raise InvalidValue(name, value, f"Invalid value `{value}` for configuration {name}. {wanted}")


_DURATION_PARTS = re.compile(r"([0-9]+)(D)|([0-9]+)(H)|([0-9]+)(M)|([0-9]+(?:[.,][0-9]*)?)(S)", re.I)
_UNIT_MS = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1000}


def duration_ms(text: str) -> int:
    """The milliseconds of an ISO-8601 duration that is not negative: P1DT2H, PT0.5S."""
    total = 0.0
    for found in _DURATION_PARTS.finditer(text):
        number, unit = (part for part in found.groups() if part is not None)
        total += float(number.replace(",", ".")) * _UNIT_MS[unit.upper()]
    return int(total)


def show_plain(value: Value) -> object:
    return show_double(value) if isinstance(value, float) else value
