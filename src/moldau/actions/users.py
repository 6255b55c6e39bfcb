"""Users of SCRAM: who there is, new ones, other passwords, deleting them. Passwords do not leave the client."""

from __future__ import annotations

from moldau.actions.calls import Call, changing, reading
from moldau.actions.refusals import Refused
from moldau.client.admin import ScramDeletion, ScramMechanism, ScramUpsertion


async def list_users(call: Call) -> object:
    found = await call.viewer.clients.ask(lambda admin: admin.describe_user_scram_credentials())
    return {
        "rows": [
            {
                "user": user,
                "credentials": [
                    {"mechanism": _name(each.mechanism), "iterations": each.iterations} for each in outcome.get()
                ],
            }
            for user, outcome in sorted(found.items())
            if outcome.error is None
        ],
        "mechanisms": [_name(each) for each in ScramMechanism if each > 0],
    }


def _name(mechanism: ScramMechanism) -> str:
    return mechanism.name.replace("_", "-")


def _mechanism(call: Call) -> ScramMechanism:
    name = call.text("mechanism").replace("-", "_")
    if name not in ScramMechanism.__members__:
        raise Refused(f"There is no mechanism {name!r}.")
    return ScramMechanism[name]


async def set_password(call: Call) -> object:
    """A new user, or another password for one."""
    user = call.target = call.text("user").strip()
    mechanism = _mechanism(call)
    call.details = {"mechanism": _name(mechanism)}
    password = call.text("password")
    if not user or not password:
        raise Refused("Give a user and a password.")
    upsertion = ScramUpsertion(user, password, mechanism)
    (await call.viewer.clients.ask(lambda admin: admin.alter_user_scram_credentials([upsertion])))[user].get()
    return {}


async def delete_credentials(call: Call) -> object:
    user = call.target = call.text("user")
    mechanism = _mechanism(call)
    call.details = {"mechanism": _name(mechanism)}
    if call.text("confirmed") != user:
        raise Refused("The name that was typed is not the user's.")
    deletion = ScramDeletion(user, mechanism)
    (await call.viewer.clients.ask(lambda admin: admin.alter_user_scram_credentials([deletion])))[user].get()
    return {}


ROUTES = [
    reading("/api/users", list_users),
    changing("/api/users/set", "set password", set_password),
    changing("/api/users/delete", "delete credentials", delete_credentials),
]
