"""The example examples/declarative under Spark's own `spark-pipelines run`: tables and a topic, over several runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'moldau[spark]'")
pytest.importorskip("yaml", reason="Spark's pipelines are missing: pip install 'moldau[spark,declarative]'")
pytest.importorskip("grpc", reason="Spark's pipelines are missing: pip install 'moldau[spark,declarative]'")

from moldau.client import Producer
from tests.interop.nodes import Node
from tests.pace import patience
from tests.spark import jobs, topics

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "declarative"
RUN_SECONDS_MAX = patience(240)


def order(number: int) -> dict[str, object]:
    return {"id": number, "customer": f"c{number % 3}", "amount": float(number)}


class Project:
    """A copy of the example with places of its own."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.folder = folder / "project"
        self.warehouse = self.folder / "spark-warehouse"
        shutil.copytree(EXAMPLE, self.folder)
        spec = (self.folder / "spark-pipeline.yml").read_text()
        spec = spec.replace("file:///data/pipelines/orders", (folder / "storage").as_uri())
        (self.folder / "spark-pipeline.yml").write_text(spec.replace("localhost:9092", bootstrap))

    def run(self) -> str:
        # Which tables there are must outlive the run.
        settings = {**jobs.QUICK_SETTINGS, "spark.sql.catalogImplementation": "hive"}
        options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        command = [str(Path(sys.executable).with_name("spark-pipelines")), "run", *options]
        ended = subprocess.run(
            command,
            cwd=self.folder,
            env=jobs.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS_MAX,
        )
        assert ended.returncode == 0, ended.stdout[-6000:]
        return ended.stdout

    def rows(self, table: str) -> list[dict[str, object]]:
        import pyarrow.dataset as dataset

        files = [str(path) for path in self.warehouse.glob(f"{table}/**/*.parquet")]
        return dataset.dataset(files).to_table().to_pylist()


def test_a_declarative_pipeline_reads_and_writes_topics(moldau_node: Node, tmp_path: Path) -> None:
    """Each run goes on where the last one ended; the topic has each large order once."""
    for name in ("orders", "large-orders"):
        topics.create(moldau_node, name, 2)
    project = Project(tmp_path, moldau_node.bootstrap)
    sent: list[dict[str, object]] = []
    for numbers in (range(80, 120), range(120, 150)):
        with Producer(moldau_node.bootstrap) as producer:
            for number in numbers:
                sent.append(order(number))
                producer.send("orders", json.dumps(sent[-1]), key=str(number))
        project.run()
        found = [{name: row[name] for name in ("id", "customer", "amount")} for row in project.rows("orders")]
        assert sorted(found, key=lambda row: int(str(row["id"]))) == sent
        large = [json.loads(value) for value in topics.committed_values(moldau_node, "large-orders")]
        assert sorted(large, key=lambda row: int(row["id"])) == [
            row for row in sent if float(str(row["amount"])) >= 100
        ]
        spent = {str(row["customer"]): row["amount"] for row in project.rows("spent")}
        customers = sorted({str(row["customer"]) for row in sent})
        totals = {name: sum(float(str(row["amount"])) for row in sent if row["customer"] == name) for name in customers}
        assert spent == totals
