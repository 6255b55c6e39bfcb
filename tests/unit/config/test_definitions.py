"""How the text of a value is read and shown."""

import pytest

from moldau.config.definitions import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ConfigError,
    Value,
    parse_text,
    show_double,
    show_value,
    some_items_of,
)


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (INT, "+5", 5),
        (INT, "-2147483648", -2147483648),
        (LONG, "9223372036854775807", 9223372036854775807),
        (SHORT, " 7", 7),
        (DOUBLE, "1e-1", 0.1),
        (DOUBLE, "0.5f", 0.5),
        (DOUBLE, ".5", 0.5),
        (LIST, "", []),
        (LIST, " a , b,a ", ["a", "b"]),
        (LIST, "a,", ["a", ""]),
        (STRING, "  two words ", "two words"),
        (CLASS, "org.apache.kafka.common.Thing", "org.apache.kafka.common.Thing"),
        (LONG, None, None),
    ],
)
def test_text_is_read_as_java_reads_it(type: int, text: str | None, value: Value) -> None:
    """Space around a value does not count, signs and exponents do."""
    assert parse_text("key", type, text) == value


@pytest.mark.parametrize(
    ("type", "text", "reason"),
    [
        (BOOLEAN, "yes", "Expected value to be either true or false"),
        (INT, "2147483648", "Not a number of type INT"),
        (INT, "1_000", "Not a number of type INT"),
        (INT, "٣", "Not a number of type INT"),
        (SHORT, "32768", "Not a number of type SHORT"),
        (LONG, "9" * 5000, "Not a number of type LONG"),
        (DOUBLE, "half", "Not a number of type DOUBLE"),
        (CLASS, "com.example.Mine", "Class com.example.Mine could not be found."),
    ],
)
def test_text_that_is_no_value_is_refused_with_kafkas_sentence(type: int, text: str, reason: str) -> None:
    """The sentence names the value, the key and the reason."""
    with pytest.raises(ConfigError) as caught:
        parse_text("some.key", type, text)
    assert caught.value.message == f"Invalid value {text} for configuration some.key: {reason}"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.5, "0.5"),
        (1000000.0, "1000000.0"),
        (10000000.0, "1.0E7"),
        (123456789.5, "1.234567895E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2.147483647e9, "2.147483647E9"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-12345678.0, "-1.2345678E7"),
        (0.00012345, "1.2345E-4"),
        (float("inf"), "Infinity"),
        (0.0, "0.0"),
    ],
)
def test_doubles_are_shown_as_java_shows_them(number: float, text: str) -> None:
    """Plain between a thousandth and ten million, with an exponent elsewhere."""
    assert show_double(number) == text


def test_shown_values_never_contain_a_password() -> None:
    """A password is shown as hidden, lists with commas, booleans in lower case."""
    assert show_value(PASSWORD, "secret") == "[hidden]"
    assert show_value(LIST, ["a", "b"]) == "a,b"
    assert show_value(BOOLEAN, True) == "true"
    assert show_value(INT, None) is None


def test_a_list_that_needs_items_says_which() -> None:
    """An empty list is refused with the values it could have."""
    with pytest.raises(ConfigError, match=r"Configuration 'k' must not be empty. Valid values include: \[a, b\]"):
        some_items_of("a", "b")("k", [])
