"""Delta tables through `deltalake`: offsets are application transactions of the commit that adds the files.

The `txn` action of application id `moldau:offset:TOPIC:PARTITION` has the next offset as its version. Delta refuses
a commit that names an application id which a commit since the version that was read has named too, whatever the
numbers: that is the condition of append(). Application transactions are kept in the log's checkpoints, commit
metadata is not.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from moldau.client.results import TopicPartition
from moldau.lake.data_file import DataFile
from moldau.lake.errors import CommitConflict, LakeError, NoTableError
from moldau.lake.extras import need
from moldau.lake.positions import Positions, fingerprint
from moldau.lake.table import DATE, LakeTable, Note, Partitioning
from moldau.protocol.uuids import uuid_to_text

METADATA_KEY = "moldau"
TIMESTAMPS = ("timestamp",)
# Application transactions cannot be taken back; this version says that there is none.
FORGOTTEN = -1


class DeltaLakeTable(LakeTable):
    """A table of the Delta format in a directory."""

    format = "delta"

    def __init__(self, path: str, table: Any) -> None:
        super().__init__(path)
        self._table = table
        # Application id -> version as of one version of the table: a question to the log costs milliseconds.
        self._asked: dict[str, int | None] = {}
        self._asked_at = -1

    @staticmethod
    def open(path: str) -> DeltaLakeTable:
        deltalake = need("deltalake")
        try:
            return DeltaLakeTable(path, deltalake.DeltaTable(path))
        except deltalake.exceptions.TableNotFoundError:
            raise NoTableError(f"There is no Delta table in {path}.") from None
        except deltalake.exceptions.DeltaError as error:
            raise LakeError(f"The Delta table in {path} cannot be opened: {error}") from error

    @staticmethod
    def create(path: str, schema: Any, partition_by: Sequence[str]) -> DeltaLakeTable:
        pa, deltalake = need("pyarrow"), need("deltalake")
        if DATE in partition_by and DATE not in schema.names:
            schema = schema.append(pa.field(DATE, pa.date32()))
        os.makedirs(path, exist_ok=True)
        table = deltalake.DeltaTable.create(
            path,
            schema=deltalake.Schema.from_arrow(schema),
            partition_by=list(partition_by),
            mode="ignore",
            commit_properties=deltalake.CommitProperties(
                custom_metadata={METADATA_KEY: json.dumps({"operation": "create"})}
            ),
        )
        return DeltaLakeTable(path, table)

    def refresh(self) -> None:
        self._table.update_incremental()

    @property
    def delta(self) -> Any:
        """The table of the deltalake package, at the version of the last refresh()."""
        return self._table

    @property
    def version(self) -> int:
        return int(self._table.version())

    def schema(self) -> Any:
        return need("pyarrow").schema(self._table.schema().to_arrow())

    @property
    def partitioning(self) -> Partitioning:
        return Partitioning(tuple(self._table.metadata().partition_columns))

    def positions(self, partitions: Iterable[TopicPartition]) -> Positions:
        offsets: dict[TopicPartition, int] = {}
        ids: dict[str, str] = {}
        for item in partitions:
            offset = self._transaction_version(offset_id(item))
            if offset is not None and offset >= 0:
                offsets[item] = int(offset)
            if item.topic not in ids:
                ids[item.topic] = _id_text(self._transaction_version(topic_id_id(item.topic)))
        return Positions(offsets, {topic: topic_id for topic, topic_id in ids.items() if topic_id})

    def _transaction_version(self, name: str) -> int | None:
        if self._asked_at != self.version:
            self._asked.clear()
            self._asked_at = self.version
        if name not in self._asked:
            self._asked[name] = self._table.transaction_version(name)
        return self._asked[name]

    def note_commit(self, read_version: int, before: Positions, after: Positions) -> None:
        """Reads the newest state after a commit; what is known stays known if nobody else's commit is in between."""
        self.refresh()
        if self.version == read_version + 1 and self._asked_at == read_version:
            self._asked_at = self.version
            self._asked |= _transactions(before, after)

    def known_positions(self) -> Positions:
        """Commit metadata tells which partitions there are, application transactions how far each is."""
        known: dict[TopicPartition, None] = {}
        for entry in self._table.history():
            text = entry.get(METADATA_KEY)
            if text and "offsets" in (told := json.loads(text)):
                known |= dict.fromkeys(Positions.from_json(json.dumps(told["offsets"])).offsets)
        return self.positions(known)

    def forget(self, topic: str) -> None:
        deltalake = need("deltalake")
        forgotten = [offset_id(item) for item in self.known_positions().offsets if item.topic == topic]
        transactions = [deltalake.Transaction(name, FORGOTTEN) for name in (*forgotten, topic_id_id(topic))]
        note = {METADATA_KEY: json.dumps({"operation": "forget", "topic": topic})}
        properties = deltalake.CommitProperties(custom_metadata=note, app_transactions=transactions)
        self._table.create_write_transaction(
            [], "append", self._table.schema(), list(self.partitioning.columns), commit_properties=properties
        )
        self.refresh()

    def history(self, count: int) -> list[dict[str, Any]]:
        found = []
        for entry in self._table.history(count):
            told = json.loads(entry.get(METADATA_KEY) or "{}")
            told.pop("offsets", None)
            operation = told.pop("operation", str(entry.get("operation", "")).lower())
            found.append(
                {
                    "version": entry["version"],
                    "timestamp": entry["timestamp"],
                    "operation": operation,
                    "details": told,
                }
            )
        return found

    def files(self) -> list[DataFile]:
        pa = need("pyarrow")
        actions = pa.table(self._table.get_add_actions(flatten=False)).to_pylist()
        columns = self.partitioning.columns
        found = []
        for action in actions:
            values = action.get("partition") or action.get("partition_values") or {}
            found.append(
                DataFile(
                    str(action["path"]),
                    int(action["size_bytes"]),
                    int(action["num_records"] or 0),
                    {name: None if values.get(name) is None else str(values[name]) for name in columns},
                )
            )
        return found

    def add_columns(self, fields: Sequence[Any]) -> None:
        deltalake, pa = need("deltalake"), need("pyarrow")
        schema = deltalake.Schema.from_arrow(pa.schema([field.with_nullable(True) for field in fields]))
        try:
            self._table.alter.add_columns(list(schema.fields))
        except deltalake.exceptions.CommitFailedError as error:
            raise CommitConflict(str(error)) from error
        self.refresh()

    def _commit(self, files: Sequence[DataFile], before: Positions, after: Positions, note: Note) -> int:
        properties = self.commit_properties(before, after, note)
        deltalake = need("deltalake")
        read_version = self.version
        try:
            self._table.create_write_transaction(
                [add_action(file) for file in files],
                "append",
                self._table.schema(),
                list(self.partitioning.columns),
                commit_properties=properties,
            )
        except deltalake.exceptions.CommitFailedError as error:
            raise CommitConflict(str(error)) from error
        self.note_commit(read_version, before, after)
        return self.version

    def commit_properties(self, before: Positions, after: Positions, note: Note) -> Any:
        """Application transactions and metadata of a commit that moves the positions."""
        deltalake = need("deltalake")
        transactions = [deltalake.Transaction(name, number) for name, number in _transactions(before, after).items()]
        text = json.dumps({"operation": note.operation, **note.details, "offsets": json.loads(after.to_json())})
        return deltalake.CommitProperties(custom_metadata={METADATA_KEY: text}, app_transactions=transactions)


