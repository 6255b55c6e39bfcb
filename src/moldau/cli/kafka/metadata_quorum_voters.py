"""`kafka-metadata-quorum add-controller` and `remove-controller`: who votes in the metadata quorum."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.admin_tools import ask, read_config
from moldau.cli.kafka.options import JavaFailure
from moldau.protocol.uuids import uuid_from_text, uuid_to_text

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.admin.quorum import RaftEndpoint

TERSE = "TerseException"
VALID = "Is this a valid controller configuration file?"


def add_controller(admin: Admin, options: Any) -> str:
    """Makes the controller that the file of settings describes a voter; what was done."""
    if options.command_config is None:
        sentence = "You must supply the configuration file of the controller you are adding when using add-controller."
        raise JavaFailure(TERSE, sentence)
    settings = read_config(options.command_config)
    controller_id = _controller_id(settings)
    directory_id = _directory_id(settings)
    endpoints = _endpoints(settings)
    if not options.dry_run:
        ask("addRaftVoter", lambda: admin.add_raft_voter(controller_id, directory_id, endpoints))
    shown = ", ".join(f"{item.listener}://{item.host}:{item.port}" for item in endpoints)
    verb = "DRY RUN of adding" if options.dry_run else "Added"
    return f"{verb} controller {controller_id} with directory id {uuid_to_text(directory_id)} and endpoints: {shown}"


def remove_controller(admin: Admin, options: Any) -> str:
    """Takes a controller's vote away; what was done."""
    controller_id: int = options.controller_id
    if controller_id < 0:
        raise JavaFailure(TERSE, f"Invalid negative --controller-id: {controller_id}")
    text = options.controller_directory_id
    try:
        directory_id = uuid_from_text(text)
    except ValueError:
        sentence = (
            f"Failed to parse --controller-directory-id: Input string `{text}` decoded as something else than 16 bytes"
        )
        raise JavaFailure(TERSE, sentence) from None
    if not options.dry_run:
        ask("removeRaftVoter", lambda: admin.remove_raft_voter(controller_id, directory_id))
    verb = "DRY RUN of removing " if options.dry_run else "Removed "
    return f"{verb} KRaft controller {controller_id} with directory id {uuid_to_text(directory_id)}"


def _controller_id(settings: dict[str, str]) -> int:
    text = settings.get("node.id")
    if text is None:
        raise JavaFailure(TERSE, f"node.id not found in configuration file. {VALID}")
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text):
        raise JavaFailure("java.lang.NumberFormatException", f'For input string: "{text}"')
    if int(text) < 0:
        raise JavaFailure(TERSE, f"node.id was negative in configuration file. {VALID}")
    if "controller" not in settings.get("process.roles", ""):
        raise JavaFailure(TERSE, f"process.roles did not contain 'controller' in configuration file. {VALID}")
    return int(text)


def _directory_id(settings: dict[str, str]) -> bytes:
    """The id of the directory that has the metadata."""
    directory = settings.get("metadata.log.dir") or settings.get("log.dirs", "").split(",")[0].strip()
    if not directory:
        raise JavaFailure(TERSE, f"Neither metadata.log.dir nor log.dirs were found. {VALID}")
    try:
        found = read_config(os.path.join(directory, "meta.properties")).get("directory.id")
    except (OSError, JavaFailure):
        raise JavaFailure(TERSE, f"Unable to read meta.properties from {directory}") from None
    if found is None:
        raise JavaFailure(TERSE, f"No directory id found in {directory}")
    return uuid_from_text(found)


def _endpoints(settings: dict[str, str]) -> list[RaftEndpoint]:
    """Where the controller's listeners are."""
    from moldau.client.admin.quorum import RaftEndpoint

    names = [name.strip() for name in settings.get("controller.listener.names", "").split(",") if name.strip()]
    if not names:
        raise JavaFailure(TERSE, f"controller.listener.names was not found. {VALID}")
    known: dict[str, tuple[str, int]] = {}
    for text in f"{settings.get('listeners', '')},{settings.get('advertised.listeners', '')}".split(","):
        found = re.fullmatch(r"\s*(\w+)://\[?([^\]]*?)\]?:(\d+)\s*", text)
        if found is not None:
            known[found[1]] = (found[2] or "localhost", int(found[3]))
    for name in names:
        if name not in known:
            raise JavaFailure(TERSE, f"Cannot find information about controller listener name: {name}")
    return [RaftEndpoint(name, *known[name]) for name in names]
