"""What a search finds."""

from __future__ import annotations

import pytest

from moldau.actions.matching import Matcher
from moldau.actions.refusals import Refused
from moldau.client.record import ConsumerRecord

RECORD = ConsumerRecord(
    "t",
    0,
    0,
    timestamp=0,
    timestamp_type=0,
    key=b"Anna",
    value='{"customer": {"id": 42, "tags": ["new", "Übergröße"]}, "paid": true}'.encode(),
    headers=[("source", b"shop-7"), ("empty", None)],
    leader_epoch=0,
)


@pytest.mark.parametrize(
    ("matcher", "found"),
    [
        (Matcher(), True),
        (Matcher("anna"), True),
        (Matcher("anna", any_case=False), False),
        (Matcher("ÜBERGRÖSSE".replace("SS", "ß")), True),
        (Matcher("anna", "value"), False),
        (Matcher("shop", "headers"), True),
        (Matcher("SOURCE", "headers"), True),
        (Matcher("customer", "key"), False),
        (Matcher(key=b"Anna"), True),
        (Matcher(key=b"anna"), False),
        (Matcher(field="customer.id=42"), True),
        (Matcher(field="customer.id = 43"), False),
        (Matcher(field="customer.tags.0=new"), True),
        (Matcher(field="customer.tags.9"), False),
        (Matcher(field="paid=true"), True),
        (Matcher(field="customer"), True),
        (Matcher(field="nothing"), False),
        (Matcher("42", key=b"Anna", field="paid"), True),
    ],
)
def test_all_conditions_have_to_hold(matcher: Matcher, found: bool) -> None:
    assert matcher.matches(RECORD) is found


def test_decoded_text_counts_where_bytes_do_not_show_it() -> None:
    assert Matcher("hidden").matches(RECORD, '{"what": "hidden"}')
    assert Matcher(field="what=hidden").matches(RECORD, '{"what": "hidden"}')


def test_conditions_that_make_no_sense() -> None:
    for wrong in ({"place": "somewhere"}, {"field": "a..b"}, {"field": "=1"}):
        with pytest.raises(Refused):
            Matcher(**wrong)  # type: ignore[arg-type]
