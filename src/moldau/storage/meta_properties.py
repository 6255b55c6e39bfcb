"""The file meta.properties of a log directory: whose it is (cluster, node, directory)."""

from __future__ import annotations

from moldau.protocol.uuids import uuid_from_text, uuid_to_text
from moldau.storage.disk import BlockingDisk, Disk

META_PROPERTIES_FILE = "meta.properties"
CURRENT_VERSION = 1


class DamagedMetaProperties(Exception):
    """The file cannot be understood; the node must not start on it."""


class MetaProperties:
    """`cluster_id` stays text: clusters that are older than KRaft may have an id that is not a uuid."""

    def __init__(
        self, cluster_id: str, node_id: int, directory_id: bytes | None, version: int = CURRENT_VERSION
    ) -> None:
        self.cluster_id = cluster_id
        self.node_id = node_id
        self.directory_id = directory_id
        self.version = version

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetaProperties) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"MetaProperties({self.cluster_id!r}, {self.node_id}, {self.directory_id!r}, {self.version})"


def format_meta_properties(properties: MetaProperties, date_text: str) -> bytes:
    """`date_text` is the comment in the second line, like 'Sun Nov 15 03:31:12 UTC 2026'."""
    lines = ["#", f"#{date_text}", f"node.id={properties.node_id}"]
    if properties.directory_id is not None:
        lines.append(f"directory.id={uuid_to_text(properties.directory_id)}")
    lines += [f"version={properties.version}", f"cluster.id={properties.cluster_id}", ""]
    return "\n".join(lines).encode("utf-8")


def parse_meta_properties(data: bytes, path: str) -> MetaProperties:
    values: dict[str, str] = {}
    try:
        for line in data.decode("utf-8").splitlines():
            if line.strip() and not line.lstrip().startswith(("#", "!")):
                key, separator, value = line.partition("=")
                if not separator:
                    raise ValueError(f"line {line!r} has no '='")
                values[key.strip()] = value.strip().replace("\\=", "=").replace("\\:", ":")
        version = int(values["version"])
        if version != CURRENT_VERSION:
            raise ValueError(f"version {version} is not known")
        directory_text = values.get("directory.id")
        directory_id = uuid_from_text(directory_text) if directory_text is not None else None
        return MetaProperties(values["cluster.id"], int(values["node.id"]), directory_id, version)
    except KeyError as error:
        raise DamagedMetaProperties(f"{path} has no {error.args[0]}") from error
    except ValueError as error:
        raise DamagedMetaProperties(f"{path} cannot be read: {error}") from error


def read_meta_properties(disk: Disk, log_directory: str) -> MetaProperties | None:
    """None when the directory was not formatted yet."""
    path = f"{log_directory}/{META_PROPERTIES_FILE}"
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return None
    return parse_meta_properties(data, path)


def write_meta_properties(disk: BlockingDisk, log_directory: str, properties: MetaProperties, date_text: str) -> None:
    path = f"{log_directory}/{META_PROPERTIES_FILE}"
    disk.write_file(path, format_meta_properties(properties, date_text))
