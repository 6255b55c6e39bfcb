"""Which decoder the options of a source ask for."""

from __future__ import annotations

import pyarrow as pa

from moldau.spark.decode import Decoder, StringDecoder
from moldau.spark.options import OptionError, ValueOptions


def make_decoder(options: ValueOptions, value_type: pa.DataType | None = None) -> Decoder | None:
    """The decoder for the options, None where values stay bytes.

    value_type: what Spark made of the schema, for formats whose schema is written in Spark's own language.
    """
    if not options.format:
        return None
    if options.format == "string":
        return StringDecoder()
    if options.format in ("json", "csv"):
        # Each format imports its own library, which need not be there for the others.
        from moldau.spark.decode_text import CsvDecoder, JsonDecoder

        if value_type is None:
            raise OptionError(f"valueFormat {options.format} needs valueSchema, such as id BIGINT, name STRING.")
        return (JsonDecoder if options.format == "json" else CsvDecoder)(value_type)
    if options.format == "avro":
        from moldau.spark.decode_avro import avro_decoder

        return avro_decoder(options)
    from moldau.spark.decode_protobuf import protobuf_decoder

    return protobuf_decoder(options)
