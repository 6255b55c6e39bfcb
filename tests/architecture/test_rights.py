"""Every API checks the rights of who asks, or says here why it need not."""

from __future__ import annotations

import ast

import pytest

from moldau.api import registry
from moldau.protocol import api_table as api
from moldau.protocol.api_keys import BY_KEY
from tests.architecture.source_tree import Module, modules

CHECKS = "moldau.api.authorize"
FORWARD = "moldau.api.forward"
OPERATION_AT = 3
"""Where `submit` is told which operation on the cluster the controller has to check."""

# Whoever is connected may ask this.
NONE = {
    (False, api.API_VERSIONS): "what a broker offers is told before anybody has logged in",
    (True, api.API_VERSIONS): "what a controller offers is told before anybody has logged in",
    (False, api.SASL_HANDSHAKE): "part of the login itself",
    (True, api.SASL_HANDSHAKE): "part of the login itself",
    (False, api.SASL_AUTHENTICATE): "part of the login itself",
    (True, api.SASL_AUTHENTICATE): "part of the login itself",
    (False, api.GET_TELEMETRY_SUBSCRIPTIONS): "clients are asked about themselves",
    (False, api.PUSH_TELEMETRY): "clients tell of themselves",
    (False, api.RENEW_DELEGATION_TOKEN): "its owner and renewers may, whom the controller knows",
    (True, api.RENEW_DELEGATION_TOKEN): "its owner and renewers may",
    (False, api.EXPIRE_DELEGATION_TOKEN): "its owner and renewers may, whom the controller knows",
    (True, api.EXPIRE_DELEGATION_TOKEN): "its owner and renewers may",
}
HANDLERS = [
    *((False, key, path) for key, path in registry.BROKER_HANDLERS.items()),
    *((True, key, path) for key, path in registry.CONTROLLER_HANDLERS.items()),
]

Place = tuple[str, str]
"""A module and a function or class at its top."""


def api_modules() -> dict[str, Module]:
    return {module.name: module for module in modules() if module.layer == "api"}


def imported(module: Module) -> dict[str, Place]:
    """Names that a module has from others, wherever in it they are imported."""
    found: dict[str, Place] = {}
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = (node.module or "", alias.name)
    return found


def is_check(place: Place, node: ast.Call) -> bool:
    if place == (FORWARD, "submit"):
        return len(node.args) > OPERATION_AT
    return place[0] == CHECKS


def has_check(start: Place, known: dict[str, Module]) -> bool:
    """Whether something that can be reached from a function asks for rights."""
    seen: set[Place] = set()
    left = [start]
    while left:
        place = left.pop()
        if place in seen or place[0] not in known or (place[0] in (CHECKS, FORWARD) and place != start):
            continue
        seen.add(place)
        module = known[place[0]]
        names = imported(module)
        for top in module.tree.body:
            if not isinstance(top, ast.FunctionDef | ast.ClassDef) or top.name != place[1]:
                continue
            for node in ast.walk(top):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    if is_check(names.get(node.func.id, (place[0], node.func.id)), node):
                        return True
                if isinstance(node, ast.Name):
                    left.append(names.get(node.id, (place[0], node.id)))
    return False


@pytest.mark.parametrize(
    ("on_controller", "key", "path"),
    HANDLERS,
    ids=[f"{'controller' if on_controller else 'broker'}-{BY_KEY[key].name}" for on_controller, key, _ in HANDLERS],
)
def test_a_handler_checks_rights(on_controller: bool, key: int, path: str) -> None:
    module, _, function = path.partition(".")
    checks = has_check((f"moldau.api.{module}", function), api_modules())
    excuse = NONE.get((on_controller, key))
    assert checks != (excuse is not None), (
        f"{BY_KEY[key].name} has no check of rights: ask moldau.api.authorize, in Kafka's order, or say why not in NONE"
        if not checks
        else f"{BY_KEY[key].name} checks rights and is in NONE: take it out there"
    )


def test_a_handler_without_a_check_is_found() -> None:
    """The search follows calls through classes and modules, and a verb without an operation is no check."""
    text = """
from moldau.api.authorize import may
from moldau.api.forward import submit

class Question:
    def decide(self): return may(1)

def good(call): Question()
def passed_on(call): submit(call, 1, 2, 3)
def bad(call): submit(call, 1, 2)
"""
    path = next(iter(api_modules().values())).path.with_name("made_up.py")
    known = {"moldau.api.made_up": Module(path, text, ast.parse(text))}
    assert has_check(("moldau.api.made_up", "good"), known)
    assert has_check(("moldau.api.made_up", "passed_on"), known)
    assert not has_check(("moldau.api.made_up", "bad"), known)
