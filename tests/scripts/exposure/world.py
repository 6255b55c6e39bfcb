"""A node's settings and the files beside them, changed and checked by the commands of a script."""

from __future__ import annotations

from typing import Any

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.security.exposure.check import check_exposure
from moldau.security.exposure.findings import NOTE, Facts, StoreFacts
from moldau.security.exposure.listeners import view_listeners

NOW_S = 1_800_000_000
DAY_S = 86400
BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@node.test:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CLIENTS://:9092,CONTROLLER://127.0.0.1:9093",
    "advertised.listeners": "CLIENTS://node.test:9092",
    "inter.broker.listener.name": "CLIENTS",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "max.connections.per.ip": "100",
}
SHORT = {
    "scram": "org.apache.kafka.common.security.scram.ScramLoginModule required",
    "plain": "org.apache.kafka.common.security.plain.PlainLoginModule required",
    "standard": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "unsecured": "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler",
}


class FakeCertificate:
    """What the rules ask of a certificate."""

    def __init__(self, days: int, names: list[str], bits: int | None, signature: str) -> None:
        self._days = days
        self._names = names
        self._bits = bits
        self._signature = signature

    def valid_seconds(self) -> tuple[int, int]:
        begin = NOW_S + DAY_S if self._days > 10_000 else NOW_S - 400 * DAY_S
        return begin, NOW_S + self._days * DAY_S

    def host_names(self) -> list[str]:
        return self._names

    def rsa_bits(self) -> int | None:
        return self._bits

    def signature_algorithm(self) -> str:
        return {"sha1": "1.2.840.113549.1.1.5"}.get(self._signature, "1.2.840.113549.1.1.11")


class World:
    """`set KEY=VALUE` (with <scram> and the like for long names), `unset KEY`, `new`, `mode OCTAL`, `store LISTENER
    mode=… trust=… principal=… days=… names=a,b bits=… signature=… problem=…`, `folder PATH OCTAL`, `listeners`,
    `check` (without notes), `check all`."""

    def __init__(self) -> None:
        self.new()

    def new(self) -> list[str]:
        self.values = dict(BASE)
        self.mode: int | None = 0o600
        self.stores: dict[str, StoreFacts] = {}
        self.folders: dict[str, int] = {}
        return []

    def run(self, line: str) -> list[str]:
        verb, _, rest = line.partition(" ")
        method: Any = getattr(self, verb)
        found: list[str] = method(rest) if rest else method()
        return found

    def set(self, pair: str) -> list[str]:
        key, _, value = pair.partition("=")
        for name, text in SHORT.items():
            value = value.replace(f"<{name}>", text)
        self.values[key] = value
        return []

    def unset(self, key: str) -> list[str]:
        del self.values[key]
        return []

    def file(self, mode: str) -> list[str]:
        self.mode = int(mode, 8)
        return []

    def store(self, text: str) -> list[str]:
        name, *pairs = text.split()
        given = dict(pair.split("=", 1) for pair in pairs)
        problem = given.get("problem", "").replace("_", " ")
        names = [each for each in given.get("names", "").split(",") if each]
        bits = int(given["bits"]) if "bits" in given else None
        certificate: Any = FakeCertificate(int(given.get("days", "365")), names, bits, given.get("signature", ""))
        mode = int(given.get("mode", "600"), 8)
        trust = int(given["trust"], 8) if "trust" in given else None
        own = None if problem else certificate
        self.stores[name] = StoreFacts(mode, problem, own, trust, given.get("principal", ""))
        return []

    def folder(self, text: str) -> list[str]:
        path, mode = text.split()
        self.folders[path] = int(mode, 8)
        return []

    def listeners(self) -> list[str]:
        return [
            f"{view.name} {view.place} from {view.reach}, {'TLS' if view.is_encrypted else 'in the clear'}, "
            f"for {' and '.join(view.used_by)}: {view.who}"
            for view in view_listeners(BrokerConfig(self.values, warn=False))
        ]

    def check(self, what: str = "") -> list[str]:
        try:
            config = BrokerConfig(self.values, warn=False)
        except ConfigError as error:
            return [f"no configuration: {error.message}"]
        found = check_exposure(config, Facts("server.properties", self.mode, self.stores, self.folders), NOW_S)
        lines = []
        for finding in found:
            if finding.severity == NOTE and what != "all":
                continue
            where = f"{finding.listener}: " if finding.listener else ""
            lines.append(f"{finding.severity} {finding.code} [{finding.key}]")
            lines.append(f"  {where}{finding.message}")
        return lines or ["nothing"]
