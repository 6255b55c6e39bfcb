"""What went wrong, as a response: a status for programs and a row with a sentence for people."""

from __future__ import annotations

from starlette.responses import JSONResponse

from moldau.actions.refusals import Refused, error_row, sentence
from moldau.client.errors import ClientError, NetworkError, RequestTimeoutError, UnsupportedVersionError
from moldau.protocol import errors as codes

NOT_FOUND = {
    codes.UNKNOWN_TOPIC_OR_PARTITION,
    codes.UNKNOWN_TOPIC_ID,
    codes.GROUP_ID_NOT_FOUND,
    codes.TRANSACTIONAL_ID_NOT_FOUND,
    codes.RESOURCE_NOT_FOUND,
}
FORBIDDEN = {
    codes.TOPIC_AUTHORIZATION_FAILED,
    codes.GROUP_AUTHORIZATION_FAILED,
    codes.CLUSTER_AUTHORIZATION_FAILED,
    codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    codes.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    codes.SASL_AUTHENTICATION_FAILED,
}


class LoginWanted(Refused):
    """Nobody is logged in, and somebody has to be."""

    def __init__(self, message: str = "Log in first.") -> None:
        super().__init__(message, 401, "LOGIN")


def status_of(error: ClientError) -> int:
    """The HTTP status that comes nearest to an error of Kafka's."""
    if isinstance(error, NetworkError | RequestTimeoutError):
        return 503
    if isinstance(error, UnsupportedVersionError):
        return 501
    if error.code in NOT_FOUND:
        return 404
    return 403 if error.code in FORBIDDEN else 400


def error_response(error: Exception) -> JSONResponse | None:
    """The response for an error that was to be expected; None for any other."""
    if isinstance(error, Refused):
        return JSONResponse(error_row(error), error.status)
    if isinstance(error, ClientError):
        return JSONResponse(error_row(error), status_of(error))
    if isinstance(error, ValueError | TypeError):
        # The client refuses what makes no sense before it sends anything.
        return JSONResponse({"error": "INVALID_REQUEST", "message": sentence(str(error)), "away": False}, 400)
    return None
