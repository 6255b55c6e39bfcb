"""Reads, writes and streams through TLS and logins, with the very options that Spark's own connector takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'moldau[spark]'")

from tests.interop.secured import PASSWORD, SCRAM_USER, SecuredKafka
from tests.spark import connector, topics

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def options(secured: SecuredKafka, topic: str) -> dict[str, str]:
    store = secured.certificates.truststore_jks or secured.certificates.truststore_p12
    return {
        "kafka.bootstrap.servers": secured.sasl_ssl,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{MODULE} required username="{SCRAM_USER.name}" password="{SCRAM_USER.password}";',
        "kafka.ssl.truststore.location": str(store),
        "kafka.ssl.truststore.password": PASSWORD,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }


def read(spark: Any, form: str, given: dict[str, str]) -> list[int]:
    rows = spark.read.format(form).options(**given).load().selectExpr("int(string(value)) AS number").collect()
    return sorted(row.number for row in rows)


def test_one_set_of_options_for_both_sources_and_sinks(
    spark: Any, secured: SecuredKafka, topic: str, tmp_path: Path
) -> None:
    given = options(secured, topic)
    out = f"{topic}-out"
    for name in (topic, out):
        topics.create(secured, name, 2)
    numbers = spark.range(500).selectExpr("string(id) AS value")
    numbers.write.format("moldau").options(**given, topic=topic).mode("append").save()
    assert read(spark, "moldau", given) == list(range(500))
    if connector.missing() is None:
        assert read(spark, "kafka", given) == list(range(500))
    query = (
        spark.readStream.format("moldau")
        .options(**given, commitGroup=topic)
        .load()
        .selectExpr("value")
        .writeStream.format("moldau")
        .options(**given, topic=out, delivery="exactly-once")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    committed = {**given, "subscribe": out, "kafka.isolation.level": "read_committed"}
    assert read(spark, "moldau", committed) == list(range(500))


def test_a_wrong_password_is_one_sentence(spark: Any, secured: SecuredKafka, topic: str) -> None:
    given = options(secured, topic)
    given["kafka.sasl.jaas.config"] = f'{MODULE} required username="{SCRAM_USER.name}" password="wrong";'
    with pytest.raises(Exception, match="Authentication failed"):
        read(spark, "moldau", given)
