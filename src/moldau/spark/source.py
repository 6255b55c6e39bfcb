"""The data source `moldau` as Spark sees it: schema, and who reads and writes."""

from __future__ import annotations

from collections.abc import MutableMapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from moldau.spark.options import read_options
from moldau.spark.schema import read_schema


class MoldauSource(DataSource):
    """Topics of Moldau or Apache Kafka as tables and streams: `spark.read.format("moldau")`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        return "moldau"

    def schema(self) -> StructType | str:
        # Spark does not say here whether this is a stream; only offsets depend on it, and the readers check them.
        return read_schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from moldau.spark.reader import BatchReader

        return BatchReader(read_options(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from moldau.spark.stream_reader import StreamReader

        return StreamReader(read_options(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from moldau.spark.writer import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from moldau.spark.writer import stream_writer

        return stream_writer(self.options, schema, overwrite)
