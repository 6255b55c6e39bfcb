"""Profiles: named client settings on disk, one `.properties` file each, and which of them is in use.

A profile is a client.properties file as Kafka's own tools take it with --command-config, so that such a file can be
copied in as it is. They live in $XDG_CONFIG_HOME/moldau/profiles (~/.config/moldau/profiles); the file `current` beside
the directory names the one in use. Files can be read by their owner alone, as they may hold passwords.
"""

from __future__ import annotations

import os
import re

BOOTSTRAP_SERVERS = "bootstrap.servers"
_ENDING = ".properties"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
# Values of settings with such names are never printed.
_SECRET = re.compile(r"password|secret|token|jaas|credential|\.key$", re.IGNORECASE)


class ProfileError(Exception):
    """A profile is missing, cannot be read or has no proper name; the text says what to do."""


def home() -> str:
    """The directory of Moldau's own settings."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "moldau")


def path_of(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ProfileError(f"{name!r} cannot be the name of a profile: use letters, digits, '.', '_' and '-'.")
    return os.path.join(home(), "profiles", name + _ENDING)


def names() -> list[str]:
    """All profiles, by name."""
    try:
        files = os.listdir(os.path.join(home(), "profiles"))
    except OSError:
        return []
    stems = [file.removesuffix(_ENDING) for file in files if file.endswith(_ENDING)]
    return sorted(stem for stem in stems if _NAME.fullmatch(stem))


def current() -> str | None:
    """The profile in use, None if there is none."""
    try:
        with open(os.path.join(home(), "current"), encoding="utf-8") as file:
            return file.read(200).strip() or None
    except OSError:
        return None


def exists(name: str) -> bool:
    return os.path.exists(path_of(name))


def read(name: str) -> dict[str, str]:
    """The settings of a profile."""
    path = path_of(name)
    try:
        return read_file(path)
    except FileNotFoundError:
        raise ProfileError(f"There is no profile {name}. {_known()}") from None


def read_file(path: str) -> dict[str, str]:
    """The settings of a client.properties file."""
    from moldau.config.properties import parse_properties

    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        return parse_properties(text)
    except ValueError as error:
        raise ProfileError(f"{path} is not a proper .properties file: {error}.") from None


def _known() -> str:
    found = names()
    if not found:
        return "`moldau profile create NAME -b HOST:PORT` makes one."
    return f"There are: {', '.join(found)}."


def write(name: str, settings: dict[str, str]) -> None:
    """Writes a profile, whole or not at all."""
    from moldau.config.properties import format_properties

    _write_private(path_of(name), format_properties(settings))


def use(name: str | None) -> None:
    """Makes a profile the one in use; None: none is."""
    if name is not None:
        read(name)
        _write_private(os.path.join(home(), "current"), name + "\n")
        return
    try:
        os.remove(os.path.join(home(), "current"))
    except FileNotFoundError:
        pass


def delete(name: str) -> None:
    try:
        os.remove(path_of(name))
    except FileNotFoundError:
        raise ProfileError(f"There is no profile {name}. {_known()}") from None
    if current() == name:
        use(None)


def _write_private(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fresh = f"{path}.{os.getpid()}.new"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(fresh, path)


def shown(setting: str, value: str) -> str:
    """The value as it may be printed."""
    return "[hidden]" if _SECRET.search(setting) else value
