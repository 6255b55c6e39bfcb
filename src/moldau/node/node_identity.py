"""Whose the log directories are: all of them this node's and of the same cluster, and none the copy of another."""

from __future__ import annotations

import logging

from moldau.config.broker_config import BrokerConfig
from moldau.protocol.uuids import ZERO_UUID
from moldau.storage.disk import Disk
from moldau.storage.log_manager import CannotStart
from moldau.storage.meta_properties import DamagedMetaProperties, MetaProperties, read_meta_properties

logger = logging.getLogger("moldau.metadata")


def read_identity(config: BrokerConfig, disk: Disk) -> tuple[str, bytes]:
    """The ids of the cluster and of the directory with the metadata log; raises CannotStart. One of the other
    directories that cannot be read is simply offline."""
    own = config.metadata_log_dir
    try:
        properties = _identity_of(config, disk, own)
    except OSError as error:
        raise CannotStart(f"The metadata log directory {own} cannot be read: {error.strerror}") from error
    cluster_id = properties.cluster_id
    directory_id = properties.directory_id or ZERO_UUID
    seen = {directory_id: own}
    for directory in config.log_dirs:
        if directory == own:
            continue
        try:
            properties = _identity_of(config, disk, directory)
        except OSError as error:
            logger.error("cannot read log directory %s, it stays offline: %s", directory, error)
            continue
        if properties.cluster_id != cluster_id:
            stored = f"{directory} belongs to cluster {properties.cluster_id}"
            raise CannotStart(f"{stored}, {own} to {cluster_id}: take one of them out of log.dirs")
        other = seen.setdefault(properties.directory_id or directory.encode(), directory)
        if other != directory:
            raise CannotStart(f"{directory} has the directory.id of {other}: is it a copy?")
    return cluster_id, directory_id


def _identity_of(config: BrokerConfig, disk: Disk, directory: str) -> MetaProperties:
    try:
        properties = read_meta_properties(disk, directory.rstrip("/"))
    except DamagedMetaProperties as error:
        raise CannotStart(str(error)) from error
    if properties is None:
        raise CannotStart(f"No `meta.properties` found in {directory} (have you run `moldau storage format`?)")
    if properties.node_id != config.node_id:
        stored = f"Stored node id {properties.node_id} in {directory}"
        raise CannotStart(f"{stored} doesn't match the node.id {config.node_id} of the configuration")
    return properties
