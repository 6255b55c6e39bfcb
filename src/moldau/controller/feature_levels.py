"""Finalized feature levels: UpdateFeatures with its upgrade types, all or nothing."""

from __future__ import annotations

from collections.abc import Callable

from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.metadata.features import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    metadata_version_name,
)
from moldau.metadata.model import BROKER_RESOURCE
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.protocol.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from moldau.protocol.stored.metadata_records import ConfigRecord, FeatureLevelRecord, NoOpRecord

UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3

ELR_NEEDS_METADATA_VERSION = 23


class FeatureLevels:
    def __init__(self, state: ControllerState) -> None:
        self.state = state
        self.kraft_version = 0
        """The level of kraft.version, which is kept by the quorum and not in a metadata record."""
        self.upgrade_kraft_version: Callable[[int, bool], None] | None = None
        """Raises it in the quorum; the second argument says that it is only to be checked."""

    def update(self, request: UpdateFeaturesRequest, version: int) -> Result:
        records: list[VersionedRecord] = []
        response = UpdateFeaturesResponse(error_message=None)
        failed: KafkaError | None = None
        proposed = dict(self.state.image.features)
        for update in request.feature_updates:
            try:
                records += self._update_one(update, version, proposed, request.validate_only)
            except KafkaError as error:
                failed = failed or error
        if failed is not None:
            # One bad level stops all.
            message = f"The update failed for all features since the following feature had an error: {failed.message}"
            return Result([], UpdateFeaturesResponse(error_code=failed.code, error_message=message))
        if version <= 1:
            response.results = [
                UpdatableFeatureResult(update.feature, errors.NONE, "NONE") for update in request.feature_updates
            ]
        return Result([] if request.validate_only else records, response)

    def _update_one(
        self, update: FeatureUpdateKey, version: int, proposed: dict[str, int], validate_only: bool
    ) -> list[VersionedRecord]:
        name, level = update.feature, update.max_version_level
        kind = update.upgrade_type
        if version == 0:
            kind = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
        if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            raise _invalid(name, level, "The controller does not support the given upgrade type.")
        if level < 0:
            raise _invalid(name, level, "A feature version cannot be less than 0.")
        self._check_supported(name, level)
        current = self._current(name)
        if level < current and kind == UPGRADE:
            raise _invalid(
                name,
                level,
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
                "downgrade.",
            )
        if level > current and kind != UPGRADE:
            raise _invalid(name, level, "Can't downgrade to a newer version.")
        if name == KRAFT_VERSION:
            return self._update_kraft_version(level, current, validate_only)
        if name == METADATA_VERSION:
            self._check_metadata_version(level, current, kind)
        if name == ELR_VERSION and level > 0 and proposed.get(METADATA_VERSION, 0) < ELR_NEEDS_METADATA_VERSION:
            needed = f"{ELR_NEEDS_METADATA_VERSION} ({metadata_version_name(ELR_NEEDS_METADATA_VERSION)})"
            raise _invalid(name, level, f"{name}={level} depends on {METADATA_VERSION} {needed}.")
        proposed[name] = level
        records: list[VersionedRecord] = [(FeatureLevelRecord(name, level), 0)]
        if name == ELR_VERSION and level > 0 and current == 0:
            records += self._elr_defaults()
        return records

    def _current(self, name: str) -> int:
        if name == KRAFT_VERSION:
            return self.kraft_version
        return self.state.image.features.get(name, 0)

    def _check_supported(self, name: str, level: int) -> None:
        supported = SUPPORTED_FEATURES.get(name)
        local = f"Local controller {self.state.node_id}"
        if supported is None:
            raise _invalid(name, level, f"{local} does not support this feature.")
        if level != 0 and not supported.low <= level <= supported.high:
            raise _invalid(name, level, f"{local} only supports versions {supported.low}-{supported.high}")
        for broker_id, broker in self.state.image.brokers.items():
            low, high = broker.features.get(name, (0, 0))
            if level != 0 and not low <= level <= high:
                kind = "does not support this feature." if high == 0 else f"only supports versions {low}-{high}"
                raise _invalid(name, level, f"Broker {broker_id} {kind}")
        for controller_id, controller in self.state.image.controllers.items():
            known = controller.features.get(name)
            if level != 0 and known is not None and not known.low <= level <= known.high:
                reason = f"Controller {controller_id} only supports versions {known.low}-{known.high}"
                raise _invalid(name, level, reason)

    def _update_kraft_version(self, level: int, current: int, validate_only: bool) -> list[VersionedRecord]:
        if level == current:
            return []
        if level < current:
            raise _invalid(KRAFT_VERSION, level, "Can't downgrade the version of this feature.")
        if self.upgrade_kraft_version is None:
            raise _invalid(KRAFT_VERSION, level, "There is no quorum here whose voters could be raised to it.")
        self.upgrade_kraft_version(level, validate_only)
        if not validate_only:
            self.kraft_version = level
        # The quorum wrote it. A record after it makes the response wait until it is committed.
        return [(NoOpRecord(), 0)]

    def _check_metadata_version(self, level: int, current: int, kind: int) -> None:
        if level < SUPPORTED_FEATURES[METADATA_VERSION].low:
            raise _invalid(METADATA_VERSION, level, "Unable to disable the metadata.version.")
        if level < current and kind == SAFE_DOWNGRADE:
            message = "Refusing to perform the requested downgrade because it might delete metadata information."
            raise _invalid(METADATA_VERSION, level, message)

    def _elr_defaults(self) -> list[VersionedRecord]:
        """The minimum must be the same everywhere, so it is written down as the cluster's."""
        defaults = self.state.image.broker_defaults()
        if "min.insync.replicas" in defaults:
            return []
        value = str(self.state.config.get_int("min.insync.replicas"))
        return [(ConfigRecord(BROKER_RESOURCE, "", "min.insync.replicas", value), 0)]


def _invalid(name: str, level: int, reason: str) -> KafkaError:
    return KafkaError(errors.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {reason}")
