"""SaslHandshake and SaslAuthenticate on listeners without SASL: a client that wants to log in is told that it cannot.

Versions 0-1 and 0-2.
"""

from __future__ import annotations

from moldau.api.call import Call
from moldau.protocol import errors
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from moldau.protocol.messages.sasl_handshake_response import SaslHandshakeResponse


def handle_sasl_handshake(call: Call, request: SaslHandshakeRequest) -> None:
    call.respond(SaslHandshakeResponse(error_code=errors.ILLEGAL_SASL_STATE))


def handle_sasl_authenticate(call: Call, request: SaslAuthenticateRequest) -> None:
    message = "SaslAuthenticate request received after successful authentication"
    call.respond(SaslAuthenticateResponse(error_code=errors.ILLEGAL_SASL_STATE, error_message=message))
