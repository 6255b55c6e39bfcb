"""Who may come in, after how long, and who has to go: decided without a socket and with the time as an argument."""

from __future__ import annotations

import random

import pytest

from moldau.quota import connection_quotas
from moldau.quota.connection_quotas import (
    ADMITTED,
    THROTTLED,
    TOO_MANY,
    ConnectionQuotas,
    address_key,
)

A, B = "10.0.0.1", "10.0.0.2"
INSIDE, OUTSIDE = "INSIDE", "OUTSIDE"


def quotas(*listeners: str, inter_broker: str = INSIDE) -> ConnectionQuotas:
    made = ConnectionQuotas(inter_broker)
    for name in listeners or (OUTSIDE,):
        made.add_listener(name)
    return made


def connect(made: ConnectionQuotas, address: str = A, listener: str = OUTSIDE, now_ms: int = 0) -> str:
    made.arrive(listener, now_ms)
    return made.admit(listener, address, now_ms).verdict


def test_nothing_is_limited_unless_it_is_set() -> None:
    made = quotas()
    for _ in range(100_000):
        assert made.arrive(OUTSIDE, 0) == 0 and made.has_slot(OUTSIDE)
    assert connect(made) == ADMITTED and made.excess() == 0


def test_ten_seconds_of_the_rate_come_at_once_then_each_waits() -> None:
    """The rate of a beginner is measured over ten whole windows."""
    made = quotas()
    made.listeners[OUTSIDE].creation_rate_max = 5
    assert [made.arrive(OUTSIDE, 0) for _ in range(50)] == [0] * 50
    # 51 in ten seconds is 5.1 a second: (5.1 - 5) / 5 * 10,000 ms.
    assert made.arrive(OUTSIDE, 0) == 200
    assert made.arrive(OUTSIDE, 200) == 200


def test_no_delay_is_longer_than_a_window() -> None:
    made = quotas()
    made.creation_rate_max = 1
    assert max(made.arrive(OUTSIDE, 0) for _ in range(500)) == 1000


def test_a_rate_of_zero_is_legal_and_makes_everybody_wait_a_window() -> None:
    made = quotas()
    made.creation_rate_max = 0
    assert made.arrive(OUTSIDE, 0) == 1000


def test_in_the_long_run_the_rate_is_the_limit() -> None:
    """Whoever waits as long as told comes as often as the limit says, over some rounds of all windows: the burst at the
    beginning comes back, smaller, when its window is forgotten."""
    made = quotas()
    made.creation_rate_max = 20
    now_ms, count = 0, 0
    while now_ms < 330_000:
        now_ms += made.arrive(OUTSIDE, now_ms)
        count += now_ms >= 110_000
    assert 20 * 220 * 0.97 <= count <= 20 * 220 * 1.03


def test_the_larger_of_both_delays_counts() -> None:
    made = quotas(OUTSIDE, INSIDE)
    made.creation_rate_max = 1
    made.listeners[OUTSIDE].creation_rate_max = 2
    for _ in range(10):
        assert made.arrive(OUTSIDE, 0) == 0
    assert made.arrive(OUTSIDE, 0) == 1000
    made.creation_rate_max = 100
    assert made.arrive(OUTSIDE, 0) == 0


def test_the_protected_listener_ignores_the_limits_of_the_broker_and_keeps_its_own() -> None:
    made = quotas(OUTSIDE, INSIDE)
    made.creation_rate_max = 0
    made.connections_max = 0
    assert made.arrive(INSIDE, 0) == 0 and made.has_slot(INSIDE)
    assert made.rate.total == 0, "and does not use up the broker's rate"
    made.listeners[INSIDE].connections_max = 1
    made.listeners[INSIDE].creation_rate_max = 1
    assert connect(made, listener=INSIDE) == ADMITTED
    assert not made.has_slot(INSIDE)
    assert [made.arrive(INSIDE, 0) for _ in range(9)][-1] == 1000


def test_the_only_listener_is_not_protected() -> None:
    made = quotas(INSIDE)
    made.connections_max = 0
    assert not made.has_slot(INSIDE)


def test_slots_are_the_listeners_and_the_brokers() -> None:
    made = quotas("L1", "L2")
    made.connections_max = 3
    made.listeners["L1"].connections_max = 2
    assert connect(made, listener="L1") == connect(made, listener="L1") == ADMITTED
    assert not made.has_slot("L1") and made.has_slot("L2")
    assert connect(made, listener="L2") == ADMITTED
    assert not made.has_slot("L2")
    made.release("L1", A)
    assert made.has_slot("L1") and made.has_slot("L2")


