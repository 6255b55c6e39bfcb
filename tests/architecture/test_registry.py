"""Every API in the registry is complete: a row in the table of keys, a schema, messages and a handler."""

from __future__ import annotations

import ast
import re

import pytest

from moldau.api import registry
from moldau.protocol import api_keys
from tests.architecture.source_tree import ROOT, modules

SERVED = sorted({*registry.BROKER_HANDLERS, *registry.CONTROLLER_HANDLERS})


def name_of(key: int) -> str:
    return api_keys.BY_KEY[key].name if key in api_keys.BY_KEY else str(key)


@pytest.mark.parametrize("key", SERVED, ids=name_of)
def test_an_api_in_the_registry_has_a_schema_and_messages(key: int) -> None:
    """A new API is a schema, a handler in its family's file and one line in the registry."""
    api = api_keys.BY_KEY[key]
    hyphenated = re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", api.name).lower()
    schema = ROOT / "schemas" / "messages" / f"{key:03d}-{hyphenated}.txt"
    assert schema.is_file(), f"{api.name} has no {schema.relative_to(ROOT)}"
    for cls in (api_keys.request_class(key), api_keys.response_class(key)):
        assert key == cls.API_KEY
        assert api.highest_version == cls.HIGHEST_VERSION


@pytest.mark.parametrize("on_controller", [False, True], ids=["broker", "controller"])
def test_a_line_in_the_registry_leads_to_a_handler(on_controller: bool) -> None:
    """Its module exists, the function is there and says what it does, and the listener may serve the key."""
    wrong = []
    for key in registry.handled_keys(on_controller):
        api = api_keys.BY_KEY[key]
        if not (api.on_controller if on_controller else api.on_broker):
            wrong.append(f"{api.name} does not belong on this listener")
        try:
            handler = registry.load_handler(key, on_controller)
        except (ImportError, AttributeError) as error:
            wrong.append(f"{api.name}: {error}")
            continue
        assert handler is not None
        if not handler.__name__.startswith("handle_"):
            wrong.append(f"{api.name}: {handler.__name__} should be named handle_…")
    assert not wrong, "\n".join(wrong)


def test_a_handler_is_in_the_registry() -> None:
    """Whoever writes `handle_name(call, request)` and forgets its line would never be called."""
    registered = {f"moldau.api.{name}" for name in registry.BROKER_HANDLERS.values()}
    registered |= {f"moldau.api.{name}" for name in registry.CONTROLLER_HANDLERS.values()}
    forgotten = [
        f"{module.where(node)}: {node.name}"
        for module in modules()
        if module.layer == "api"
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("handle_") and len(node.args.args) == 2
        if f"{module.name}.{node.name}" not in registered
    ]
    assert not forgotten, "add a line to api/registry.py:\n" + "\n".join(forgotten)
