"""What went wrong, as a row: a name for programs, a sentence for people, and whether waiting may help."""

from __future__ import annotations

from moldau.client.errors import ClientError, NetworkError, UnsupportedVersionError


class Refused(Exception):
    """The action itself says no, whatever the brokers think; the text is a sentence for people."""

    def __init__(self, message: str, status: int = 400, name: str = "INVALID_REQUEST") -> None:
        """status: the one of HTTP that comes nearest."""
        super().__init__(message)
        self.message = message
        self.status = status
        self.name = name


def error_row(error: ClientError | Refused) -> dict[str, object]:
    """An error inside a result, for a part of it that could not be had."""
    if isinstance(error, Refused):
        return {"error": error.name, "message": error.message, "away": False}
    away = isinstance(error, NetworkError)
    return {
        "error": error.name,
        "message": sentence(error.message),
        "away": away,
        "unsupported": isinstance(error, UnsupportedVersionError),
    }


def sentence(text: str) -> str:
    """The text with a full stop."""
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
