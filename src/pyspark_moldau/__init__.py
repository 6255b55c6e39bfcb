"""What Spark looks for: a top-level module `pyspark_…` with a `DefaultSource`; it makes `format("moldau")` known."""

from moldau.spark.source import MoldauSource as DefaultSource

__all__ = ["DefaultSource"]
