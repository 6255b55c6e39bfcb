"""Settings of a broker for tests that nobody knows."""

from __future__ import annotations

import warnings

import pytest

from moldau.testing import Broker, Cluster


def test_a_mistyped_setting_is_told() -> None:
    with pytest.warns(UserWarning, match=r"no setting num\.partitons.*did you mean num\.partitions\?") as told:
        Broker(config={"num.partitons": "3"})
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match=r"did you mean log\.retention\.ms\?"):
        Cluster(2, config={"log.retenton.ms": "1000"})


def test_settings_of_brokers_plugins_and_listeners_are_taken_silently() -> None:
    given = {"num.partitions": "3", "listener.name.sasl.ssl.keystore.location": "f", "my.reporter.url": "x"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Broker(config=given)
