"""UpdateFeatures: raises or lowers finalized feature levels. Versions 0-2 (KIP-584, KIP-778)."""

from __future__ import annotations

from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.update_features_request import UpdateFeaturesRequest
from moldau.protocol.messages.update_features_response import UpdateFeaturesResponse
from moldau.security.rights import ALTER


def handle_update_features(call: Call, request: UpdateFeaturesRequest) -> None:
    def failed(error: KafkaError) -> UpdateFeaturesResponse:
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)

    submit(call, lambda controller: controller.update_features(request, call.version, call.now_ms), failed, ALTER)
