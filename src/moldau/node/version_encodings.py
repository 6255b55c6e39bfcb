"""Responses to ApiVersions, encoded once for each kind of listener and version and kept while nothing changes.

It is the first request of every connection, and its response the same for all: some seventy rows that depend on the
configuration, and the features of the cluster.
"""

from __future__ import annotations

from moldau.config.broker_config import BrokerConfig
from moldau.protocol.messages.api_versions_response import ApiVersionsResponse
from moldau.protocol.primitives import Writer


class EncodedVersions(ApiVersionsResponse):
    """A whole response that is encoded already, for clients that need not wait. Only the error code can be read."""

    def __init__(self, data: bytes) -> None:
        self.error_code = 0
        self.data = data

    def encode(self, writer: Writer, version: int) -> None:
        writer.raw(self.data)


class VersionEncodings:
    """Those of one node; no more than it has versions of ApiVersions and kinds of listeners."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bool, int], EncodedVersions] = {}
        self._config: BrokerConfig | None = None
        self._features: tuple[int, dict[str, int]] = (-1, {})

    def look_at(self, config: BrokerConfig, features_epoch: int, features: dict[str, int]) -> None:
        """Forgets everything if something that responses depend on is not what it was."""
        if config is not self._config or self._features != (features_epoch, features):
            self._kept.clear()
            self._config = config
            self._features = (features_epoch, features)

    def find(self, is_controller_listener: bool, version: int) -> EncodedVersions | None:
        return self._kept.get((is_controller_listener, version))

    def keep(self, is_controller_listener: bool, version: int, response: ApiVersionsResponse) -> EncodedVersions:
        writer = Writer()
        response.encode(writer, version)
        encoded = EncodedVersions(writer.to_bytes())
        self._kept[is_controller_listener, version] = encoded
        return encoded
