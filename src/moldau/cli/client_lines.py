"""Settings of a secured connection as each kind of client names them: ours and Java's, librdkafka's, kafka-python's."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from moldau.config.properties import format_properties

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Access(NamedTuple):
    """How a client gets in: by a certificate (the path of its files without an ending), or by name and password."""

    bootstrap_servers: str
    authority: Path
    certificate: Path | None = None
    username: str = ""
    password: str = ""
    mechanism: str = "SCRAM-SHA-512"

    @property
    def protocol(self) -> str:
        return "SASL_SSL" if self.username else "SSL"

    def file(self, ending: str) -> str:
        assert self.certificate is not None
        return f"{self.certificate}.{ending}"


def java_settings(access: Access) -> dict[str, str]:
    """A client.properties as Java and Moldau read it."""
    settings = {
        "bootstrap.servers": access.bootstrap_servers,
        "security.protocol": access.protocol,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(access.authority),
    }
    if access.certificate is not None:
        settings["ssl.keystore.type"] = "PEM"
        settings["ssl.keystore.location"] = access.file("pem")
    if access.username:
        settings["sasl.mechanism"] = access.mechanism
        user, password = (_quoted(text) for text in (access.username, access.password))
        settings["sasl.jaas.config"] = f"{SCRAM_MODULE} required username={user} password={password};"
    return settings


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def librdkafka_settings(access: Access) -> dict[str, str]:
    """For confluent-kafka, kcat and everything else that stands on librdkafka."""
    settings = {
        "bootstrap.servers": access.bootstrap_servers,
        "security.protocol": access.protocol,
        "ssl.ca.location": str(access.authority),
    }
    if access.certificate is not None:
        settings["ssl.certificate.location"] = access.file("crt")
        settings["ssl.key.location"] = access.file("key")
    if access.username:
        settings["sasl.mechanism"] = access.mechanism
        settings["sasl.username"] = access.username
        settings["sasl.password"] = access.password
    return settings


def kafka_python_arguments(access: Access) -> dict[str, str]:
    """Keywords of KafkaProducer and its like."""
    arguments = {
        "bootstrap_servers": access.bootstrap_servers,
        "security_protocol": access.protocol,
        "ssl_cafile": str(access.authority),
    }
    if access.certificate is not None:
        arguments["ssl_certfile"] = access.file("crt")
        arguments["ssl_keyfile"] = access.file("key")
    if access.username:
        arguments["sasl_mechanism"] = access.mechanism
        arguments["sasl_plain_username"] = access.username
        arguments["sasl_plain_password"] = access.password
    return arguments


def properties_lines(settings: dict[str, str]) -> list[str]:
    return format_properties(settings).splitlines()


def plain_lines(settings: dict[str, str]) -> list[str]:
    """As librdkafka's tools read them: nothing is escaped."""
    return [f"{name}={value}" for name, value in settings.items()]


def call_lines(function: str, arguments: dict[str, str]) -> list[str]:
    return [f"{function}(", *(f"    {name}={value!r}," for name, value in arguments.items()), ")"]
