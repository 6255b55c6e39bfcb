"""help() and completion: what a user sees of the client at the prompt, compiled and interpreted."""

from __future__ import annotations

import asyncio
import inspect
import pydoc

import pytest

import moldau.client
import moldau.client.admin
from moldau.client.delivery import DeliveryFuture

CLASSES = [
    found for name in moldau.client.__all__ if inspect.isclass(found := getattr(moldau.client, name)) and name.isalnum()
]


@pytest.mark.parametrize("client", [*CLASSES, DeliveryFuture], ids=lambda client: client.__name__)
def test_every_class_and_method_for_users_is_documented(client: type) -> None:
    assert client.__doc__ and client.__doc__.strip()
    bare = [
        name
        for name, member in vars(client).items()
        if not name.startswith("_")
        and (callable(member) or isinstance(member, property))
        and not (inspect.getdoc(member) or "").strip()
    ]
    assert bare == []


def test_help_shows_what_a_producer_does() -> None:
    text = pydoc.plain(pydoc.render_doc(moldau.client.Producer))
    assert "Sends records to topics" in text and "Queues one record; blocks up to max.block.ms" in text
    assert "Whether there is a transaction to commit" in text, "properties too"


def test_completion_knows_the_names_that_are_not_imported_yet() -> None:
    assert set(moldau.client.__all__) <= set(dir(moldau.client))
    assert set(moldau.client.admin.__all__) <= set(dir(moldau.client.admin))


def test_the_asynchronous_admin_shows_the_methods_of_the_other() -> None:
    admin = moldau.client.AsyncAdmin("broker:9092")
    assert "create_topics" in dir(admin)
    assert "topics" in (inspect.getdoc(admin.create_topics) or "").lower()
    asyncio.run(admin.close())
