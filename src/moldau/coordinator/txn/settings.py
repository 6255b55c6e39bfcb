"""Settings of the transaction coordinator: the broker's transaction.* keys and the finalized transaction.version."""

from __future__ import annotations

from moldau.config.broker_config import BrokerConfig


class TransactionSettings:
    """Typed views of the configuration in force."""

    def __init__(self, config: BrokerConfig) -> None:
        # The finalized level; the coordinator follows the metadata.
        self.transaction_version = 0
        self.update(config)

    def update(self, config: BrokerConfig) -> None:
        self.timeout_max_ms = config.get_int("transaction.max.timeout.ms")
        self.timeout_check_ms = config.get_int("transaction.abort.timed.out.transaction.cleanup.interval.ms")
        self.id_expiration_ms = config.get_int("transactional.id.expiration.ms")
        self.id_expiration_check_ms = config.get_int("transaction.remove.expired.transaction.cleanup.interval.ms")
        self.two_phase_enabled = config.get_bool("transaction.two.phase.commit.enable")