def _transactions(before: Positions, after: Positions) -> dict[str, int]:
    """Application id -> version, of a commit that moves the positions."""
    moved = after.changed_since(before)
    found = {offset_id(item): offset for item, offset in moved.items()}
    for topic in sorted({item.topic for item in moved}):
        if after.topic_ids.get(topic):
            found[topic_id_id(topic)] = fingerprint(after.topic_ids[topic])
    return found


def offset_id(partition: TopicPartition) -> str:
    """The application id whose version is the next offset of a partition."""
    return f"moldau:offset:{partition.topic}:{partition.partition}"


def topic_id_id(topic: str) -> str:
    """The application id whose version is the fingerprint of a topic's id."""
    return f"moldau:topic:{topic}"


def _id_text(number: int | None) -> str:
    """A text that has the fingerprint again; the bits that Delta does not keep are zero."""
    return "" if number is None or number <= 0 else uuid_to_text((int(number) << 1).to_bytes(8, "big") + bytes(8))


def add_action(file: DataFile) -> Any:
    """The `add` action of a file that a task has written."""
    transaction = need("deltalake.transaction")
    return transaction.AddAction(
        path=file.path,
        size=file.size,
        partition_values=dict(file.partition),
        modification_time=time.time_ns() // 1_000_000,
        data_change=True,
        stats=json.dumps(_stats(file)),
    )


def _stats(file: DataFile) -> dict[str, object]:
    lowest: dict[str, object] = {}
    highest: dict[str, object] = {}
    for name, (low, high) in file.ranges.items():
        if name in TIMESTAMPS:
            # Delta keeps milliseconds; the end must not come before the newest row.
            lowest[name], highest[name] = _time_text(low // 1000), _time_text(-(-high // 1000))
        else:
            lowest[name], highest[name] = low, high
    return {"numRecords": file.rows, "minValues": lowest, "maxValues": highest, "nullCount": dict(file.nulls)}


def _time_text(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"
