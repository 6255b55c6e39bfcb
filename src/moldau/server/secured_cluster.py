"""What `moldau up --secure` adds to a cluster: certificates, users with passwords, and the settings of its nodes.

Clients log in with SCRAM over TLS. Nodes know each other by certificates, on listeners of their own, so no node has a
password and nothing has to be known before the first quorum. Everything lies in the directory `security` beside the
nodes, for its owner alone; later starts keep passwords and authority and renew certificates that are about to expire.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from moldau.config.definitions import ConfigError
from moldau.config.listeners import is_loopback
from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.server.dev_certificates import LOCAL_HOSTS, DevCertificates
from moldau.server.signing import SigningError, find_signer, write_private

SECURITY_DIRECTORY: Final = "security"
STATE_FILE: Final = "state.json"
NODE: Final = "moldau-node"
ADMIN: Final = "admin"
USER: Final = "user"
MECHANISM: Final = "SCRAM-SHA-512"
CLIENTS, INTERNAL, CONTROLLER = "CLIENTS", "INTERNAL", "CONTROLLER"
PROTOCOLS: Final = f"{CLIENTS}:SASL_SSL,{INTERNAL}:SSL,{CONTROLLER}:SSL"
PASSWORD_BYTES: Final = 24
# Where others than this machine connect: enough for anybody, and not without an end.
CONNECTIONS_PER_ADDRESS: Final = 1000


@dataclass(slots=True)
class SecurityState:
    """What is kept between starts. `profile` is the name of the user's client profile, once it has one."""

    admin_password: str
    user_password: str
    profile: str = ""
    has_rights: bool = False
    """Whether the ordinary user was given its ACLs; what becomes of them later is the administrator's business."""

    def __repr__(self) -> str:
        return "SecurityState(passwords hidden)"


class ClusterSecurity:
    """The directory `security` of one cluster."""

    def __init__(self, cluster_directory: Path) -> None:
        self.directory = cluster_directory / SECURITY_DIRECTORY
        self.state = SecurityState("", "")

    @property
    def authority(self) -> Path:
        return self.directory / "ca.pem"

    def prepare(self, host: str) -> None:
        """Makes what is missing and renews what is due; ConfigError with a sentence."""
        try:
            certificates = DevCertificates(self.directory, find_signer(), has_pkcs12=False)
            certificates.ensure_authority()
            certificates.ensure(NODE, NODE, [*LOCAL_HOSTS, host])
        except SigningError as error:
            raise ConfigError(str(error)) from None
        os.chmod(self.directory, 0o700)
        self.state = self._read_state()
        self.keep_state()

    def _read_state(self) -> SecurityState:
        path = self.directory / STATE_FILE
        try:
            return SecurityState(**json.loads(path.read_text()))
        except FileNotFoundError:
            return SecurityState(secrets.token_urlsafe(PASSWORD_BYTES), secrets.token_urlsafe(PASSWORD_BYTES))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{path} is damaged ({error}): repair it, or start anew in another --data-dir") from None

    def keep_state(self) -> None:
        write_private(self.directory / STATE_FILE, (json.dumps(asdict(self.state), indent=1) + "\n").encode())

    def first_users(self) -> list[str]:
        """As `storage format --add-scram` takes them; they count when a node is formatted, and not later."""
        users = {ADMIN: self.state.admin_password, USER: self.state.user_password}
        return [f"{MECHANISM}=[name={name},password={password}]" for name, password in users.items()]


def node_settings(cluster_directory: Path, is_broker: bool, is_controller: bool, host: str) -> dict[str, str]:
    """What a node of a secured cluster has besides its listeners."""
    directory = cluster_directory / SECURITY_DIRECTORY
    settings = {
        "listener.security.protocol.map": PROTOCOLS,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / f"{NODE}.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"User:{ADMIN};User:CN={NODE}",
    }
    if is_controller:
        settings[f"listener.name.{CONTROLLER.lower()}.ssl.client.auth"] = "required"
    if is_broker:
        settings[f"listener.name.{INTERNAL.lower()}.ssl.client.auth"] = "required"
        settings[f"listener.name.{CLIENTS.lower()}.sasl.enabled.mechanisms"] = MECHANISM
        settings["inter.broker.listener.name"] = INTERNAL
        if not is_loopback(host):
            settings["max.connections.per.ip"] = str(CONNECTIONS_PER_ADDRESS)
    return settings
