"""What clients of `moldau up --secure` are given: profiles, files for other clients, rights of the ordinary user."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click

from moldau.cli import profiles
from moldau.cli.client_lines import Access, java_settings, librdkafka_settings, plain_lines, properties_lines
from moldau.cli.output import print_note
from moldau.server.local_cluster import LocalCluster
from moldau.server.secured_cluster import ADMIN, MECHANISM, SECURITY_DIRECTORY, USER, ClusterSecurity
from moldau.server.signing import write_private

DEFAULT_PROFILE = "secure"
TRUST_STORE = "ssl.truststore.location"
NUMBERS_TRIED = 100
GRANT_MS = 30_000
ADMIN_SUFFIX = "-admin"


class ClientFiles(NamedTuple):
    """Of one user: client.properties as Java and our tools read it, and the same for librdkafka."""

    java: Path
    librdkafka: Path


class SecuredClients:
    """How clients get into one secured cluster."""

    def __init__(self, cluster: LocalCluster, security: ClusterSecurity) -> None:
        self._cluster = cluster
        self._security = security
        self.profile = ""
        self.files: dict[str, ClientFiles] = {}

    def access(self, user: str) -> Access:
        state = self._security.state
        password = state.admin_password if user == ADMIN else state.user_password
        servers, authority = self._cluster.bootstrap_servers, self._security.authority
        return Access(servers, authority, username=user, password=password, mechanism=MECHANISM)

    def write(self, wanted_profile: str | None) -> None:
        """Files beside the data, and profiles; ProfileError for a name that is somebody else's."""
        state = self._security.state
        self.profile = self._profile_name(wanted_profile or state.profile)
        state.profile = self.profile
        self._security.keep_state()
        for user in (USER, ADMIN):
            directory, access = self._security.directory, self.access(user)
            files = ClientFiles(directory / f"{user}.properties", directory / f"{user}.librdkafka.conf")
            _write_lines(files.java, properties_lines(java_settings(access)))
            _write_lines(files.librdkafka, plain_lines(librdkafka_settings(access)))
            self.files[user] = files
            profiles.write(self.profile_of(user), java_settings(access))

    def profile_of(self, user: str) -> str:
        return self.profile + ADMIN_SUFFIX if user == ADMIN else self.profile

    def _profile_name(self, wanted: str) -> str:
        """The one that was asked for or had before, else the first that is free."""
        if wanted:
            if not self._may_have(wanted):
                raise profiles.ProfileError(
                    f"There is a profile {wanted} or {wanted}{ADMIN_SUFFIX} of something else already: choose another "
                    "name with --profile."
                )
            return wanted
        candidates = [DEFAULT_PROFILE, *(f"{DEFAULT_PROFILE}-{number}" for number in range(2, NUMBERS_TRIED))]
        for name in candidates:
            if self._may_have(name):
                return name
        raise profiles.ProfileError(f"There are profiles {candidates[0]} to {candidates[-1]}: name one with --profile.")

    def _may_have(self, name: str) -> bool:
        """Neither of the two names is taken, except by this cluster or by one whose files are gone."""
        for each in (name, name + ADMIN_SUFFIX):
            if profiles.exists(each):
                trusted = profiles.read(each).get(TRUST_STORE, "")
                is_of_a_cluster = Path(trusted).parent.name == SECURITY_DIRECTORY
                if trusted != str(self._security.authority) and not (is_of_a_cluster and not Path(trusted).exists()):
                    return False
        return True

    def grant(self) -> None:
        """Lets the ordinary user use all topics, groups and transactional ids, once; ClientError where it fails."""
        from moldau.client.admin import AclBinding, AclOperation, Admin, ResourceType

        state = self._security.state
        if state.has_rights:
            return
        principal = f"User:{USER}"
        acls = [
            AclBinding(kind, "*", principal, AclOperation.ALL)
            for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
        ]
        with Admin(config=dict(java_settings(self.access(ADMIN)))) as admin:
            for outcome in admin.create_acls(acls, timeout_ms=GRANT_MS).values():
                outcome.get()
        state.has_rights = True
        self._security.keep_state()

    def json(self) -> dict[str, object]:
        return {
            user: {
                "profile": self.profile_of(user),
                "mechanism": MECHANISM,
                "properties": str(files.java),
                "librdkafka": str(files.librdkafka),
            }
            for user, files in self.files.items()
        }

    def print_lines(self) -> None:
        """No password is printed: it is in the files, which only their owner can read."""
        user, servers = self.files[USER], self._cluster.bootstrap_servers
        click.echo(f"  moldau          moldau topic list --profile {self.profile}")
        click.echo(f"  administrator   moldau user list --profile {self.profile_of(ADMIN)}")
        click.echo(
            f"  Java            kafka-topics.sh --bootstrap-server {servers} --command-config {user.java} --list"
        )
        click.echo(f"  librdkafka      kcat -F {user.librdkafka} -L")
        print_note(f"The passwords are in {self._security.directory}, which only you can read.")


def _write_lines(path: Path, lines: list[str]) -> None:
    write_private(path, "".join(f"{line}\n" for line in lines).encode())
