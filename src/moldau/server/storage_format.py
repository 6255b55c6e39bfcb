"""What `storage format`, `storage info` and their kin do: gives log directories their identity and first metadata.

Texts and files are those of Apache Kafka's kafka-storage. Functions return the lines to print; `FormatError` carries
what goes to stderr with exit code 1.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from dataclasses import dataclass, field

from moldau.config.broker_config import BrokerConfig
from moldau.controller.security import ITERATIONS_MAX, ITERATIONS_MIN, SCRAM_HASHES, scram_record
from moldau.metadata.features import (
    ELR_VERSION,
    FIRST_SCRAM_METADATA_VERSION,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    LOWEST_METADATA_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    default_feature_levels,
    metadata_version_level,
    metadata_version_name,
    metadata_version_names,
    supports_scram,
)
from moldau.protocol import uuids
from moldau.protocol.primitives import Message
from moldau.protocol.stored.metadata_records import (
    FeatureLevelRecord,
    UserScramCredentialRecord,
    encode_metadata_record,
)
from moldau.raft.snapshots import snapshot_bytes
from moldau.raft.state import ReplicaKey
from moldau.raft.voters import Voter, VoterSet
from moldau.server.directory_check import DirectoryInUse, check_unformatted_directory
from moldau.storage.disk import Disk
from moldau.storage.meta_properties import (
    META_PROPERTIES_FILE,
    DamagedMetaProperties,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from moldau.storage.moldau_properties import write_moldau_properties

FIRST_SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
DYNAMIC_FLAGS = "--standalone, --initial-controllers, or --no-initial-controllers"
DEFAULT_ITERATIONS = 4096
ELR_NEEDS_METADATA_VERSION = 23
_MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


class FormatError(Exception):
    """The request cannot be done; the text is what the user sees."""


@dataclass(slots=True)
class FormatOptions:
    """The flags of `storage format` by their names."""

    standalone: bool = False
    initial_controllers: str | None = None
    no_initial_controllers: bool = False
    ignore_formatted: bool = False
    force: bool = False
    """Also formats a directory that has other things in it."""
    release_version: str | None = None
    features: list[str] = field(default_factory=list)
    """Each name=level."""
    add_scram: list[str] = field(default_factory=list)
    """Each MECHANISM=[name=…,password=…]."""


@dataclass(slots=True)
class FormattedDirectory:
    path: str
    kind: str
    """data, metadata, or dynamic metadata voter."""
    directory_id: bytes


@dataclass(slots=True)
class Formatted:
    """What `format_directories` did."""

    records: list[Message]
    levels: dict[str, int]
    directories: list[FormattedDirectory]
    """Those that were not formatted before, in the order of their formatting."""

    def lines(self) -> list[str]:
        """What kafka-storage prints."""
        if not self.directories:
            return ["All of the log directories are already formatted."]
        release = metadata_version_name(self.levels[METADATA_VERSION])
        return [
            _describe_bootstrap(self.records, self.levels[METADATA_VERSION]),
            *(f"Formatting {d.kind} directory {d.path} with metadata.version {release}." for d in self.directories),
        ]


def random_uuid() -> str:
    """A new uuid as text, as `storage random-uuid` prints it."""
    return uuids.uuid_to_text(uuids.random_uuid(os.urandom))


def format_storage(
    config_values: dict[str, str],
    cluster_id: str,
    disk: Disk,
    options: FormatOptions,
    now_ms: int | None = None,
) -> list[str]:
    """Formats every log directory that is not formatted yet; returns the lines to print."""
    return format_directories(config_values, cluster_id, disk, options, now_ms).lines()


def format_directories(
    config_values: dict[str, str],
    cluster_id: str,
    disk: Disk,
    options: FormatOptions,
    now_ms: int | None = None,
) -> Formatted:
    """Formats every log directory that is not formatted yet."""
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    config = BrokerConfig(config_values, warn=False)  # whoever starts the node is told
    records = _bootstrap_records(options)
    _check_quorum_flags(config, options)
    directories = list(dict.fromkeys([*config.log_dirs, config.metadata_log_dir]))
    unformatted = _find_unformatted(disk, directories, cluster_id, config.node_id, options)
    levels = {r.name: r.feature_level for r in records if isinstance(r, FeatureLevelRecord)}
    done = Formatted(records, levels, [])
    bootstrap = _snapshot(records, 0, 0, None, now_ms)
    # The metadata directory comes last: a node does not start while it is missing.
    for path in sorted(unformatted, key=lambda path: path == config.metadata_log_dir):
        is_metadata = path == config.metadata_log_dir
        directory_id = uuids.random_uuid(os.urandom)
        voters = _initial_voters(config, options, directory_id) if is_metadata else None
        if voters is not None:
            own = voters.get(config.node_id)
            directory_id = own.key.directory_id if own is not None else directory_id
        kind = "data" if not is_metadata else "dynamic metadata voter" if voters is not None else "metadata"
        _write_directory(disk, path, bootstrap, voters, now_ms)
        properties = MetaProperties(cluster_id, config.node_id, directory_id)
        write_moldau_properties(disk, [path])
        write_meta_properties(disk.blocking(), path, properties, _java_date(now_ms))
        done.directories.append(FormattedDirectory(path, kind, directory_id))
    return done


def _java_date(now_ms: int) -> str:
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(now_ms / 1000))


def _write_directory(disk: Disk, path: str, bootstrap: bytes, voters: VoterSet | None, now_ms: int) -> None:
    disk.make_directory(path)
    blocking = disk.blocking()
    blocking.write_file(f"{path}/bootstrap.checkpoint", bootstrap)
    if voters is not None:
        disk.make_directory(f"{path}/__cluster_metadata-0")
        blocking.write_file(f"{path}/{FIRST_SNAPSHOT}", _snapshot([], now_ms, 1, voters, now_ms), mode=0o400)
    # A directory is as durable as its entry in the one above it.
    parent = path.rstrip("/")
    while parent not in ("", "."):
        blocking.sync_directory(parent)
        parent = os.path.dirname(parent) if parent != "/" else ""


def _snapshot(
    records: list[Message], timestamp_ms: int, kraft_version: int, voters: VoterSet | None, now_ms: int
) -> bytes:
    values = [encode_metadata_record(record, 0) for record in records]
    return snapshot_bytes(values, 0, timestamp_ms, kraft_version, voters, now_ms)


def _find_unformatted(
    disk: Disk, directories: list[str], cluster_id: str, node_id: int, options: FormatOptions
) -> list[str]:
    unformatted = []
    for path in directories:
        properties = read_meta_properties(disk, path)
        if properties is None:
            try:
                check_unformatted_directory(disk, path, options.force)
            except DirectoryInUse as error:
                raise FormatError(str(error)) from None
            unformatted.append(path)
            continue
        where = f"{path}/{META_PROPERTIES_FILE}"
        if properties.cluster_id != cluster_id:
            read = properties.cluster_id
            raise FormatError(f"Invalid cluster.id in: {where}. Expected {cluster_id}, but read {read}")
        if properties.node_id != node_id:
            raise FormatError(f"Invalid node.id in: {where}. Expected {node_id}, but read {properties.node_id}")
        if not options.ignore_formatted:
            raise FormatError(
                f"Log directory {path} is already formatted. Use --ignore-formatted to ignore this directory and "
                "format the others."
            )
    return unformatted


# Voters


def _check_quorum_flags(config: BrokerConfig, options: FormatOptions) -> None:
    dynamic = options.standalone or options.initial_controllers is not None
    if sum((options.standalone, options.initial_controllers is not None, options.no_initial_controllers)) > 1:
        raise FormatError(f"Only one of these flags can be given: {DYNAMIC_FLAGS}.")
    if config.voters and dynamic:
        raise FormatError(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    if config.is_controller and not config.voters and not dynamic and not options.no_initial_controllers:
        raise FormatError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
            f"{DYNAMIC_FLAGS}."
        )
    wanted = _parse_features(options.features).get(KRAFT_VERSION)
    if wanted == 0 and (dynamic or options.no_initial_controllers):
        raise FormatError(
            f"Cannot set kraft.version to 0 if one of the flags {DYNAMIC_FLAGS} is used. For dynamic controllers "
            "support, try removing the --feature flag for kraft.version."
        )
    if wanted is not None and wanted > 0 and config.voters:
        raise FormatError(
            f"Cannot set kraft.version to {wanted} unless one of the flags {DYNAMIC_FLAGS} is used. For dynamic "
            f"controllers support, try using one of {DYNAMIC_FLAGS}."
        )


def _initial_voters(config: BrokerConfig, options: FormatOptions, directory_id: bytes) -> VoterSet | None:
    names = config.controller_listener_names
    if options.standalone:
        if not config.is_controller:
            raise FormatError("You can only use --standalone on a controller.")
        endpoints = tuple((e.name, e.host or "localhost", e.port) for e in config.controller_listeners())
        return VoterSet([Voter(ReplicaKey(config.node_id, directory_id), endpoints[:1])])
    if options.initial_controllers is None:
        return None
    voters = []
    for text in options.initial_controllers.split(","):
        match = re.fullmatch(r"([0-9]+)@(\[[^\]]+\]|[^:@]+):([0-9]+):([A-Za-z0-9_-]{22})", text.strip())
        if match is None:
            raise FormatError(f"Invalid controller {text.strip()!r}: it is written id@host:port:directory-id.")
        key = ReplicaKey(int(match[1]), uuids.uuid_from_text(match[4]))
        voters.append(Voter(key, ((names[0] if names else "CONTROLLER", match[2].strip("[]"), int(match[3])),)))
    voter_set = VoterSet(voters)
    if config.is_controller and voter_set.get(config.node_id) is None:
        raise FormatError(f"Node {config.node_id} is a controller, but it is not among --initial-controllers.")
    return voter_set


# First metadata


def _parse_features(features: list[str]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for text in features:
        name, separator, level = text.partition("=")
        if not separator or not re.fullmatch(r"-?[0-9]+", level.strip()):
            raise FormatError(f"Can't parse feature=level string {text}: equals sign not found.")
        name = name.strip()
        if name not in SUPPORTED_FEATURES:
            known = ", ".join(sorted(SUPPORTED_FEATURES))
            raise FormatError(f"Unsupported feature: {name}. Supported features are: {known}")
        low, high = SUPPORTED_FEATURES[name]
        if not low <= int(level) <= high:
            raise FormatError(f"No feature:{name} with feature level {int(level)}")
        levels[name] = int(level)
    return levels


def _bootstrap_records(options: FormatOptions) -> list[Message]:
    """Feature levels, metadata.version first, then credentials."""
    wanted = _parse_features(options.features)
    version = wanted.pop(METADATA_VERSION, LATEST_METADATA_VERSION)
    if options.release_version is not None:
        version = release_level(options.release_version)
    wanted.pop(KRAFT_VERSION, None)
    levels = {**default_feature_levels(version), **wanted}
    if levels.get(ELR_VERSION, 0) > 0 and version < ELR_NEEDS_METADATA_VERSION:
        needs = f"because it depends on {METADATA_VERSION} level {ELR_NEEDS_METADATA_VERSION}"
        raise FormatError(f"{ELR_VERSION} could not be set to {levels[ELR_VERSION]} {needs}")
    if options.add_scram and not supports_scram(version):
        name = metadata_version_name(FIRST_SCRAM_METADATA_VERSION)
        raise FormatError(f"SCRAM is only supported in metadata.version {name} or later.")
    records: list[Message] = [FeatureLevelRecord(METADATA_VERSION, version)]
    records += [FeatureLevelRecord(name, levels[name]) for name in sorted(levels) if levels[name] > 0]
    return records + [_parse_scram(text) for text in options.add_scram]


def release_level(name: str) -> int:
    level = metadata_version_level(name)
    if level is None:
        names = ", ".join(metadata_version_names())
        raise FormatError(f"Unknown metadata.version '{name}'. Supported metadata.version are: {names}")
    return level


def _describe_bootstrap(records: list[Message], version: int) -> str:
    shown = []
    for record in records:
        if isinstance(record, FeatureLevelRecord):
            text = f"FeatureLevelRecord(name='{record.name}', featureLevel={record.feature_level})"
        else:
            assert isinstance(record, UserScramCredentialRecord)
            hidden = "salt=(redacted), storedKey=(redacted), serverKey=(redacted)"
            text = f"UserScramCredentialRecord(name='{record.name}', mechanism={record.mechanism}, {hidden}, "
            text += f"iterations={record.iterations})"
        shown.append(f"ApiMessageAndVersion({text} at version 0)")
    joined = ", ".join(shown)
    return (
        f"Bootstrap metadata: BootstrapMetadata(records=[{joined}], metadataVersionLevel={version}, "
        "source=format command)"
    )


def _parse_scram(text: str) -> UserScramCredentialRecord:
    mechanism_name, _, rest = text.partition("=")
    mechanism = _MECHANISMS.get(mechanism_name.strip())
    if mechanism is None:
        raise FormatError(f"The add-scram mechanism {mechanism_name} is not supported.")
    match = re.fullmatch(r"\[(.*)\]", rest.strip())
    if match is None:
        raise FormatError("Expected the value of add-scram to be in the form [name=…,password=…]")
    parts = [part.strip().split("=", 1) for part in match[1].split(",") if "=" in part]
    fields = {name.strip(): _unquoted(value.strip()) for name, value in parts}
    if "name" not in fields:
        raise FormatError("You must supply 'name' to add-scram")
    if ("password" in fields) == ("saltedpassword" in fields):
        raise FormatError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if "saltedpassword" in fields and "salt" not in fields:
        raise FormatError("You must supply 'salt' with 'saltedpassword' to add-scram")
    try:
        iterations = int(fields.get("iterations", DEFAULT_ITERATIONS))
    except ValueError:
        raise FormatError("The 'iterations' value must be a number for add-scram") from None
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        limit = f"{'>=' if iterations < ITERATIONS_MIN else '<='}"
        bound = ITERATIONS_MIN if iterations < ITERATIONS_MIN else ITERATIONS_MAX
        raise FormatError(f"The 'iterations' value must be {limit} {bound} for add-scram")
    salt = _from_base64(fields["salt"]) if "salt" in fields else os.urandom(24)
    if "password" in fields:
        salted = hashlib.pbkdf2_hmac(SCRAM_HASHES[mechanism], fields["password"].encode(), salt, iterations)
    else:
        salted = _from_base64(fields["saltedpassword"])
    return scram_record(fields["name"], mechanism, salt, salted, iterations)


def _from_base64(text: str) -> bytes:
    import base64

    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise FormatError("'salt' and 'saltedpassword' have to be base64 for add-scram") from None


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else text


# Info


def storage_info(config_values: dict[str, str], disk: Disk) -> tuple[list[str], int]:
    """The lines of `storage info` and its exit code."""
    config = BrokerConfig(config_values)
    found, problems, metadata = [], [], []
    for path in sorted(dict.fromkeys([*config.log_dirs, config.metadata_log_dir])):
        if not disk.is_directory(path):
            problems.append(f"{path} does not exist" if not disk.exists(path) else f"{path} is not a directory")
            continue
        found.append(path)
        try:
            properties = read_meta_properties(disk, path)
        except DamagedMetaProperties as error:
            problems.append(str(error))
            continue
        if properties is None:
            problems.append(f"{path} is not formatted.")
        else:
            metadata.append(properties)
    lines = _listing("Found log director", ("y:", "ies:"), found)
    if metadata:
        lines += [f"Found metadata: {_show_properties(metadata[0])}", ""]
    lines += _listing("Found problem", (":", "s:"), problems)
    return lines[:-1] if lines and not lines[-1] else lines, 1 if problems else 0


def _listing(title: str, endings: tuple[str, str], items: list[str]) -> list[str]:
    if not items:
        return []
    return [title + endings[0 if len(items) == 1 else 1], *(f"  {item}" for item in items), ""]


def _show_properties(properties: MetaProperties) -> str:
    directory = f"directory.id={uuids.uuid_to_text(properties.directory_id)}, " if properties.directory_id else ""
    rest = f"node.id={properties.node_id}, version={properties.version}"
    return f"{{cluster.id={properties.cluster_id}, {directory}{rest}}}"


def release_features(release_version: str | None = None) -> dict[str, int]:
    """The feature levels that belong to a release, by default to the latest."""
    level = LATEST_METADATA_VERSION if release_version is None else release_level(release_version)
    defaults = default_feature_levels(level)
    names = ("transaction.version", "group.version", ELR_VERSION, "share.version", "streams.version")
    first = {METADATA_VERSION: level, KRAFT_VERSION: 1 if level >= 21 else 0}
    return {**first, **{name: defaults.get(name, 0) for name in names}}


def version_mapping(release_version: str | None = None) -> list[str]:
    """The feature levels that belong to a release, as `storage version-mapping` prints them."""
    return [level_text(name, level) for name, level in release_features(release_version).items()]


def level_text(name: str, level: int) -> str:
    """name=level; the metadata.version with its name."""
    known = name == METADATA_VERSION and LOWEST_METADATA_VERSION <= level <= LATEST_METADATA_VERSION
    return f"{name}={level} ({metadata_version_name(level)})" if known else f"{name}={level}"


def needed_features(features: list[str]) -> list[tuple[str, int, dict[str, int]]]:
    """Each feature=level with the levels that it needs."""
    return [
        (name, level, {METADATA_VERSION: ELR_NEEDS_METADATA_VERSION} if name == ELR_VERSION and level > 0 else {})
        for name, level in _parse_features(features).items()
    ]


def feature_dependencies(features: list[str]) -> list[str]:
    """What each feature=level needs, as `storage feature-dependencies` prints it."""
    lines = []
    for name, level, needs in needed_features(features):
        if needs:
            lines.append(f"{level_text(name, level)} requires:")
            lines += [f"    {level_text(needed, lowest)}" for needed, lowest in needs.items()]
        else:
            lines.append(f"{level_text(name, level)} has no dependencies.")
    return lines
