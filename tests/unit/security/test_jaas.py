"""JAAS lines."""

from __future__ import annotations

import pytest

from moldau.security.jaas import JaasError, parse_jaas


def test_one_module_with_options() -> None:
    entry = parse_jaas('org.x.PlainLoginModule required\n user_a="p\\"q" user_b=\'r s\'\n user_c=t serviceName="k" ;')
    assert entry.module == "org.x.PlainLoginModule"
    assert entry.options == {"user_a": 'p"q', "user_b": "r s", "user_c": "t", "serviceName": "k"}
    assert parse_jaas("a.B$C REQUIRED;").options == {}
    assert parse_jaas('m.M required user_a-b.c@d="x";').options == {"user_a-b.c@d": "x"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret-1",
        "M required",
        'M required x="secret-1"',
        'M maybe x="secret-1";',
        "M required secret-1;",
        'M required a="secret-1;',
    ],
)
def test_what_cannot_be_read_is_not_quoted(text: str) -> None:
    with pytest.raises(JaasError) as caught:
        parse_jaas(text)
    assert "secret-1" not in str(caught.value)


def test_values_are_not_shown() -> None:
    assert "secret-1" not in repr(parse_jaas('m.M required password="secret-1";'))
