"""help() and completion: what a user sees of the client at the prompt, compiled and interpreted."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
from types import ModuleType

import pytest

import moldau.client
import moldau.client.admin
import moldau.client.assignors
import moldau.client.errors
import moldau.client.opentelemetry
import moldau.client.prometheus
import moldau.client.tracing
import moldau.testing
from moldau.client import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    AsyncShareConsumer,
    Consumer,
    Producer,
    ShareConsumer,
)

FACES = [
    moldau.client,
    moldau.client.admin,
    moldau.client.assignors,
    moldau.client.errors,
    moldau.client.opentelemetry,
    moldau.client.prometheus,
    moldau.client.tracing,
    moldau.testing,
]
# Each client, its asyncio twin, and what only one of them has: cancelling a task is what wakes a thread.
TWINS = [
    (Producer, AsyncProducer, set[str](), {"send_and_wait"}),
    (Consumer, AsyncConsumer, {"wakeup", "interrupt_poll", "commit_async"}, set[str]()),
    (ShareConsumer, AsyncShareConsumer, {"wakeup", "interrupt_poll"}, set[str]()),
    (Admin, AsyncAdmin, set[str](), set[str]()),
]
SECONDS = {"timeout", "timeout_s", "timeout_seconds", "seconds"}


def names_in(face: ModuleType) -> list[str]:
    return list(getattr(face, "__all__", [name for name in vars(face) if not name.startswith("_")]))


def classes_in(face: ModuleType) -> list[type]:
    found = [getattr(face, name) for name in names_in(face)]
    return [each for each in found if inspect.isclass(each) and each.__module__.startswith("moldau.")]


def methods_of(face: type) -> dict[str, object]:
    """What users may call or read by name, also what it has from a base of ours."""
    ours = [base for base in face.__mro__ if base.__module__.startswith("moldau.")]
    found: dict[str, object] = {}
    for base in reversed(ours):
        found |= {name: member for name, member in vars(base).items() if not name.startswith("_")}
    return {name: member for name, member in found.items() if is_method(member)}


def is_method(member: object) -> bool:
    return callable(member) or isinstance(member, property | staticmethod | classmethod)


def doc_of(member: object) -> str:
    return (getattr(member, "__doc__", None) or "").strip()


CLASSES = list(dict.fromkeys(each for face in FACES for each in classes_in(face)))


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_every_function_for_users_is_documented(face: ModuleType) -> None:
    found = {name: getattr(face, name) for name in getattr(face, "__all__", ())}
    assert [name for name, each in found.items() if inspect.isfunction(each) and not doc_of(each)] == []


@pytest.mark.parametrize("client", CLASSES, ids=lambda client: client.__name__)
def test_every_class_and_method_for_users_is_documented(client: type) -> None:
    assert doc_of(client) and not doc_of(client).startswith(f"{client.__name__}("), "not what Python makes up"
    assert [name for name, member in methods_of(client).items() if not doc_of(member)] == []


@pytest.mark.parametrize("client", CLASSES, ids=lambda client: client.__name__)
def test_timeouts_are_milliseconds(client: type) -> None:
    for name, member in {"": client, **methods_of(client)}.items():
        try:
            parameters = set(inspect.signature(member).parameters)  # type: ignore[arg-type]
        except (TypeError, ValueError):  # a property, or a class that is made by its base
            continue
        assert not parameters & SECONDS, name


@pytest.mark.parametrize(
    ("client", "twin", "only_here", "only_there"), TWINS, ids=[twin.__name__ for _, twin, *_ in TWINS]
)
def test_the_asyncio_face_has_the_same_methods(
    client: type, twin: type, only_here: set[str], only_there: set[str]
) -> None:
    # In a compiled class a property is like any other attribute.
    here, there = ({name for name, member in methods_of(face).items() if callable(member)} for face in (client, twin))
    assert here - there == only_here and there - here == only_there
    for name in here & there:
        taken = list(inspect.signature(getattr(client, name)).parameters)
        assert list(inspect.signature(getattr(twin, name)).parameters) == taken, name
    properties = {name for name, member in inspect.getmembers(twin) if isinstance(member, property)}
    assert properties <= set(dir(client))


@pytest.mark.parametrize(("client", "more"), [(Producer, 4), (Consumer, 2), (ShareConsumer, 3), (Admin, 0)])
def test_constructors_name_what_users_choose(client: type, more: int) -> None:
    names = list(inspect.signature(client).parameters)
    functions = [name for name in names if name.endswith(("serializer", "partitioner")) or name.startswith("on_")]
    assert len(functions) == more
    assert [name for name in names if name not in functions] == ["bootstrap_servers", "config", "more"]


def test_help_shows_what_a_producer_does() -> None:
    text = pydoc.plain(pydoc.render_doc(moldau.client.Producer))
    assert "Sends records to topics" in text and "Queues one record; blocks up to max.block.ms" in text
    assert "Whether there is a transaction to commit" in text, "properties too"
    assert "send_encoded" not in text and "network" not in text, "what is for others than users"


def test_help_of_the_package_is_a_manual() -> None:
    text = pydoc.plain(pydoc.render_doc(moldau.client))
    manual, _, reference = text.partition("PACKAGE CONTENTS")
    for client in ("Producer", "Consumer", "ShareConsumer", "Admin", "AsyncProducer"):
        assert f'{client}("localhost:9092"' in manual, "an example of each"
        assert f"class {client}(" in reference
    tree, _, _ = reference.partition("class AcknowledgeType")
    assert max(map(len, tree.splitlines())) < 1_000, "the bases of Admin are named once"


def test_completion_knows_the_names_that_are_not_imported_yet() -> None:
    for face in (moldau.client, moldau.client.admin, moldau.testing):
        assert set(names_in(face)) <= set(dir(face))


def test_the_asynchronous_admin_shows_the_methods_of_the_other() -> None:
    admin = moldau.client.AsyncAdmin("broker:9092")
    assert "create_topics" in dir(admin)
    assert "topics" in (inspect.getdoc(admin.create_topics) or "").lower()
    asyncio.run(admin.close())
    assert "create_topics(self, topics" in pydoc.plain(pydoc.render_doc(AsyncAdmin))
