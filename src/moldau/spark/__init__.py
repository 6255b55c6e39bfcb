"""The data pipeline on PySpark: Spark's data source `moldau`, built on Moldau's own client.

Only `source.py`, `reader.py`, `stream_reader.py` and the sink import pyspark; everything else here works without
Spark, so that the offline load and tests use it as it is.
"""