def test_who_is_above_the_rate_of_its_address_is_taken_out_of_all_rates_again() -> None:
    made = quotas()
    made.limit_addresses({A: 1.0}, None)
    for _ in range(10):
        assert connect(made) == ADMITTED
    made.arrive(OUTSIDE, 0)
    admission = made.admit(OUTSIDE, A, 0)
    assert (admission.verdict, admission.delay_ms) == (THROTTLED, 1000)
    assert made.rate.total == made.listeners[OUTSIDE].rate.total == 10
    assert made.address_rates(0) == {A: 1.0}
    assert made.count == 10, "it is not counted as a connection"
    assert connect(made, B) == ADMITTED, "an address without a limit comes and goes"


def test_the_rate_of_an_address_holds_on_every_listener_also_the_protected_one() -> None:
    made = quotas(OUTSIDE, INSIDE)
    made.limit_addresses({}, 1.0)
    for _ in range(10):
        assert connect(made, listener=OUTSIDE) == ADMITTED
    assert connect(made, listener=INSIDE) == THROTTLED
    assert made.listeners[INSIDE].rate.total == 0 and made.rate.total == 10


def test_an_address_of_its_own_comes_before_the_default_and_goes_back_to_it() -> None:
    made = quotas()
    made.limit_addresses({A: 100.0}, 1.0)
    assert [connect(made) for _ in range(11)][-1] == ADMITTED
    assert [connect(made, B) for _ in range(11)][-1] == THROTTLED
    made.limit_addresses({}, 1.0)
    assert connect(made) == THROTTLED, "what came lately counts against the new limit"
    made.limit_addresses({}, None)
    assert connect(made) == connect(made, B) == ADMITTED
    made.limit_addresses({A: 1.0}, None)
    assert connect(made) == THROTTLED, "as does what came before there was no limit"


def test_an_address_has_its_share_and_an_override_another() -> None:
    made = quotas()
    made.per_address_max = 1
    made.per_address_overrides = {B: 2}
    assert [connect(made) for _ in range(2)] == [ADMITTED, TOO_MANY]
    assert [connect(made, B) for _ in range(3)] == [ADMITTED, ADMITTED, TOO_MANY]
    made.release(OUTSIDE, A)
    assert connect(made) == ADMITTED
    assert made.rate.total == 6, "who is refused for that stays in the rates"


def test_the_protected_listener_may_bring_more_than_there_may_be() -> None:
    made = quotas(OUTSIDE, INSIDE)
    made.connections_max = 2
    assert connect(made) == connect(made) == ADMITTED
    assert connect(made, listener=INSIDE) == ADMITTED
    assert made.excess() == 1
    made.release(OUTSIDE, A)
    assert made.excess() == 0
    made.connections_max = 1
    assert made.excess() == 1, "and so may a lower limit"


def test_throttle_times_are_averages_of_those_that_had_to_wait() -> None:
    made = quotas()
    made.creation_rate_max = 0
    throttle = made.listeners[OUTSIDE].throttle_time
    assert str(throttle.average_ms(0)) == "nan"
    made.arrive(OUTSIDE, 0)
    made.creation_rate_max = 100
    made.arrive(OUTSIDE, 0)
    assert throttle.average_ms(1) == 1000
    assert str(throttle.average_ms(200_000)) == "nan"


def test_addresses_that_stay_away_are_forgotten_and_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    made = quotas()
    made.limit_addresses({}, 1.0)
    for number in range(100):
        connect(made, f"10.0.1.{number}", now_ms=0)
    for number in range(100):
        connect(made, f"10.0.2.{number}", now_ms=60_000)
    assert len(made.address_rates(60_000)) == 100
    monkeypatch.setattr(connection_quotas, "ADDRESSES_MAX", 100)
    for number in range(100):
        connect(made, f"10.0.3.{number}", now_ms=60_000)
    assert len(made.address_rates(60_000)) <= 100


def test_counts_are_right_whatever_happens() -> None:
    """At random: the sum of what was admitted and not released is what is counted, and limits hold."""
    dice = random.Random(7)
    made = quotas("L1", "L2", INSIDE)
    made.connections_max, made.per_address_max = 20, 8
    made.limit_addresses({}, 30.0)
    there: list[tuple[str, str]] = []
    now_ms = 0
    for _ in range(5000):
        now_ms += dice.randrange(40)
        listener, address = dice.choice(["L1", "L2", INSIDE]), dice.choice([A, B, "::1"])
        if dice.random() < 0.6 and made.has_slot(listener):
            if connect(made, address, listener, now_ms) == ADMITTED:
                there.append((listener, address))
        elif there:
            made.release(*there.pop(dice.randrange(len(there))))
        assert made.count == len(there) == sum(quota.count for quota in made.listeners.values())
        assert max((sum(a == one for _, a in there) for one in (A, B, "::1")), default=0) <= 8
        assert made.listeners["L1"].count + made.listeners["L2"].count <= 20


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("localhost", None),
        ("", None),
    ],
)
def test_addresses_compare_as_addresses(text: str, key: str | None) -> None:
    assert address_key(text) == key
