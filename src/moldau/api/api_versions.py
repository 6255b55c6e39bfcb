"""ApiVersions: what this node can do. The first thing every client asks.

Versions 0-4. The response to a version above ours is in version 0 with UNSUPPORTED_VERSION and the one key a client
needs to ask again. Version 3 brings the client's name (KIP-511) and leaves out features whose lowest level is 0, which
old clients cannot read; version 4 shows them.
"""

from __future__ import annotations

import re

from moldau.api.call import Call
from moldau.api.registry import highest_version, offered_keys
from moldau.protocol import errors
from moldau.protocol.api_keys import BY_KEY
from moldau.protocol.api_table import API_VERSIONS
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
FIRST_SOFTWARE_NAME_VERSION = 3
FIRST_ZERO_LEVEL_VERSION = 4


def handle_api_versions(call: Call, request: ApiVersionsRequest) -> None:
    if call.version >= FIRST_SOFTWARE_NAME_VERSION:
        names = (request.client_software_name, request.client_software_version)
        if not all(SOFTWARE_NAME.fullmatch(name) for name in names):
            call.respond(ApiVersionsResponse(error_code=errors.INVALID_REQUEST))
            return
        call.context.software_name, call.context.software_version = names
    if call.quotas.is_on and call.charge(None) > 0:
        call.respond(describe(call))  # how long to wait is said to this client only
    else:
        call.respond(described_before(call))


def described_before(call: Call) -> ApiVersionsResponse:
    """The response as somebody else got it, unless something has changed since."""
    node, encodings = call.node, call.node.version_encodings
    encodings.look_at(node.config, node.features_epoch(), node.finalized_features())
    on_controllers = call.context.is_controller_listener
    found = encodings.find(on_controllers, call.version)
    return found if found is not None else encodings.keep(on_controllers, call.version, describe(call))


def describe(call: Call) -> ApiVersionsResponse:
    response = ApiVersionsResponse()
    for key in offered_keys(call.context.is_controller_listener, call.node.config):
        api = BY_KEY[key]
        newest = highest_version(key, call.node.config)
        response.api_keys.append(ApiVersion(api_key=key, min_version=api.lowest_advertised, max_version=newest))
    for name, (lowest, highest) in call.node.supported_features().items():
        if lowest > 0 or call.version >= FIRST_ZERO_LEVEL_VERSION:
            response.supported_features.append(SupportedFeatureKey(name=name, min_version=lowest, max_version=highest))
    response.finalized_features_epoch = call.node.features_epoch()
    for name, level in call.node.finalized_features().items():
        response.finalized_features.append(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        )
    return response


def unsupported_version_response() -> ApiVersionsResponse:
    api = BY_KEY[API_VERSIONS]
    own = ApiVersion(api_key=API_VERSIONS, min_version=api.lowest_version, max_version=api.highest_version)
    return ApiVersionsResponse(error_code=errors.UNSUPPORTED_VERSION, api_keys=[own])
