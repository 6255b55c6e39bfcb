"""Where other nodes reach the controller of this one, and what it tells when it registers."""

from __future__ import annotations

from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.config.listeners import EVERY_ADDRESS
from moldau.metadata.features import SUPPORTED_FEATURES
from moldau.protocol.messages import controller_registration_request as messages

SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class ControllerEndpoints:
    """See the module. Its owner says what the configuration does not."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self.ports: dict[str, int] = {}
        """Ports that listeners were really bound to, where the configuration says 0."""
        self.host_name = "localhost"
        """What other nodes are told where the configuration names no host."""

    def all(self) -> list[tuple[str, str, str, int]]:
        """Name, protocol, host and port: as advertised, otherwise as this node listens.

        A listener on every address is reached by the name that the voters know this node under.
        """
        config = self._config
        advertised = {endpoint.name: endpoint for endpoint in config.advertised_listeners}
        own_host = next((voter.host for voter in config.voters if voter.id == config.node_id), self.host_name)
        found = []
        for own in config.controller_listeners():
            shown = advertised.get(own.name, own)
            port = shown.port or self.ports.get(own.name, own.port)
            host = own_host if shown.host in EVERY_ADDRESS else shown.host
            found.append((own.name, own.protocol, host, port))
        return found

    def registration(self, incarnation_id: bytes) -> messages.ControllerRegistrationRequest:
        request = messages.ControllerRegistrationRequest(self._config.node_id, incarnation_id)
        request.listeners = [
            messages.Listener(name, host, port, SECURITY_PROTOCOLS.get(protocol, 0))
            for name, protocol, host, port in self.all()
        ]
        request.features = [messages.Feature(name, low, high) for name, (low, high) in SUPPORTED_FEATURES.items()]
        return request
